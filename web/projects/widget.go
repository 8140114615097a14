package projects

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"docent/api"
	"docent/router/widget"
	"docent/web/console"
)

// A widgetView is how the widget looks, with the widget itself beside the form.
type widgetView struct {
	Fields   []console.Field
	Problems []string
	Path     string
	MayWrite bool
	Shown    map[string]string // the widget's settings as they are filled in
	Key      string            // with which the preview asks; empty if it cannot
	Contrast []contrastLine
	Tag      string // for the site
	Same     []string
}

// A contrastLine says of a color whether it can be read.
type contrastLine struct {
	Text string
	Good bool
}

func widgetPath(v *console.Visit) string { return v.Base() + "/widget" }

func (s *handler) showWidget(v *console.Visit) error {
	return s.widgetPage(v, http.StatusOK, v.Project, nil)
}

// widgetPage is the form and the widget, as a project has it or as it would be.
func (s *handler) widgetPage(v *console.Visit, status int, p api.Project, problems map[string]string) error {
	view := widgetView{Fields: widgetFields(p.Widget), Path: widgetPath(v), MayWrite: v.May(console.Owner), Shown: map[string]string{},
		Tag: widgetTag(s.APIAddress(), v.Project.Domain, "dct_pub_..."), Same: []string{widgetCommand(p)}}
	view.Problems = console.PlaceFaults(view.Fields, problems)
	if len(problems) == 0 {
		view.Shown = widget.Settings(p)
		view.Contrast = contrasts(p.Widget)
	}
	// The preview's key holds from everywhere: it is given to whom an assistant key could be.
	if s.PreviewKey != nil && v.Who.Rights.MayGive(api.GivenKey(api.Key{Kind: api.AssistantKey, Org: p.Org})) == nil {
		view.Key = s.PreviewKey(p, v.Now)
	}
	return s.RenderStatus(v, status, "widget", "Widget", view)
}

func widgetFields(w api.Widget) []console.Field {
	choice := func(name, label, now, hint string, options ...string) console.Field {
		f := console.Field{Name: name, Label: label, Kind: "select", Hint: hint}
		for i := 0; i < len(options); i += 2 {
			f.Options = append(f.Options, console.Option{Value: options[i], Label: options[i+1], On: now == options[i]})
		}
		return f
	}
	languages := []string{"", "that of the page"}
	for _, l := range api.WidgetLanguages {
		languages = append(languages, l, l)
	}
	return []console.Field{
		{Name: "accent", Label: "Color", Value: w.Accent, Hint: "Color of buttons and links, such as #1f6f5c. Default: blue."},
		{Name: "accentDark", Label: "Dark-mode color", Value: w.AccentDark,
			Hint: "Default: a tone of the color that is readable on dark."},
		choice("theme", "Theme", w.Theme, "", "", "match site", "light", "always light", "dark", "always dark"),
		choice("button", "Button", w.Button, "Without a button, Ctrl-K or an element of your page opens the dialog.",
			"", "bottom right", "start", "bottom left", "none", "none"),
		{Name: "label", Label: "Button label", Value: w.Label, Hint: "Leave empty for an icon only."},
		choice("language", "Language of the interface", w.Language, "", languages...),
		{Name: "greeting", Label: "Greeting", Value: w.Greeting, Hint: "What the dialog says before the first question."},
		{Name: "suggestions", Label: "Suggested questions", Kind: "area", Value: strings.Join(w.Suggestions, "\n"),
			Hint: "One per line, at most six."},
		{Name: "contact", Label: "Contact", Value: w.Contact,
			Hint: "Shown after the last answer. Enter form to send the conversation to your webhooks as contact.requested, or an email address or URL, which is public."},
		{Name: "contactIssues", Label: "Open an issue for each conversation that the form sends", Kind: "check", On: w.ContactIssues,
			Hint: "In the project's repository on GitHub, GitLab, or Gitea. Everybody who can read its issues sees the conversation and the message, without name and email address."},
		{Name: "logo", Label: "Logo", Value: w.Logo, Hint: "URL of a picture, such as /logo.svg on your site. The site's content security policy must allow it."},
		{Name: "openIn", Label: "Open in", Value: strings.Join(w.OpenIn, ", "),
			Hint: "Chat clients that readers can open their question in: chatgpt, claude. The question is sent there."},
	}
}

