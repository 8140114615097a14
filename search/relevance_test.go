package search

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"docent/api"
)

// memTree is a tree held in memory.
type memTree struct {
	commit string
	files  map[string]string
}

func (t *memTree) Commit() string { return t.commit }

func (t *memTree) Files(context.Context) ([]api.File, error) {
	out := make([]api.File, 0, len(t.files))
	for p, c := range t.files {
		sum := sha256.Sum256([]byte(c))
		out = append(out, api.File{Path: p, Hash: hex.EncodeToString(sum[:8]), Size: int64(len(c))})
	}
	return out, nil
}

func (t *memTree) Read(_ context.Context, p string) ([]byte, error) {
	c, ok := t.files[p]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(c), nil
}

const relevanceDir = "../../shared/relevance"

// corpus reads one of the judged documentation sets.
func corpus(t testing.TB, name string) *memTree {
	t.Helper()
	f, err := os.Open(filepath.Join(relevanceDir, name+".tar.gz"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the judged documentation is not here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	tree := &memTree{commit: name + "-1", files: make(map[string]string)}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return tree
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		tree.files[strings.TrimPrefix(h.Name, "./")] = string(body)
	}
}

var corpora = []string{"docusaurus", "electron", "fastapi", "hugo", "mintlify", "prometheus", "vite"}

func judgedQueries(t testing.TB) []Judged {
	t.Helper()
	f, err := os.Open(filepath.Join(relevanceDir, "queries.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the judged queries are not here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	queries, err := ReadJudged(f)
	if err != nil {
		t.Fatal(err)
	}
	return queries
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func openTest(t testing.TB, o Options) *Library {
	t.Helper()
	if o.Log == nil {
		o.Log = quiet()
	}
	l, err := OpenLibrary(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func indexCorpora(t testing.TB, l *Library) {
	for _, name := range corpora {
		tree := corpus(t, name)
		begin := time.Now()
		rep, err := l.Update(t.Context(), api.Project{ID: api.ProjectID(name)}, tree, nil)
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(begin)
		t.Logf("%-11s %4d pages %5d sections %8v %6.0f sections/s", name, rep.Pages, rep.Sections, took.Round(time.Millisecond), float64(rep.Sections)/took.Seconds())
	}
}

func ask(l *Library) func(context.Context, Judged) ([]Found, error) {
	return func(ctx context.Context, q Judged) ([]Found, error) {
		hits, err := l.Search(ctx, api.ProjectID(q.Corpus), Query{Text: q.Query, Limit: 10, Box: true})
		out := make([]Found, len(hits))
		for i, h := range hits {
			out[i] = Found{h.Path, h.Anchor}
		}
		return out, err
	}
}

func TestRelevance(t *testing.T) {
	l := openTest(t, Options{})
	queries := judgedQueries(t)
	indexCorpora(t, l)
	outcomes, err := Evaluate(t.Context(), queries, ask(l))
	if err != nil {
		t.Fatal(err)
	}
	report(t, outcomes)
}

func report(t *testing.T, outcomes []Outcome) {
	byKind := Summarize(outcomes, func(o Outcome) string { return o.Judged.Kind })
	byCorpus := Summarize(outcomes, func(o Outcome) string { return o.Judged.Corpus })
	kinds := []string{"desc", "head", "prefix", "typo", "question"}
	var mean float64
	for _, k := range kinds {
		s := byKind[k]
		mean += s.HitAt5 / float64(len(kinds))
		t.Logf("%-9s n %3d hit@5 %.4f (misses %d) hit@1 %.3f mrr %.3f section@1 %.3f section@5 %.3f p50 %v p99 %v", k, s.Queries, s.HitAt5, s.Queries-int(s.HitAt5*float64(s.Queries)+.5), s.HitAt1, s.MRR, s.Section1, s.Section5, s.P50, s.P99)
	}
	t.Logf("mean of kinds %.4f", mean)
	var names []string
	for n := range byCorpus {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		s := byCorpus[n]
		t.Logf("%-11s hit@5 %.3f mrr %.3f p50 %v p99 %v", n, s.HitAt5, s.MRR, s.P50, s.P99)
	}
	if os.Getenv("MISSES") != "" {
		for _, o := range outcomes {
			if o.Rank == 0 || o.Rank > 5 {
				line := ""
				for i, f := range o.Found {
					if i == 5 {
						break
					}
					line += " " + f.Path
				}
				fmt.Printf("%s %s %q want %v (rank %d) got%s\n", o.Judged.Corpus, o.Judged.Kind, o.Judged.Query, o.Judged.Relevant, o.Rank, line)
			}
		}
	}
}
