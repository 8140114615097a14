package insights

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"docent/actors/thread"
	"docent/api"
	"docent/internal/brief"
	"docent/model"
	"docent/search"
)

type playgroundView struct {
	Try       *try
	Empty     bool
	Problems  []api.Problem
	Setups    []trySetupView
	Columns   []*tryColumn
	Share     string // the address of all this
	MayChoose bool   // of all models
	MayFollow bool   // up on the answers that are shown
	Tuned     bool   // something of the configurations is not as usual
}

// A trySetupView is a configuration in the form.
type trySetupView struct {
	*trySetup
	Name    string
	Models  []tryModelOption
	Weights []tryWeightField
	Changed bool // some weight is not the default
}

type tryModelOption struct {
	Name, Value string
	Selected    bool
	Foreign     bool // neither the project's nor the built-in one
}

type tryWeightField struct {
	Field, Label, Hint, Value, Default string
	Most                               float64
}

// weightLabels name the weights for people.
var weightLabels = map[string][2]string{
	"title":         {"Words in titles", "beside 1 for words in the text"},
	"heading":       {"Words in headings", "beside 1 for words in the text"},
	"body":          {"Words in the text", "1 as it is"},
	"code":          {"Words in code", "beside 1 for words in the text"},
	"page_share":    {"Share of the whole page", "the rest of a score is its best section's"},
	"title_cover":   {"The title fits the query", ""},
	"heading_cover": {"The heading fits the query", ""},
	"heading_exact": {"The query is the heading", ""},
	"proximity":     {"Words stand close together", ""},
	"vote":          {"Other pages link here", ""},
	"neighbourhood": {"Near the reader's page", ""},
	"boost":         {"Raised by its author", "power of the page's boost"},
	"demotion":      {"Lowered by its author", "power of the page's boost below 1"},
}

func (s *handler) trySetupViews(t *try) []trySetupView {
	var out []trySetupView
	for i := range t.Setups {
		u := &t.Setups[i]
		v := trySetupView{trySetup: u, Name: "Configuration " + strings.ToUpper(u.Letter), Changed: len(u.Weights) > 0}
		v.Models = append(v.Models, tryModelOption{Name: "The project's (" + t.standard + ")", Selected: u.Model == ""})
		for _, c := range t.choices {
			if c.Name != t.standard {
				v.Models = append(v.Models, tryModelOption{Name: c.Name, Value: c.Name, Selected: u.Model == c.Name,
					Foreign: c.Name != t.builtinName})
			}
		}
		for _, w := range t.weights {
			number := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
			f := tryWeightField{Field: u.Letter + "." + w.Name, Label: w.Name, Value: number(w.Default), Default: number(w.Default),
				Most: w.Most}
			if label, ok := weightLabels[w.Name]; ok {
				f.Label, f.Hint = label[0], label[1]
			}
			if value, ok := u.Weights[w.Name]; ok {
				f.Value = number(value)
			}
			v.Weights = append(v.Weights, f)
		}
		out = append(out, v)
	}
	return out
}

// A tryColumn is what one configuration gives.
type tryColumn struct {
	Letter   string
	Setup    *trySetup
	Model    string
	As       string
	Problem  string // why there is nothing
	Took     time.Duration
	Searches []trySearchView
	Hits     []tryHitView
	Expected []tryExpectedView
	Prompt   *tryPromptView
	Answer   *tryAnswerView
	Gone     bool     // the answer was removed
	Then     *whyView // what was found when the question was asked, if that is something else
}

// Settings says what is not as usual.
func (c *tryColumn) Settings() string {
	var out []string
	if c.As == tryAnswer {
		out = append(out, "model "+c.Model)
	}
	if n := len(c.Setup.Weights); n > 0 {
		out = append(out, brief.Count(n, "changed weight"))
	} else {
		out = append(out, "usual ranking")
	}
	return strings.Join(out, ", ")
}

// TookText is how long searching took.
func (c *tryColumn) TookText() string { return tookText(c.Took) }

