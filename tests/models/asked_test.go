package models

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"docent/actors/thread"
	"docent/api"
	"docent/bench/corpora"
	"docent/internal/testing/need"
	"docent/model"
	"docent/model/builtin"
	"docent/search"
)

// An askedQuestion is one of a conversation, as a reader puts it, with the pages that answer it and what the text of
// an answer holds.
type askedQuestion struct {
	Corpus   string   `json:"corpus"`
	Kind     string   `json:"kind"`
	Before   []string `json:"before"` // what the reader has asked before
	Query    string   `json:"query"`
	Relevant []string `json:"relevant"`
	Holds    string   `json:"holds"`
}

// What each kind of question reaches: a right first source, a text that answers, a text or a card that does, at least;
// denied, at most. Before answers were short, texts held 11, 14, 42, 10, 8 and 14.
var askedBars = map[string]struct{ right, held, shown, denied int }{
	"comparison": {10, 11, 11, 1}, "error": {14, 14, 14, 2}, "follow-up": {41, 41, 41, 1}, "steps": {10, 9, 10, 1},
	"value": {5, 8, 8, 1}, "yes/no": {11, 12, 13, 1},
}

// An asker puts questions as a thread does: what is searched for, what is told and what is answered are its own.
type asker struct {
	library *search.Library
	indexed map[string]bool
	cards   string // of the last answer
}

func newAsker(t *testing.T) *asker {
	t.Helper()
	library, err := search.Open(t.TempDir(), search.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = library.Close() })
	return &asker{library: library, indexed: map[string]bool{}}
}

// ask answers a question after a conversation. Cited are the paths of its sources, in their order.
func (a *asker) ask(t *testing.T, corpus, question string, history []model.Message) (text string, cited []string,
	answered bool) {
	t.Helper()
	project := api.Project{ID: api.ProjectID(corpus), SiteURL: "https://docs.example"}
	if !a.indexed[corpus] {
		if _, err := a.library.Update(t.Context(), project, corpora.Judged(t, corpus), func(int, int) {}); err != nil {
			t.Fatal(err)
		}
		a.indexed[corpus] = true
	}
	b, err := thread.Preview(t.Context(), threadSearch{a.library}, project, question, thread.Wanted{}, history)
	if err != nil {
		t.Fatal(err)
	}
	a.cards = ""
	result, err := builtin.New("b").Answer(t.Context(), b.Request, func(d model.Delta) error {
		text += d.Text
		for _, c := range d.Cards {
			a.cards += "\n" + c.Text
		}
		for _, n := range d.Cite {
			if p := b.Request.Passages[n].Path; !slices.Contains(cited, p) {
				cited = append(cited, p)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return text, cited, result.Answered
}

// Questions of every kind, and follow-ups, are answered as they were: each kind keeps its share of right first sources
// and of texts that hold what answers. Every answer shows with -v.
func TestQuestionsOfEveryKindAreAnswered(t *testing.T) {
	need.Everything(t, "judges whole documentation sets")
	t.Parallel()
	var questions []askedQuestion
	readJSON(t, "testdata/asked.json", &questions)
	a := newAsker(t)
	type tally struct{ of, right, held, shown, denied, words int }
	tallies := map[string]*tally{}
	for _, q := range questions {
		var history []model.Message
		for _, before := range q.Before {
			text, _, _ := a.ask(t, q.Corpus, before, history)
			history = append(history, model.Message{Role: "user", Text: before}, model.Message{Role: "assistant", Text: text})
		}
		text, cited, answered := a.ask(t, q.Corpus, q.Query, history)
		n := tallies[q.Kind]
		if n == nil {
			n = new(tally)
			tallies[q.Kind] = n
		}
		n.of++
		right := len(cited) > 0 && slices.ContainsFunc(q.Relevant, func(p string) bool {
			return cited[0] == p || strings.HasSuffix(cited[0], "/"+p)
		})
		held := len(cited) > 0 && regexp.MustCompile(q.Holds).MatchString(text)
		if len(cited) > 0 && regexp.MustCompile(q.Holds).MatchString(text+a.cards) {
			n.shown++
		}
		if len(cited) == 0 {
			n.denied++
		} else {
			n.words += proseWords(text)
		}
		if right {
			n.right++
		}
		if held {
			n.held++
		}
		t.Logf("%s, %s: %s%s\nright %v, held %v (%s), answered %v, %d words, sources %v\n%s\n", q.Corpus, q.Kind,
			strings.Join(append(slices.Clone(q.Before), ""), " > "), q.Query, right, held, q.Holds, answered,
			proseWords(text), cited, text)
	}
	for _, kind := range slices.Sorted(maps.Keys(tallies)) {
		n, bar := tallies[kind], askedBars[kind]
		t.Logf("%s: %d of %d right, %d hold what answers, %d with their cards, %d denied, %d words", kind, n.right, n.of, n.held,
			n.shown, n.denied,
			n.words/max(1, n.of-n.denied))
		if n.right < bar.right || n.held < bar.held || n.shown < bar.shown || n.denied > cmp.Or(bar.denied, n.of) {
			t.Errorf("%s: the bars are %+v", kind, bar)
		}
	}
}

// proseWords are the words of a text without its code.
func proseWords(text string) int {
	n := 0
	for i, part := range strings.Split(text, "```") {
		if i%2 == 0 {
			n += len(strings.Fields(part))
		}
	}
	return n
}

// A threadSearch is a library whose indexes are all made.
type threadSearch struct{ *search.Library }

func (threadSearch) Indexed(context.Context, api.ProjectID) error { return nil }
