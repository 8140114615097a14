package web

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"

	"docent/api"
	"docent/widget"
)

// A widgetView is how the widget looks, with the widget itself beside the form.
type widgetView struct {
	Fields   []formField
	Problems []string
	Path     string
	MayWrite bool
	Shown    map[string]string // the widget's settings as they are filled in
	Key      string            // with which the preview asks; empty where it cannot
	Contrast []contrastLine
	Tag      string // for the site
	Same     []string
}

// A contrastLine says of a colour whether it can be read.
type contrastLine struct {
	Text string
	Good bool
}

func (v *visit) widgetPath() string { return v.base() + "/widget" }

func (s *Server) showWidget(v *visit) error { return s.widgetPage(v, 200, v.project, nil) }

// widgetPage is the form and the widget, as a project has it or as it would be.
func (s *Server) widgetPage(v *visit, status int, p api.Project, problems map[string]string) error {
	view := widgetView{Fields: widgetFields(p.Widget), Path: v.widgetPath(), MayWrite: v.may(owner), Shown: map[string]string{},
		Tag: s.widgetTag(v), Same: []string{widgetCommand(p)}}
	view.Problems = placeFaults(view.Fields, problems)
	if problems == nil {
		view.Shown = widget.Settings(p)
		view.Contrast = contrasts(p.Widget)
	}
	if s.PreviewKey != nil {
		view.Key = s.PreviewKey(p, v.now)
	}
	return s.renderStatus(v, status, "widget", "Widget", view)
}

func widgetFields(w api.Widget) []formField {
	choice := func(name, label, now, hint string, options ...string) formField {
		f := formField{Name: name, Label: label, Kind: "select", Hint: hint}
		for i := 0; i < len(options); i += 2 {
			f.Options = append(f.Options, formOption{options[i], options[i+1], now == options[i]})
		}
		return f
	}
	languages := []string{"", "that of the page"}
	for _, l := range api.WidgetLanguages {
		languages = append(languages, l, l)
	}
	return []formField{
		{Name: "accent", Label: "Colour", Value: w.Accent, Hint: "Of buttons and links, such as #1f6f5c. Blue where empty."},
		{Name: "accentDark", Label: "Colour in the dark", Value: w.AccentDark,
			Hint: "Where empty, a tone of the colour that can be read in the dark."},
		choice("theme", "Light or dark", w.Theme, "", "", "as the site is", "light", "always light", "dark", "always dark"),
		choice("button", "Button", w.Button, "Without a button, the dialog opens with Ctrl-K or with an element of yours.",
			"", "at the end of the line (right, from left to right)", "start", "at its beginning", "none", "none"),
		{Name: "label", Label: "Text of the button", Value: w.Label, Hint: "Only a picture where empty."},
		choice("language", "Language of the interface", w.Language, "", languages...),
		{Name: "greeting", Label: "Greeting", Value: w.Greeting, Hint: "What the dialog says before the first question."},
		{Name: "suggestions", Label: "Questions to begin with", Kind: "area", Value: strings.Join(w.Suggestions, "\n"),
			Hint: "One in each line, at most six."},
	}
}

// filledIn is the project with the widget that a form describes, and what is wrong with it by field.
func filledIn(p api.Project, form url.Values) (api.Project, map[string]string) {
	text := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	p.Widget = api.Widget{Accent: text("accent"), AccentDark: text("accentDark"), Theme: text("theme"), Button: text("button"),
		Label: text("label"), Language: text("language"), Greeting: text("greeting"), Suggestions: lines(form.Get("suggestions"))}
	p = p.WithDefaults()
	found, _ := faults(p.Validate())
	var problems map[string]string
	for name, problem := range found {
		if problems == nil {
			problems = map[string]string{}
		}
		problems[strings.TrimPrefix(name, "widget.")] = problem
	}
	return p, problems
}

// previewWidget shows the widget as it is filled in, and stores nothing.
func (s *Server) previewWidget(v *visit) error {
	p, problems := filledIn(v.project, v.form())
	return s.widgetPage(v, 200, p, problems)
}

func (s *Server) changeWidget(v *visit) error {
	p, problems := filledIn(v.project, v.form())
	if problems != nil {
		return s.widgetPage(v, 400, p, problems)
	}
	if !reflect.DeepEqual(p.Widget, v.project.Widget) {
		task, err := s.Setup.Change(p)
		if err != nil {
			return err
		}
		v.audit("project.set", string(p.ID), "widget")
		if task = s.settled(v.Context(), task); task.Failed() {
			return task.Err
		}
	}
	return v.done(v.widgetPath(), "The widget's looks are stored. Pages show them within five minutes.")
}

// contrasts say whether the colours can be read.
func contrasts(w api.Widget) (out []contrastLine) {
	say := func(where, colour, from string, behind ...string) {
		least := widget.Least(colour, behind...)
		line := contrastLine{Good: least >= widget.TextContrast, Text: fmt.Sprintf(
			"In the %s, text in %s%s has a contrast of at least %.1f to 1; WCAG AA asks for 4.5.", where, colour, from, least)}
		if !line.Good {
			line.Text += " It is hard to read. The nearest tone that can be read is " + widget.Readable(colour, behind...) + "."
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
func (s *Server) widgetTag(v *visit) string {
	return fmt.Sprintf(`<script src="%s/widget/v1.js" data-domain="%s" data-key="dct_pub_..." async></script>`, s.reached(),
		v.project.Domain)
}

// widgetCommand is the command that gives a project's widget its looks.
func widgetCommand(p api.Project) string {
	w := p.Widget
	words := []string{"docent project set", shellWord(string(p.ID))}
	for _, f := range [][2]string{{"accent", w.Accent}, {"accent-dark", w.AccentDark}, {"theme", w.Theme}, {"button", w.Button},
		{"label", w.Label}, {"language", w.Language}, {"greeting", w.Greeting}} {
		if f[1] != "" {
			words = append(words, "--widget-"+f[0], shellWord(f[1]))
		}
	}
	for _, q := range w.Suggestions {
		words = append(words, "--widget-suggestion", shellWord(q))
	}
	if len(words) == 2 {
		words = append(words, "--widget-accent", "'#1f6f5c'")
	}
	return strings.Join(words, " ")
}

// Show is a setting of the widget that is shown; empty where it has none. The element says so too, so that the preview
// takes nothing of what is stored.
func (w widgetView) Show(name string) string { return w.Shown[name] }
