package search

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/api"
	sets "docent/bench/corpora"
	"docent/bench/retrieval"
	"docent/search/meaning"
)

var (
	measured      = flag.String("meaning", "", "measure with the embeddings of this endpoint, such as http://127.0.0.1:8431/v1 of tests/testdata/clients/embeddings/server.mjs")
	measuredModel = flag.String("meaning-model", "use-lite", "the endpoint's name of the model")
	measuredSets  = flag.String("meaning-sets", "", "only these published sets, with commas between them")
	measuredIn    = flag.String("meaning-dir", "", "keep the index and its vectors in this folder, for the next time")
)

// An atEndpoint asks an endpoint of embeddings, as plainly as can be.
type atEndpoint struct{ url, model string }

func (a atEndpoint) Model() meaning.Model { return meaning.Model{Name: a.model, Longest: 600} }
func (a atEndpoint) Batch() int           { return 32 }
func (a atEndpoint) Like(m meaning.Model) meaning.Embedder {
	return atEndpoint{a.url, m.Name}
}

func (a atEndpoint) Sections(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"model": a.model, "input": texts})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/embeddings", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct {
		Data []struct{ Embedding []float32 }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if len(answer.Data) != len(texts) {
		return nil, fmt.Errorf("%s: %d vectors for %d texts", resp.Status, len(answer.Data), len(texts))
	}
	out := make([][]float32, len(texts))
	for i, d := range answer.Data {
		out[i] = d.Embedding
	}
	return out, nil
}

func (a atEndpoint) Question(ctx context.Context, text string) ([]float32, error) {
	list, err := a.Sections(ctx, []string{text})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// embedded waits until the vectors of a project are all there.
func embedded(t testing.TB, l *Library, project api.ProjectID) {
	t.Helper()
	for {
		m := l.near.Load().work.state(project)
		if !m.Working && m.Sections > 0 && m.Embedded == m.Sections {
			return
		}
		if m.Problem != "" {
			t.Fatal(errors.New(m.Problem))
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestMeaningMeasured prints what meaning gains and costs by kind of query, on the published sets that blends were
// chosen on (dev) and on those that they were not (held, people): docs/measurements/2026-11-meaning.md.
func TestMeaningMeasured(t *testing.T) {
	if *measured == "" {
		t.Skip("no endpoint is named: go test ./search -run TestMeaningMeasured -args -meaning URL")
	}
	dir := *measuredIn
	if dir == "" {
		dir = t.TempDir()
	}
	l, err := Open(dir, Options{Log: quiet(), Embedder: atEndpoint{*measured, *measuredModel}, IdleAfter: -1,
		MeaningInBoxes: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var queries []retrieval.Query
	halfOf := map[string]string{}
	for _, half := range []string{"dev", "held", "people"} {
		for _, name := range sets.PublishedNames(half, false) {
			if *measuredSets != "" && !slices.Contains(strings.Split(*measuredSets, ","), name) {
				continue
			}
			set := publishedSet(t, name)
			if _, err := l.Update(t.Context(), api.Project{ID: api.ProjectID(name)}, set.tree, nil); err != nil {
				t.Fatal(err)
			}
			queries = append(queries, set.queries...)
			halfOf[name] = half
		}
	}
	for name := range halfOf {
		begin := time.Now()
		embedded(t, l, api.ProjectID(name))
		m, _ := l.Meaning(api.ProjectID(name))
		t.Logf("%-11s %5d sections have vectors after %v", name, m.Embedded, time.Since(begin).Round(time.Second))
	}
	byWords := map[string]int{}
	measure := func(name string, mode SemanticMode, box bool) {
		outcomes, err := retrieval.Run(t.Context(), queries, func(ctx context.Context, q retrieval.Query) ([]retrieval.Found, error) {
			return found(l.Search(ctx, api.ProjectID(q.Corpus), Query{Text: q.Query, Limit: 10, Box: box, Meaning: mode,
				Degraded: func(why string) { t.Error(q.Query, why) }}))
		})
		if err != nil {
			t.Fatal(err)
		}
		changed := map[string]*[4]int{} // better, worse, into the first five, out of them
		for _, o := range outcomes {
			key, rank := o.Judged.Corpus+o.Judged.Kind+o.Judged.Query, 11
			if o.Rank > 0 {
				rank = o.Rank
			}
			if mode == SemanticOff {
				byWords[key] = rank
			}
			k := halfOf[o.Judged.Corpus] + o.Judged.Kind
			if changed[k] == nil {
				changed[k] = new([4]int)
			}
			was := byWords[key]
			for i, is := range []bool{rank < was, rank > was, was > 5 && rank <= 5, was <= 5 && rank > 5} {
				if is {
					changed[k][i]++
				}
			}
		}
		for _, half := range []string{"dev", "held", "people"} {
			byKind := retrieval.Summarize(outcomes, func(o retrieval.Outcome) string {
				if halfOf[o.Judged.Corpus] != half {
					return ""
				}
				return o.Judged.Kind
			})
			var line strings.Builder
			for _, k := range kinds {
				s := byKind[k]
				fmt.Fprintf(&line, "  %s(%d) %.3f %.3f", k, s.Queries, s.HitAt5, s.MRR)
				if c := changed[half+k]; c != nil && *c != [4]int{} {
					fmt.Fprintf(&line, " (+%d -%d, five +%d -%d)", c[0], c[1], c[2], c[3])
				}
			}
			t.Logf("%-30s box %-5v %-4s%s", name, box, half, line.String())
		}
	}
	for _, box := range []bool{false, true} {
		measure("words", SemanticOff, box)
		for _, b := range blends {
			l.blend = b
			for name := range halfOf { // what is remembered was fused with another blend
				snap, err := l.acquire(api.ProjectID(name))
				if err != nil {
					t.Fatal(err)
				}
				m := snap.embeddingIndex.Load()
				snap.setMeaning(&embeddingIndex{m.field, m.from, l.near.Load().serial.Add(1)})
				snap.release()
			}
			measure(fmt.Sprintf("%+v", b), SemanticOn, box)
		}
	}
}

var blends = []blend{defaultBlend, {0.1, 0.7, 3}, {0.2, 0.5, 3}, {0.3, 0.7, 3}, {0.4, 0.7, 3}}