// filledIn is the project with the widget that a form describes, and what is wrong with it by field.
func filledIn(p api.Project, form url.Values) (api.Project, map[string]string) {
	text := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	p.Widget = api.Widget{Accent: text("accent"), AccentDark: text("accentDark"), Theme: text("theme"), Button: text("button"),
		Label: text("label"), Language: text("language"), Greeting: text("greeting"), Suggestions: console.Lines(form.Get("suggestions")),
		Contact: text("contact"), ContactIssues: form.Get("contactIssues") != "", Logo: text("logo"),
		OpenIn: strings.FieldsFunc(text("openIn"), func(r rune) bool { return r == ',' || r == ' ' })}
	p = p.WithDefaults()
	problems := map[string]string{}
	for name, problem := range console.Faults(p.Validate()) {
		problems[strings.TrimPrefix(name, "widget.")] = problem
	}
	return p, problems
}

// previewWidget shows the widget as it is filled in, and stores nothing.
func (s *handler) previewWidget(v *console.Visit) error {
	p, problems := filledIn(v.Project, v.Form)
	return s.widgetPage(v, http.StatusOK, p, problems)
}

func (s *handler) changeWidget(v *console.Visit) error {
	p, problems := filledIn(v.Project, v.Form)
	if len(problems) > 0 {
		return s.widgetPage(v, http.StatusBadRequest, p, problems)
	}
	if !reflect.DeepEqual(p.Widget, v.Project.Widget) {
		task, err := s.Setup.Change(p)
		if err != nil {
			return err
		}
		v.Audit("project.set", string(p.ID), "widget")
		if task = s.settled(v.Context(), task); task.Failed() {
			return task.Err
		}
	}
	return v.Done(widgetPath(v), "Widget saved. Pages show the changes within five minutes.")
}

// contrasts say whether the colors can be read.
func contrasts(w api.Widget) (out []contrastLine) {
	say := func(where, color, from string, behind ...string) {
		least := widget.Least(color, behind...)
		line := contrastLine{Good: least >= widget.TextContrast, Text: fmt.Sprintf(
			"In the %s, text in %s%s has a contrast of at least %.1f to 1; WCAG AA asks for 4.5.", where, color, from, least)}
		if !line.Good {
			line.Text += " It is hard to read. The nearest tone that can be read is " + widget.Readable(color, behind...) + "."
		}
		out = append(out, line)
	}
	if w.Accent != "" && w.Theme != "dark" {
		say("light", w.Accent, "", widget.LightPaper, widget.LightSoft)
	}
	if dark := widget.DarkAccent(w); dark != "" && w.Theme != "light" {
		from := ""
		if w.AccentDark == "" && dark != w.Accent {
			from = ", a tone of " + w.Accent + ","
		}
		say("dark", dark, from, widget.DarkPaper, widget.DarkSoft)
	}
	if out != nil {
		out = append(out, contrastLine{Good: true, Text: "What stands on a button is black or white, whichever reads better: always 4.5 to 1 or more."})
	}
	return out
}

// widgetTag is what goes into the pages of the site.
func widgetTag(server, domain, key string) string {
	return fmt.Sprintf(`<script src="%s/widget/v1.js" data-domain="%s" data-key="%s" async></script>`, server, domain, key)
}

// widgetCommand is the command that gives a project's widget its looks.
func widgetCommand(p api.Project) string {
	p.Widget.Accent = cmp.Or(p.Widget.Accent, "#1f6f5c")
	text, err := json.Marshal(map[string]api.Widget{"widget": p.Widget})
	if err != nil {
		return err.Error() // strings alone: there is none
	}
	return "echo " + console.ShellWord(string(text)) + " | docent project set " + console.ShellWord(string(p.ID)) + " --file -"
}

// Show is a setting of the widget that is shown; empty if it has none. The element says so too, so that the preview
// takes nothing of what is stored.
func (w widgetView) Show(name string) string { return w.Shown[name] }

// Has reports whether a setting is shown that is there or not, and says nothing else.
func (w widgetView) Has(name string) bool {
	_, ok := w.Shown[name]
	return ok
}
