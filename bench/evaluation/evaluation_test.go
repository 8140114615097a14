package evaluation_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"docent/bench/evaluation"
)

const file = `
questions:
  - ask: How do I rotate a key?
    kind: how-to
    tags: [keys]
    sources: [guides/keys.md#rotate]
    facts:
      - docent key rotate
      - any: [24 hours, one day]
      - matches: 'v?2\.\d+'
    version: v2
  - ask: Can keys be shared?
    unanswerable: true
  - conversation:
      - ask: What is a project?
        sources: https://docs.example.com/concepts/projects
      - {ask: "and a job?", id: job, facts: instruction}
      - {ask: why?, open: true}
`

func read(t *testing.T, text string) evaluation.Set {
	t.Helper()
	set, err := evaluation.Read("q.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestAFileIsReadWithConversationsAndIDs(t *testing.T) {
	t.Parallel()
	set := read(t, file)
	var got []string
	for _, c := range set.Conversations {
		for _, q := range c {
			got = append(got, fmt.Sprintf("%d %s %s", q.Line, q.ID, q.Kind))
		}
	}
	want := []string{"3 how-do-i-rotate-a-key how-to", "12 can-keys-be-shared unanswerable",
		"15 what-is-a-project question", "17 job follow-up", "18 why follow-up"}
	if !slices.Equal(got, want) || len(set.Conversations) != 3 {
		t.Errorf("%q, want %q", got, want)
	}
	if q := set.Conversations[0][0]; q.Version != "v2" || len(q.Facts) != 3 || q.Tags[0] != "keys" {
		t.Errorf("%+v", q)
	}
}

// What is wrong with a file is told with its line, its field and what to write instead, all of it at once.
func TestProblemsNameLineFieldAndFix(t *testing.T) {
	t.Parallel()
	for text, wants := range map[string][]string{
		"":                         {"q.yaml: has no questions: begin the file with `questions:`"},
		"questions: yes":           {"q.yaml:1: questions: must be a list"},
		"- ask: x":                 {"has no questions"},
		"questions:\n  - ask: [":   {"q.yaml: is no YAML"},
		"questions:\n  - What?":    {`q.yaml:2: questions[0]: must be an entry with`},
		"questions:\n  - ask: x\n": {"q.yaml:2: questions[0]: says nothing to judge the answer by: add `sources:`"},
		"questions:\n  - ask: x\n    soruces: [a]\n    facts: [{matches: '('}, {any: []}, {one: 1}, [x]]\n": {
			"q.yaml:3: questions[0].soruces: is unknown; there are id, ask, kind",
			"q.yaml:4: questions[0].facts[0].matches: is no regular expression (RE2)", "questions[0].facts[1].any: must have at least one",
			"questions[0].facts[2].one: is unknown", "questions[0].facts[3]: must be a string, `any:` or `matches:`, not a list"},
		"questions:\n  - {ask: x, sources: [a], unanswerable: true}\n":                 {"questions[0].unanswerable: a question that"},
		"questions:\n  - {ask: x, facts: [a], id: i}\n  - {ask: y, facts: [a], id: i}": {"q.yaml:3: questions[1].id: is that of line 2 too"},
		"questions:\n  - {ask: x, ask: y, open: maybe}":                                {"stands twice", "questions[0].open: must be true or false"},
		"questions:\n  - conversation: []":                                             {"questions[0].conversation: must be a list of 1 to 10"},
		strings.Repeat("[", 300):                                                       {"is no YAML: the YAML is nested deeper"},
	} {
		_, err := evaluation.Read("q.yaml", []byte(text))
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v\nwant %s", text, err, want)
			}
		}
	}
}

func judged(t *testing.T, question string, a evaluation.Answer) evaluation.Verdict {
	t.Helper()
	q := read(t, "questions:\n  - "+question).Questions()[0]
	return evaluation.Judge(&q, &a)
}