// compare notes the rank of what one configuration finds in the other's list.
func (v *playgroundView) compare() {
	if len(v.Columns) < 2 {
		return
	}
	first, second := v.Columns[0].Hits, v.Columns[1].Hits
	for i := range second {
		h := &second[i]
		at := slices.IndexFunc(first, func(o tryHitView) bool { return o.Path == h.Path && o.Anchor == h.Anchor })
		switch {
		case at < 0:
			h.Moved = "not in A"
		case at > i:
			h.Moved = fmt.Sprintf("up from %d", at+1)
		case at < i:
			h.Moved = fmt.Sprintf("down from %d", at+1)
		}
	}
	for i := range first {
		h := &first[i]
		if !slices.ContainsFunc(second, func(o tryHitView) bool { return o.Path == h.Path && o.Anchor == h.Anchor }) {
			h.Moved = "not in B"
		}
	}
}

// A trySearchView is what was understood of a query.
type trySearchView struct {
	Text     string
	Words    []tryUnderstoodWord
	LeftOut  []string
	Scope    []string // sentences: which version and language was searched
	Cut      bool
	Matching int
	Closely  int
}

type tryUnderstoodWord struct {
	Text, Share, Note string
	Missing           bool // no section has it
	Sections          int
}

// choices of a version or a language, in words. %s is its name.
var chosenBy = map[search.ChosenBy]string{
	search.ByFilter:   "%s, as chosen",
	search.ByPage:     "%s, as the page that the reader is on",
	search.ByQuestion: "%s, which the question is in",
	search.BySite:     "%s, the site's own",
	search.ByFit:      "%s, which fits best: nothing in the reader's language fits half as well",
	search.ByNobody:   "all",
	search.ByAbsence:  "%s, which the site does not have: nothing is searched",
}

func newTrySearchView(text string, e *search.Explanation) trySearchView {
	u := &e.Understood
	v := trySearchView{Text: text, LeftOut: u.LeftOut, Cut: u.Cut, Matching: u.Matching, Closely: u.Closely}
	choice := func(what string, c search.Choice, usual string) {
		format := chosenBy[c.By]
		if strings.Contains(format, "%s") {
			format = fmt.Sprintf(format, cmp.Or(c.Name, usual))
		}
		v.Scope = append(v.Scope, what+": "+format)
	}
	choice("Version", u.Version, "the current one")
	choice("Language", u.Language, "the only one")
	if u.Page != "" {
		v.Scope = append(v.Scope, "Reader's page: "+u.Page)
	}
	if len(u.Groups) > 0 {
		v.Scope = append(v.Scope, "Groups: "+strings.Join(u.Groups, ", "))
	}
	for _, w := range u.Words {
		x := tryUnderstoodWord{Text: w.Text, Share: sharePercent(w.Share), Missing: w.Sections == 0, Sections: w.Sections}
		by := map[search.Reading][]string{}
		for _, term := range w.Terms {
			by[term.Reading] = append(by[term.Reading], term.Text)
		}
		var notes []string
		for _, r := range []struct {
			reading search.Reading
			words   string
		}{{search.ReadCorrected, "read as"}, {search.ReadBegun, "also the beginning of"}, {search.ReadOtherForm, "also"},
			{search.ReadSynonym, "pages may say"}} {
			if list := by[r.reading]; len(list) > 0 {
				if len(list) > 8 {
					list = append(list[:8:8], fmt.Sprintf("%d more", len(list)-8))
				}
				notes = append(notes, r.words+" "+strings.Join(list, ", "))
			}
		}
		x.Note = strings.Join(notes, "; ")
		v.Words = append(v.Words, x)
	}
	return v
}

// A tryHitView is one section that was found.
type tryHitView struct {
	Column              string
	Rank                int
	Path, Anchor        string
	Title, Heading, URL string
	Crumbs              string
	Version, Language   string
	Score               string
	Bar                 string // the score as a width
	Parts               []tryPartView
	Words               []tryWordView
	Content             string
	More                bool // the content is longer
	Moved               string
	Given               string // how the model has it
}

type tryPartView struct {
	Name, Amount, Bar string
	Less              bool
}

type tryWordView struct{ Text, Amount, Fields, Bar string }

var partNames = map[search.PartKind]string{
	search.PartSection:   "Words in this section",
	search.PartPage:      "Words on the whole page",
	search.PartTitle:     "The title fits the query",
	search.PartHeading:   "The heading fits the query",
	search.PartExact:     "The query is the heading",
	search.PartProximity: "The words stand close together",
	search.PartStart:     "The title begins with the query",
	search.PartNear:      "Near the reader's page",
	search.PartMeaning:   "Means what the question does, beside its words",
	search.PartLinks:     "Linked from other pages found",
	search.PartLimit:     "Bounded to 0 … 1",
}

