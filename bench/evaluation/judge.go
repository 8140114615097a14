package evaluation

import (
	"path"
	"strings"
	"time"

	"docent/internal/brief"
)

// An Answer is what came of a question.
type Answer struct {
	Text     string   `json:"text"`
	Sources  []Source `json:"sources,omitempty"`
	Answered bool     `json:"answered"` // the assistant takes the documentation to have an answer
	Model    string   `json:"model,omitempty"`
	// FallbackFor is the model that was asked and could not answer.
	FallbackFor string        `json:"fallbackFor,omitempty"`
	Error       string        `json:"error,omitempty"`    // why there is no answer
	Degraded    []string      `json:"degraded,omitempty"` // what did not take part as it should have, and why
	Took        time.Duration `json:"took,omitempty"`
}

// A Source is a place that an answer cites. The path is empty if the index does not know it any more.
type Source struct {
	Path   string `json:"path,omitempty"`
	Anchor string `json:"anchor,omitempty"`
	URL    string `json:"url"`
	Title  string `json:"title,omitempty"`
}

// An Outcome is what kind of answer came.
type Outcome string

const (
	Answered Outcome = "answered"
	InDoubt  Outcome = "in doubt" // says that the documentation has no clear answer, and shows what comes closest
	Denied   Outcome = "denied"   // says that the documentation has none
	Failed   Outcome = "failed"
)

// Outcome is what kind of answer this is.
func (a *Answer) Outcome() Outcome {
	switch {
	case a.Error != "":
		return Failed
	case a.Answered:
		return Answered
	case len(a.Sources) > 0:
		return InDoubt
	}
	return Denied
}

// A Verdict is what is right and wrong about an answer. First, Cited and Held are nil if the question asks for no
// such thing.
type Verdict struct {
	Outcome Outcome  `json:"outcome"`
	Passed  bool     `json:"passed"`
	Open    bool     `json:"open,omitempty"`
	First   *bool    `json:"firstSource,omitempty"` // the first source is an expected one
	Cited   *bool    `json:"cited,omitempty"`       // one of the sources is
	Held    *bool    `json:"facts,omitempty"`       // the text holds every fact
	Why     []string `json:"why,omitempty"`         // what is wrong, in words
}

// Judge says what is right and wrong about an answer. A question that the documentation answers passes with an expected
// source among those that are cited and with every fact in the text, also below words of doubt; one that it does not
// answer passes where the answer says so.
func Judge(q *Question, a *Answer) Verdict {
	v := Verdict{Outcome: a.Outcome(), Open: q.Open}
	if v.Outcome == Failed {
		v.Why = append(v.Why, "failed: "+a.Error)
		return v
	}
	if q.Open {
		return v
	}
	if q.Unanswerable {
		if v.Passed = v.Outcome != Answered; !v.Passed {
			v.Why = append(v.Why, "answered, and the documentation does not say it")
		}
		return v
	}
	v.Passed = true
	wrong := func(format string) {
		v.Passed = false
		v.Why = append(v.Why, format)
	}
	if v.Outcome == Denied {
		wrong("denied, and the documentation answers it")
	}
	if len(q.Sources) > 0 {
		first, cited := false, false
		for i, s := range a.Sources {
			if expected(q.Sources, s) {
				cited, first = true, first || i == 0
			}
		}
		v.First, v.Cited = &first, &cited
		if !cited && v.Outcome != Denied {
			wrong("cites none of " + strings.Join(q.Sources, ", "))
		}
	}
	if len(q.Facts) > 0 {
		held := v.Outcome != Denied
		for _, f := range q.Facts {
			if v.Outcome != Denied && !f.held(a.Text) {
				held = false
				wrong("does not hold: " + f.String())
			}
		}
		v.Held = &held
	}
	return v
}

// held reports whether a text holds the fact, whatever its letters' case, its line breaks and Markdown's emphasis.
func (f Fact) held(text string) bool {
	if f.Matches != nil {
		return f.Matches.MatchString(text)
	}
	line, bare := folded(text), unmarked(text)
	for _, s := range f.Any {
		if strings.Contains(line, folded(s)) || strings.Contains(bare, unmarked(s)) {
			return true
		}
	}
	return false
}

var marks = strings.NewReplacer("*", "", "`", "", `\`, "")

func unmarked(s string) string { return folded(marks.Replace(s)) }

// expected reports whether a source is one of those that were written down.
func expected(wanted []string, s Source) bool {
	address, anchor, _ := strings.Cut(s.URL, "#")
	if s.Anchor != "" {
		anchor = s.Anchor
	}
	for _, w := range wanted {
		page, at, _ := strings.Cut(w, "#")
		if at != "" && at != anchor {
			continue
		}
		switch {
		case strings.Contains(page, "://"):
			if strings.TrimSuffix(page, "/") == strings.TrimSuffix(address, "/") {
				return true
			}
		case s.Path != "":
			if pageKey(page) == pageKey(s.Path) {
				return true
			}
		case pageKey(page) == pageKey(pathOf(address)):
			return true
		}
	}
	return false
}

// pathOf is the path of an address.
func pathOf(address string) string {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		_, address, _ = strings.Cut(rest, "/")
	}
	return address
}

// pageKey is a page's path without what people leave out: the slash before it, its extension and the name of an index.
func pageKey(p string) string {
	p = strings.Trim(p, "/")
	switch ext := strings.ToLower(path.Ext(p)); ext {
	case ".md", ".mdx", ".markdown", ".html", ".htm":
		p = p[:len(p)-len(ext)]
	}
	switch strings.ToLower(path.Base(p)) {
	case "index", "readme", "_index":
		p = path.Dir(p)
	}
	return strings.ToLower(strings.Trim(strings.TrimPrefix(p, "."), "/"))
}

// folded is a text on one line, in lower case.
func folded(s string) string { return brief.Line(strings.ToLower(s)) }