func TestAnswersAreJudged(t *testing.T) {
	t.Parallel()
	keys := evaluation.Source{Path: "guides/keys.md", Anchor: "rotate", URL: "https://d.example/guides/keys#rotate"}
	other := evaluation.Source{URL: "https://d.example/other/"}
	const rotate = `{ask: x, sources: [guides/keys], facts: [docent key rotate, {any: [24 hours, one day]}]}`
	text := "Run **docent** `key rotate`;\nthe old one works for 24\nhours."
	for _, c := range []struct {
		name, question string
		answer         evaluation.Answer
		passed         bool
		first          string
		why            string
	}{
		{"right", rotate, evaluation.Answer{Answered: true, Text: text, Sources: []evaluation.Source{keys, other}}, true, "true", ""},
		{"the second source", rotate, evaluation.Answer{Answered: true, Text: text, Sources: []evaluation.Source{other, keys}}, true, "false", ""},
		{"below words of doubt", rotate, evaluation.Answer{Text: text, Sources: []evaluation.Source{keys}}, true, "true", ""},
		{"another page", rotate, evaluation.Answer{Answered: true, Text: text, Sources: []evaluation.Source{other}}, false, "false",
			"cites none of guides/keys"},
		{"without the fact", rotate, evaluation.Answer{Answered: true, Text: "Rotate it.", Sources: []evaluation.Source{keys}}, false,
			"true", "does not hold: docent key rotate; does not hold: 24 hours | one day"},
		{"denied", rotate, evaluation.Answer{Text: "docent key rotate, one day"}, false, "false", "denied, and the documentation answers it"},
		{"failed", rotate, evaluation.Answer{Text: text, Answered: true, Error: "no model", Sources: []evaluation.Source{keys}}, false,
			"", "failed: no model"},
		{"the section", `{ask: x, sources: ["guides/keys.md#rotate"]}`, evaluation.Answer{Answered: true, Sources: []evaluation.Source{keys}}, true, "true", ""},
		{"another section", `{ask: x, sources: ["guides/keys.md#revoke"]}`, evaluation.Answer{Answered: true,
			Sources: []evaluation.Source{keys}}, false, "false", "cites none of"},
		{"an address", `{ask: x, sources: ["https://d.example/other"]}`, evaluation.Answer{Answered: true, Sources: []evaluation.Source{other}}, true, "true", ""},
		{"a path that only the address tells", `{ask: x, sources: [other/index.mdx]}`, evaluation.Answer{Answered: true,
			Sources: []evaluation.Source{other}}, true, "true", ""},
		{"a page of the same name elsewhere", `{ask: x, sources: [keys.md]}`, evaluation.Answer{Answered: true,
			Sources: []evaluation.Source{keys}}, false, "false", "cites none of"},
		{"an expression", `{ask: x, facts: [{matches: 'FOR 24\s+hours'}]}`, evaluation.Answer{Answered: true, Text: text}, true, "", ""},
		{"none there is", `{ask: x, unanswerable: true}`, evaluation.Answer{Text: "It does not say."}, true, "", ""},
		{"none there is, in doubt", `{ask: x, unanswerable: true}`, evaluation.Answer{Sources: []evaluation.Source{other}}, true, "", ""},
		{"answered all the same", `{ask: x, unanswerable: true}`, evaluation.Answer{Answered: true, Sources: []evaluation.Source{other}},
			false, "", "answered, and the documentation does not say it"},
		{"open", `{ask: x, open: true}`, evaluation.Answer{Answered: true}, false, "", ""},
	} {
		v := judged(t, c.question, c.answer)
		first := ""
		if v.First != nil {
			first = fmt.Sprint(*v.First)
		}
		if v.Passed != c.passed || first != c.first || c.why == "" && len(v.Why) > 0 ||
			!strings.Contains(strings.Join(v.Why, "; "), c.why) {
			t.Errorf("%s: %+v, first %q", c.name, v, first)
		}
	}
}