func newTryHitView(rank int, h *search.Hit, x *search.Explained, u *search.Understood) tryHitView {
	v := tryHitView{Rank: rank, Path: h.Path, Anchor: h.Anchor, Title: h.Title, Heading: h.Heading, URL: safeURL(h.URL),
		Crumbs: strings.Join(h.Crumbs, " › "), Version: h.Version, Language: h.Language, Score: scoreText(h.Score),
		Bar: barWidth(h.Score), Content: brief.Bytes(h.Content, 700, " …"), More: len(h.Content) > 700}
	if x != nil {
		v.Parts, v.Words = tryPartViews(x.Parts), tryWordViews(x.Words, u)
	}
	return v
}

func tryPartViews(parts []search.Part) []tryPartView {
	var out []tryPartView
	for _, p := range parts {
		v := tryPartView{Name: cmp.Or(partNames[p.Kind], string(p.Kind)), Amount: scoreText(p.Amount), Bar: barWidth(p.Amount),
			Less: p.Amount < 0}
		switch {
		case p.Kind == search.PartBoost && p.Amount < 0:
			v.Name = "Lowered by its author"
		case p.Kind == search.PartBoost:
			v.Name = "Raised by its author"
		case p.Kind == search.PartLinks:
			v.Name = fmt.Sprintf("Linked from %s found", brief.Count(p.Count, "other page"))
		}
		if v.Less {
			v.Amount, v.Bar = "−"+scoreText(-p.Amount), barWidth(-p.Amount)
		} else {
			v.Amount = "+" + v.Amount
		}
		out = append(out, v)
	}
	return out
}

func tryWordViews(words []search.WordIn, u *search.Understood) []tryWordView {
	var out []tryWordView
	for _, w := range words {
		v := tryWordView{Text: u.Words[w.Word].Text, Amount: scoreText(w.Amount), Bar: barWidth(w.Amount),
			Fields: strings.Join(w.Fields, ", ")}
		var through []string
		for _, term := range w.Through {
			through = append(through, fmt.Sprintf("%s (%s)", term.Text, term.Reading))
		}
		if len(through) > 0 {
			v.Text += ": the page says " + strings.Join(through[:min(len(through), 6)], ", ")
		}
		out = append(out, v)
	}
	return out
}

// An tryExpectedView says why a page is found or not.
type tryExpectedView struct {
	Path, Title, URL, Text string
	Found                  bool
	Parts                  []tryPartView
	Words                  []tryWordView
}

func tryExpectedViews(e *search.Explanation) []tryExpectedView {
	var out []tryExpectedView
	for _, x := range e.Expected {
		v := tryExpectedView{Path: x.Path, Title: x.Title, URL: safeURL(x.URL), Found: x.Why == search.StandsFound,
			Parts: tryPartViews(x.Parts), Words: tryWordViews(x.Words, &e.Understood)}
		switch x.Why {
		case search.StandsFound:
			v.Text = fmt.Sprintf("It is number %d of the pages found, with a score of %s.", x.Rank, scoreText(x.Score))
		case search.StandsUnknown:
			v.Text = "The index has no such page. Is it published, and was the source read since it was written?"
		case search.StandsHidden:
			v.Text = "The site keeps it from searches: it is hidden, or another page shows the same."
		case search.StandsGroups:
			v.Text = "It is restricted to " + x.Detail + ", and the reader who is tried here is not in that group."
		case search.StandsTag:
			v.Text = "It does not have the tag that is asked for."
		case search.StandsEdition:
			v.Text = "It is of another version or language (" + cmp.Or(x.Detail, "it names none") + ") than what is searched."
		case search.StandsWordless:
			v.Text = "None of the words that were looked for is on it."
		case search.StandsFar:
			v.Text = "Its words count too little: only the best pages are looked at closely, and it is not among them."
		case search.StandsBelow:
			v.Text = fmt.Sprintf("It is number %d, below those that are shown, with a score of %s.", x.Rank, scoreText(x.Score))
		case search.StandsThreshold:
			v.Text = fmt.Sprintf("Its score of %s is below the threshold.", scoreText(x.Score))
		}
		out = append(out, v)
	}
	return out
}

