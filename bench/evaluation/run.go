package evaluation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"docent/internal/background"
)

// A Run is what came of all questions at one time.
type Run struct {
	Format  int       `json:"format"`
	At      time.Time `json:"at"`
	Model   string    `json:"model,omitempty"` // that was asked for; the project's if empty
	Results []Result  `json:"results"`
}

// A Result is an answer and what is right and wrong about it.
type Result struct {
	ID      string   `json:"id"`
	Kind    string   `json:"kind"`
	Tags    []string `json:"tags,omitempty"`
	Ask     string   `json:"ask"`
	Answer  Answer   `json:"answer"`
	Verdict Verdict  `json:"verdict"`

	question Question
}

// Question is what was asked. It is empty in runs that were read from a file.
func (r *Result) Question() Question { return r.question }

// runFormat is the form of saved runs.
const runFormat = 1

// Ask puts one conversation and gives an answer to each of its questions.
type Ask func(ctx context.Context, conversation []Question) ([]Answer, error)

// Do puts every conversation, at most atOnce at a time, and judges the answers. Done is told how many questions have
// their answer. An error of ask ends the run: an answer that fails is an Answer with its Error.
func (s Set) Do(ctx context.Context, atOnce int, ask Ask, done func(n, of int)) ([]Result, error) {
	results := make([][]Result, len(s.Conversations))
	finished := make(chan int)
	of := len(s.Questions())
	told := make(chan struct{})
	background.Go("bench/evaluation.Do", func() {
		defer close(told)
		n := 0
		for k := range finished {
			n += k
			done(n, of)
		}
	})
	group, ctx := background.WithContext(ctx)
	group.SetLimit(max(1, atOnce))
	for i, conversation := range s.Conversations {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			answers, err := ask(ctx, conversation)
			if err != nil {
				return fmt.Errorf("ask %q: %w", conversation[0].Ask, err)
			}
			if len(answers) != len(conversation) {
				return fmt.Errorf("ask %q: %d answers came to %d questions", conversation[0].Ask, len(answers),
					len(conversation))
			}
			for k := range conversation {
				results[i] = append(results[i], result(&conversation[k], answers[k]))
			}
			finished <- len(answers)
			return nil
		})
	}
	err := group.Wait()
	close(finished)
	<-told
	return slices.Concat(results...), err
}

func result(q *Question, a Answer) Result {
	return Result{ID: q.ID, Kind: q.Kind, Tags: q.Tags, Ask: q.Ask, Answer: a, Verdict: Judge(q, &a),
		question: *q}
}

// ReadRun reads a run that was saved, and judges its answers by the questions as they are now: what was written better
// since then is no change of the answers. Questions that it does not have, and answers to questions that are gone, are
// left out.
func (s Set) ReadRun(file string, src []byte) (Run, error) {
	var r Run
	if err := json.Unmarshal(src, &r); err != nil {
		return r, fmt.Errorf("%s is no saved run (`docent eval answers … --save FILE` writes one): %w", file, err)
	}
	if r.Format != runFormat {
		return r, fmt.Errorf("%s is a run of format %d, and this program reads %d: save it again", file, r.Format, runFormat)
	}
	answers := map[string]Result{}
	for _, saved := range r.Results {
		answers[saved.ID] = saved
	}
	r.Results = nil
	for _, q := range s.Questions() {
		if saved, ok := answers[q.ID]; ok && saved.Ask == q.Ask {
			r.Results = append(r.Results, result(&q, saved.Answer))
		}
	}
	return r, nil
}

// NewRun is a run of now.
func NewRun(model string, at time.Time, results []Result) Run {
	return Run{Format: runFormat, At: at.UTC().Truncate(time.Second), Model: model, Results: results}
}

// A Score sums up results. The first numbers are of all; the ones below are only of those that ask for such a thing.
type Score struct {
	Questions int `json:"questions"`
	Judged    int `json:"judged"` // those that are not open
	Passed    int `json:"passed"`
	InDoubt   int `json:"inDoubt"`
	Denied    int `json:"denied"`
	Failed    int `json:"failed"`

	First Share `json:"firstSource"`
	Cited Share `json:"cited"`
	Held  Share `json:"facts"`

	P50 time.Duration `json:"p50"`
	P95 time.Duration `json:"p95"`
}