func TestARunAsksBoundedlyAndKeepsTheOrder(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("questions:\n")
	for i := range 40 {
		fmt.Fprintf(&text, "  - {ask: question %d, facts: [f%d]}\n", i, i)
	}
	set := read(t, text.String())
	var running, most, told atomic.Int64
	gate := make(chan struct{}, 3)
	results, err := set.Do(t.Context(), 3, func(_ context.Context, c []evaluation.Question) ([]evaluation.Answer, error) {
		most.Store(max(most.Load(), running.Add(1)))
		gate <- struct{}{}
		<-gate
		running.Add(-1)
		return []evaluation.Answer{{Answered: true, Text: "f" + strings.TrimPrefix(c[0].Ask, "question "), Took: time.Second}}, nil
	}, func(n, of int) { told.Store(int64(n)) })
	if err != nil || len(results) != 40 || most.Load() > 3 || told.Load() != 40 {
		t.Fatalf("%d results, %d at once, told %d: %v", len(results), most.Load(), told.Load(), err)
	}
	for i, r := range results {
		if r.Ask != fmt.Sprintf("question %d", i) || !r.Verdict.Passed {
			t.Errorf("%d: %+v", i, r)
		}
	}
	all, _ := evaluation.Summarize(results, func(r *evaluation.Result) string { return r.Kind })
	if all.Passed != 40 || all.PassRate() != 1 || all.P95 != time.Second || all.Held != (evaluation.Share{N: 40, Of: 40}) {
		t.Errorf("%+v", all)
	}
	broken := errors.New("gone")
	if _, err := set.Do(t.Context(), 2, func(context.Context, []evaluation.Question) ([]evaluation.Answer, error) {
		return nil, broken
	}, func(int, int) {}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func results(t *testing.T, set *evaluation.Set, texts map[string]string) []evaluation.Result {
	t.Helper()
	list, err := set.Do(t.Context(), 1, func(_ context.Context, c []evaluation.Question) ([]evaluation.Answer, error) {
		return []evaluation.Answer{{Answered: true, Text: texts[c[0].ID]}}, nil
	}, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestRunsAreComparedByQuestion(t *testing.T) {
	t.Parallel()
	set := read(t, "questions:\n  - {ask: a, facts: [x]}\n  - {ask: b, facts: [x]}\n  - {ask: c, facts: [x]}\n  - {ask: d, facts: [x]}\n")
	before := results(t, &set, map[string]string{"a": "x", "b": "-", "c": "x"})
	after := results(t, &set, map[string]string{"a": "-", "b": "x", "c": "x", "d": "-"})
	c := evaluation.Compare(before[:3], after)
	if len(c.Better) != 1 || c.Better[0].ID != "b" || len(c.Worse) != 1 || c.Worse[0].Before.Answer.Text != "x" || c.Same != 1 ||
		c.New != 1 || c.Chance != 1 {
		t.Errorf("%+v", c)
	}
}

// A saved run is judged by the file as it is now, so that a fact that was written better is no change of the answers.
func TestASavedRunIsJudgedByTheQuestionsOfNow(t *testing.T) {
	t.Parallel()
	set := read(t, "questions:\n  - {ask: a, facts: [z]}\n")
	src := `{"format": 1, "results": [{"id": "a", "ask": "a", "answer": {"text": "x", "answered": true}, "verdict": {"passed": true}},
		{"id": "gone", "ask": "gone"}]}`
	run, err := set.ReadRun("r.json", []byte(src))
	if err != nil || len(run.Results) != 1 || run.Results[0].Verdict.Passed {
		t.Fatalf("%+v, %v", run, err)
	}
	for text, want := range map[string]string{"[": "is no saved run", `{"format": 2}`: "format 2, and this program reads 1"} {
		if _, err := set.ReadRun("r.json", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestChanceIsThatOfTheSignTest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		better, worse int
		want          float64
	}{{0, 0, 1}, {1, 0, 1}, {5, 0, 0.0625}, {6, 0, 0.03125}, {8, 2, 0.109375}, {10, 10, 1}, {1000, 900, 0.0231}} {
		var text strings.Builder
		text.WriteString("questions:\n")
		was, now := map[string]string{}, map[string]string{}
		for i := range c.better + c.worse {
			id := fmt.Sprintf("q%d", i)
			fmt.Fprintf(&text, "  - {ask: x, id: %s, facts: [x]}\n", id)
			if i < c.better {
				now[id] = "x"
			} else {
				was[id] = "x"
			}
		}
		if c.better+c.worse == 0 {
			text.WriteString("  - {ask: x, facts: [x]}\n")
		}
		set := read(t, text.String())
		got := evaluation.Compare(results(t, &set, was), results(t, &set, now)).Chance
		if math.Abs(got-c.want) > 0.0005 {
			t.Errorf("%d better, %d worse: %v, want %v", c.better, c.worse, got, c.want)
		}
	}
}

// What is written of rated answers can be read again, says nothing of who asked, and leaves what was disliked open.
func TestRatedAnswersBecomeAFile(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	err := evaluation.WriteRated(&b, []evaluation.Rated{
		{Question: "How do I rotate a key: {now}?", Answer: "Run `docent key rotate` and see `guides`.\n```\n`not this`\n```", Sources: []string{"guides/keys.md"}, Up: true},
		{Question: "I am jo@example.com at 10.0.0.7, call +49 30 1234567, key sk_live_abcdefghijklmnop1234, why https://u:p@h.example/x?token=1#y ?",
			Before: []string{"First?"}, Comment: "mail me: jo@example.com\nplease", Answer: "No."},
		{Question: "Does it fly?", Answer: "The documentation does not answer this.", Up: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, leak := range []string{"jo@", "10.0.0.7", "1234567", "abcdefghijklmnop", "token", "u:p", "not this"} {
		if strings.Contains(b.String(), leak) {
			t.Errorf("%q is in\n%s", leak, b.String())
		}
	}
	set := read(t, b.String())
	list := set.Questions()
	if len(list) != 4 || list[0].Ask != "How do I rotate a key: {now}?" || list[0].Facts[0].String() != "docent key rotate" ||
		list[0].Sources[0] != "guides/keys.md" || !list[1].Open || !list[2].Open || !list[3].Unanswerable {
		t.Errorf("%+v\n%s", list, b.String())
	}
	if !strings.Contains(b.String(), "# a reader: mail me: [mail] please") {
		t.Errorf("no comment in\n%s", b.String())
	}
}