// A tryPromptView is what a model got, or would get.
type tryPromptView struct {
	Model    string
	Remote   *model.RemotePrompt
	Body     string
	Judged   *model.Judgement
	Facts    [][2]string
	Quoted   []tryQuotedView
	Scripted bool
}

type tryQuotedView struct{ Label, Text string }

func newTryPromptView(p *model.Prompt, req *model.Request) *tryPromptView {
	v := &tryPromptView{Model: p.Model, Remote: p.Remote, Judged: p.Judged, Scripted: p.Remote == nil && p.Judged == nil}
	switch {
	case p.Remote != nil:
		r := p.Remote
		v.Facts = [][2]string{
			{"Provider", p.Provider}, {"Name there", r.Named},
			{"Passages that fit", fmt.Sprintf("%d of %d", len(r.Given), len(req.Passages))},
			{"Prompt", fmt.Sprintf("%d tokens at most, of a window of %d", r.Tokens, r.Window)},
			{"Answer", fmt.Sprintf("%d tokens at most", r.MaxTokens)},
			{"Own searches", fmt.Sprintf("%d at most", r.Searches)},
		}
		var b bytes.Buffer
		if json.Indent(&b, r.Body, "", "  ") == nil {
			v.Body = b.String()
		}
	case p.Judged != nil:
		j := p.Judged
		v.Facts = [][2]string{
			{"Read as", j.Question}, {"Verdict", string(j.Verdict)},
		}
		sums := [][2]string{
			{"Best passage, by the search", scoreText(j.Search)},
			{"Of the question in one passage", scoreText(j.Held)},
			{"A name that this passage lacks", scoreText(j.Missing)},
			{"Together", fmt.Sprintf("%.2f; answered from %.2f on, in doubt from %.2f on", j.Sum, j.Answers, j.Doubts)},
		}
		if j.Opening != "" {
			sums = [][2]string{{"First question", j.Opening + "; it goes by the site's own places, not by words"}}
		}
		v.Facts = append(v.Facts, sums...)
		for _, q := range j.Quoted {
			v.Quoted = append(v.Quoted, tryQuotedView{req.Passages[q.Passage].Label(), q.Text})
		}
	}
	return v
}

// uses says what becomes of a passage of the request.
func (v *tryPromptView) uses(passage int) string {
	switch {
	case v.Remote != nil:
		if n := slices.Index(v.Remote.Given, passage); n >= 0 {
			return fmt.Sprintf("[%d] in the prompt", n+1)
		}
		return "no room in the prompt"
	case v.Judged != nil && slices.ContainsFunc(v.Judged.Quoted, func(q model.Quote) bool { return q.Passage == passage }):
		return "quoted"
	}
	return ""
}

// An tryAnswerView is an answer as it stands.
type tryAnswerView struct {
	Thread   api.ThreadID
	Base     string
	Asked    time.Time
	Done     bool
	Text     string // while it is being written
	HTML     template.HTML
	Error    string
	Answered bool
	InDoubt  bool
	Model    string
	Instead  string // of the model that was asked and could not answer
	Degraded []string
	Steps    string // as JSON
	Sources  []thread.Source
	Timings  *timingsView
	Before   []string        // questions of the conversation before it
	Mine     bool            // the visitor has asked
	exchange thread.Exchange // once it is done
	history  []model.Message // that the model was told
}

// Stopped reports whether somebody has ended it.
func (a *tryAnswerView) Stopped() bool { return a.Error == thread.Stopped }

// scoreText is a score as it is shown.
func scoreText(f float64) string { return strconv.FormatFloat(f, 'f', 3, 64) }

// barWidth is a share of 1 as a part of 100.
func barWidth(f float64) string { return strconv.FormatFloat(100*min(1, max(0, f)), 'f', 1, 64) }

func sharePercent(f float64) string { return strconv.FormatFloat(100*f, 'f', 0, 64) + "%" }

// tookText is a duration as people read it.
func tookText(d time.Duration) string {
	switch {
	case d < 50*time.Microsecond:
		return "under 0.1 ms"
	case d < 10*time.Millisecond:
		return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 1, 64) + " ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return d.Round(time.Second).String()
}

// safeURL leaves of an address only what a link may lead to: a page of the web, or of this host.
func safeURL(address string) string {
	if strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://") ||
		strings.HasPrefix(address, "/") && !strings.HasPrefix(address, "//") {
		return address
	}
	return ""
}