// A Share is how many of how many.
type Share struct {
	N  int `json:"n"`
	Of int `json:"of"`
}

func (s *Share) add(ok *bool) {
	if ok == nil {
		return
	}
	s.Of++
	if *ok {
		s.N++
	}
}

// PassRate is the share of judged questions that passed; 1 if none is judged.
func (s *Score) PassRate() float64 {
	if s.Judged == 0 {
		return 1
	}
	return float64(s.Passed) / float64(s.Judged)
}

// Summarize gives the score of all results, and of each group.
func Summarize(results []Result, group func(*Result) string) (all Score, groups map[string]Score) {
	parts := map[string][]*Result{}
	var every []*Result
	for i := range results {
		name := group(&results[i])
		parts[name] = append(parts[name], &results[i])
		every = append(every, &results[i])
	}
	groups = map[string]Score{}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		groups[name] = score(parts[name])
	}
	return score(every), groups
}

func score(results []*Result) (s Score) {
	var times []time.Duration
	for _, r := range results {
		v := &r.Verdict
		s.Questions++
		if !v.Open {
			s.Judged++
		}
		if v.Passed {
			s.Passed++
		}
		switch v.Outcome {
		case InDoubt:
			s.InDoubt++
		case Denied:
			s.Denied++
		case Failed:
			s.Failed++
		}
		s.First.add(v.First)
		s.Cited.add(v.Cited)
		s.Held.add(v.Held)
		times = append(times, r.Answer.Took)
	}
	slices.Sort(times)
	s.P50, s.P95 = quantile(times, 0.5), quantile(times, 0.95)
	return s
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// A Comparison is what changed from one run to another, question by question. Better and worse are those that pass in
// one of them alone; moved are those whose verdict is the same for another reason, or with another first source.
type Comparison struct {
	Better []Pair `json:"better"`
	Worse  []Pair `json:"worse"`
	Moved  []Pair `json:"moved,omitempty"`
	Same   int    `json:"same"`
	New    int    `json:"new"` // questions that the first run does not have
	// Chance is how likely so uneven a split of better and worse is where nothing has changed but luck: the two-sided sign
	// test.
	Chance float64 `json:"chance"`
}

// A Pair is one question's result before and after.
type Pair struct {
	ID     string `json:"id"`
	Ask    string `json:"ask"`
	Before Result `json:"before"`
	After  Result `json:"after"`
}

// Compare pairs the results of two runs.
func Compare(before, after []Result) Comparison {
	old := map[string]Result{}
	for _, r := range before {
		old[r.ID] = r
	}
	c := Comparison{Better: []Pair{}, Worse: []Pair{}}
	for _, now := range after {
		was, ok := old[now.ID]
		p := Pair{now.ID, now.Ask, was, now}
		switch {
		case !ok:
			c.New++
		case !was.Verdict.Passed && now.Verdict.Passed:
			c.Better = append(c.Better, p)
		case was.Verdict.Passed && !now.Verdict.Passed:
			c.Worse = append(c.Worse, p)
		case moved(&was.Verdict, &now.Verdict):
			c.Moved = append(c.Moved, p)
		default:
			c.Same++
		}
	}
	c.Chance = signTest(len(c.Better), len(c.Worse))
	return c
}

func moved(a, b *Verdict) bool {
	differ := func(x, y *bool) bool { return x != nil && y != nil && *x != *y }
	return a.Outcome != b.Outcome || differ(a.First, b.First) || differ(a.Cited, b.Cited) || differ(a.Held, b.Held)
}

// signTest is the probability that of n fair coins as many or more fall on one side, whichever.
func signTest(a, b int) float64 {
	n, sum := float64(a+b), 0.0
	for k := range min(a, b) + 1 {
		of, _ := math.Lgamma(n + 1)
		in, _ := math.Lgamma(float64(k) + 1)
		out, _ := math.Lgamma(n - float64(k) + 1)
		sum += math.Exp(of - in - out - n*math.Ln2)
	}
	return min(1, 2*sum)
}
