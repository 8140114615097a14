package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"docent/internal/corpora"
	"docent/search"
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

// The server's own search operation, over HTTP, finds what the judged queries ask for: the bars are those that the search
// promises for every site, with the standard weights.
func TestSearchOverHTTPIsJudged(t *testing.T) {
	t.Parallel()
	f, err := os.Open(corpora.File(t, "relevance/queries.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	queries, err := search.ReadJudged(f)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	server := newTestServer(t, data)
	byCorpus := map[string][]search.Judged{}
	for _, q := range queries {
		if slices.Equal(q.Relevant, []string{"CLAUDE.md"}) {
			continue // the set was judged when every file was a page; what tells programs how to work on a repository is none
		}
		byCorpus[q.Corpus] = append(byCorpus[q.Corpus], q)
	}
	var all []search.Outcome
	for corpus, own := range byCorpus {
		p := newTestProject(t, data, corpus, unpack(t, corpus))
		outcomes, err := evaluateRemote(t.Context(), server.client(p.assistant), p.domain, own)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, outcomes...)
	}
	e := summarize(all)
	var table strings.Builder
	if err := printEvaluation(&table, false, false, e, nil); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", table.String())
	for kind, bar := range map[string]float64{"desc": 0.86, "head": 0.995, "prefix": 0.98, "typo": 0.995, "question": 22.0 / 24} {
		if got := e.Kinds[kind].HitAt5; got < bar {
			t.Errorf("%s: the page is among the first five for %.4f, the bar is %.4f", kind, got, bar)
		}
	}
	if e.Mean.HitAt5 < 0.95 {
		t.Errorf("mean of the kinds: %.4f, the bar is 0.95", e.Mean.HitAt5)
	}
}

// An operator judges the search on queries of their own: in the data directory while a server runs on it, over HTTP, and
// against other weights.
func TestEvalCommandComparesWeights(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	source := writeFiles(t, map[string]string{
		"tea.md":    "# Tea\n\nGreen tea is brewed at eighty degrees.\n",
		"coffee.md": "# Coffee\n\nNot tea, and not green.\n\n## Brewing\n\nCoffee is brewed at ninety degrees.\n",
	})
	p := newTestProject(t, data, "tea", source)
	files := writeFiles(t, map[string]string{
		"judged.jsonl": `{"query": "green tea", "relevant": ["tea.md"], "kind": "short"}` + "\n" +
			`{"query": "brewing", "relevant": ["coffee.md"], "sections": ["coffee.md#brewing"], "kind": "short"}` + "\n" +
			`{"query": "how hot is coffee brewed", "relevant": ["coffee.md"], "kind": "long"}` + "\n" +
			`{"query": "of another site", "relevant": ["x.md"], "corpus": "elsewhere"}` + "\n",
		"weights.toml": "title_cover = 0.0\nheading_cover = 0.0\nsection = [0.0, 0.0, 1.0, 0.0]\n",
		"wrong.toml":   "titel_cover = 0.0\n",
	})
	judged := filepath.Join(files, "judged.jsonl")
	check := func(out string) {
		t.Helper()
		for _, want := range []string{"NDCG@10", "long        1    1.000", "short        2    1.000", "mean of kinds"} {
			if !strings.Contains(out, want) {
				t.Errorf("the evaluation does not show %q:\n%s", want, out)
			}
		}
	}
	check(docent(t, "eval", "--data", data, "--project", "tea", "--queries", judged))
	server := newTestServer(t, data)
	check(docent(t, "eval", "--url", server.url, "--domain", p.domain, "--key", p.assistant, "--queries", judged, "--corpus", "tea"))
	out := docent(t, "eval", "--data", data, "--project", "tea", "--queries", judged, "--against", filepath.Join(files, "weights.toml"))
	check(out)
	if !strings.Contains(out, "With the other weights 0 queries do better and") || !strings.Contains(out, "against") {
		t.Errorf("the comparison shows:\n%s", out)
	}
	for _, wrong := range [][]string{
		{"--queries", judged},
		{"--queries", judged, "--project", "tea", "--against", filepath.Join(files, "wrong.toml")},
		{"--queries", judged, "--domain", "x", "--against", filepath.Join(files, "weights.toml")},
		{"--queries", filepath.Join(files, "wrong.toml"), "--project", "tea"},
		{"--queries", judged, "--project", "nothing"},
	} {
		if out, err := tryDocent(t, append([]string{"eval", "--data", data}, wrong...)...); err == nil {
			t.Errorf("eval %v: %s", wrong, out)
		}
	}
	if out := docent(t, "eval", "--weights"); !strings.Contains(out, "title_cover = 1.2") {
		t.Errorf("the weights are printed as\n%s", out)
	}
}
