package models

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"docent/bench/corpora"
	"docent/bench/retrieval"
	"docent/cmd/docent/evalcmd"
	"docent/cmd/docent/operator"
	"docent/internal/testing/need"
	"docent/tests/harness"
)

// unpack writes a judged documentation set into a folder, as an operator has it.
func unpack(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := corpora.Judged(t, name).Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The server's own search operation, over HTTP, finds what the judged queries ask for: the bars are those that the
// search promises for every site, with the standard weights.
func TestSearchOverHTTPIsJudged(t *testing.T) {
	need.Everything(t, "judges whole documentation sets")
	t.Parallel()
	f, err := os.Open(corpora.File(t, "relevance/queries.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	queries, err := retrieval.Read(f)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	server := harness.NewServer(t, data)
	byCorpus := map[string][]retrieval.Query{}
	for _, q := range queries {
		if slices.Equal(q.Relevant, []string{"CLAUDE.md"}) {
			continue // the set was judged when every file was a page; what tells programs how to work on a repository is none
		}
		byCorpus[q.Corpus] = append(byCorpus[q.Corpus], q)
	}
	var all []retrieval.Outcome
	for corpus, own := range byCorpus {
		p := harness.NewProject(t, data, corpus, unpack(t, corpus))
		outcomes, err := retrieval.Run(t.Context(), own, evalcmd.RemoteSearch(server.Client(p.Assistant), p.Domain))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, outcomes...)
	}
	e := operator.Summarize(all)
	var table strings.Builder
	if err := evalcmd.PrintEvaluation(&table, false, false, e); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", table.String())
	for kind, bar := range map[string]float64{"desc": 0.86, "head": 0.995, "prefix": 0.98, "typo": 0.995,
		"question": 22.0 / 24} {
		if got := e.Kinds[kind].HitAt5; got < bar {
			t.Errorf("%s: the page is among the first five for %.4f, the bar is %.4f", kind, got, bar)
		}
	}
	if e.Mean.HitAt5 < 0.95 {
		t.Errorf("mean of the kinds: %.4f, the bar is 0.95", e.Mean.HitAt5)
	}
}
