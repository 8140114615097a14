// Package retrieval asks judged queries, which name the pages that answer them, and says how well a search does.
package retrieval

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// A Query names the pages that answer it.
type Query struct {
	ID       string   `json:"id,omitempty"`
	Corpus   string   `json:"corpus,omitempty"`
	Kind     string   `json:"kind,omitempty"`
	Query    string   `json:"query"`
	Relevant []string `json:"relevant"`
	Sections []string `json:"sections,omitempty"` // path#anchor
}

// Read reads judged queries, one JSON object a line. Blank lines and lines that begin with # are passed over.
func Read(r io.Reader) ([]Query, error) {
	var out []Query
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		var j Query
		if err := json.Unmarshal([]byte(line), &j); err != nil {
			return nil, fmt.Errorf("judged queries, line %d: %w", n, err)
		}
		if strings.TrimSpace(j.Query) == "" || len(j.Relevant) == 0 {
			return nil, fmt.Errorf("judged queries, line %d: query and relevant are required", n)
		}
		out = append(out, j)
	}
	return out, lines.Err()
}

// A Found is one result of a judged query.
type Found struct{ Path, Anchor string }

// An Outcome is how one judged query went.
type Outcome struct {
	Judged  Query
	Found   []Found
	Rank    int // of the first relevant page, from 1; 0 where it is not among the first ten
	Section int // of the first named section, from 1; 0 where it is not found or none is named
	NDCG    float64
	Recall  float64
	Took    time.Duration
}

// A Score sums up outcomes.
type Score struct {
	Queries  int           `json:"queries"`
	HitAt1   float64       `json:"hit@1"`
	HitAt5   float64       `json:"hit@5"`
	MRR      float64       `json:"mrr@10"`
	NDCG     float64       `json:"ndcg@10"`
	Recall   float64       `json:"recall@5"`
	Sections int           `json:"sectionQueries"` // queries that name a section
	Section1 float64       `json:"section@1"`
	Section5 float64       `json:"section@5"`
	P50      time.Duration `json:"p50"`
	P99      time.Duration `json:"p99"`
}

// Run asks every judged query once and judges the first ten pages. A search that fails ends it.
func Run(ctx context.Context, queries []Query,
	search func(context.Context, Query) ([]Found, error)) ([]Outcome, error) {
	out := make([]Outcome, 0, len(queries))
	for _, q := range queries {
		begin := time.Now()
		found, err := search(ctx, q)
		took := time.Since(begin)
		if err != nil {
			return out, fmt.Errorf("search %q: %w", q.Query, err)
		}
		out = append(out, judge(q, found, took))
	}
	return out, nil
}

func judge(q Query, found []Found, took time.Duration) Outcome {
	o := Outcome{Judged: q, Found: found, Took: took}
	seen := make(map[string]bool)
	var gain float64
	inFive := 0
	for _, f := range found {
		if seen[f.Path] {
			continue // a page counts at the rank of its first section
		}
		seen[f.Path] = true
		rank := len(seen)
		if rank > 10 {
			break
		}
		if o.Section == 0 && slices.Contains(q.Sections, f.Path+"#"+f.Anchor) {
			o.Section = rank
		}
		if !slices.Contains(q.Relevant, f.Path) {
			continue
		}
		o.Rank = cmp.Or(o.Rank, rank)
		if rank <= 5 {
			inFive++
		}
		gain += 1 / math.Log2(float64(rank)+1)
	}
	var ideal float64
	for i := range min(10, len(q.Relevant)) {
		ideal += 1 / math.Log2(float64(i)+2)
	}
	if ideal > 0 {
		o.NDCG = gain / ideal
		o.Recall = float64(inFive) / float64(len(q.Relevant))
	}
	return o
}

// Summarize gives the score of outcomes by the name that group gives each.
func Summarize(outcomes []Outcome, group func(Outcome) string) map[string]Score {
	parts := make(map[string][]Outcome)
	for _, o := range outcomes {
		parts[group(o)] = append(parts[group(o)], o)
	}
	out := make(map[string]Score, len(parts))
	for name, part := range parts {
		var s Score
		times := make([]time.Duration, 0, len(part))
		for _, o := range part {
			s.Queries++
			if o.Rank == 1 {
				s.HitAt1++
			}
			if o.Rank > 0 && o.Rank <= 5 {
				s.HitAt5++
			}
			if o.Rank > 0 {
				s.MRR += 1 / float64(o.Rank)
			}
			s.NDCG += o.NDCG
			s.Recall += o.Recall
			if len(o.Judged.Sections) > 0 {
				s.Sections++
				if o.Section == 1 {
					s.Section1++
				}
				if o.Section > 0 && o.Section <= 5 {
					s.Section5++
				}
			}
			times = append(times, o.Took)
		}
		n := float64(s.Queries)
		s.HitAt1, s.HitAt5, s.MRR, s.NDCG, s.Recall = s.HitAt1/n, s.HitAt5/n, s.MRR/n, s.NDCG/n, s.Recall/n
		if s.Sections > 0 {
			s.Section1, s.Section5 = s.Section1/float64(s.Sections), s.Section5/float64(s.Sections)
		}
		slices.Sort(times)
		s.P50, s.P99 = Quantile(times, 0.5), Quantile(times, 0.99)
		out[name] = s
	}
	return out
}

// Quantile is the value below which a share of sorted times lies.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
