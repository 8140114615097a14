package search

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"docent/api"
	"docent/search/meaning"
)

// A thesaurus stands in for an embedding model: words of one group mean the same to it, and nothing else does. It keeps
// what it was asked for.
type thesaurus struct {
	name string
	mu   sync.Mutex
	fail error // of questions
	sick error // of sections
	gate chan struct{}
	told *thesaurus // that keeps what is asked; this one if nil
	seen []string   // sections
	put  []string   // questions, after the model's name
}

var sameMeaning = map[string]string{"delete": "remove", "erase": "remove", "rid": "remove", "projects": "project",
	"workspace": "project", "zorp": "remove", "blick": "project", "fee": "price", "cost": "price", "costs": "price", "charged": "price"}

func (th *thesaurus) keeper() *thesaurus {
	if th.told != nil {
		return th.told
	}
	return th
}

func (th *thesaurus) Model() meaning.Model { return meaning.Model{Name: th.name, Longest: 2000} }
func (th *thesaurus) Batch() int           { return 4 }
func (th *thesaurus) Like(m meaning.Model) meaning.Embedder {
	return &thesaurus{name: m.Name, told: th.keeper()}
}

func (th *thesaurus) vector(text string) []float32 {
	v := make([]float32, 128)
	v[0] = 0.3
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' }) {
		if same, ok := sameMeaning[word]; ok {
			word = same
		}
		if len(word) < 4 {
			continue
		}
		h := fnv.New32a()
		h.Write([]byte(th.name[:1] + word))
		v[1+h.Sum32()%127]++
	}
	return v
}

func (th *thesaurus) Sections(ctx context.Context, texts []string) ([][]float32, error) {
	k := th.keeper()
	k.mu.Lock()
	sick, gate := k.sick, k.gate
	k.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if sick != nil {
		return nil, sick
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make([][]float32, len(texts))
	for i, text := range texts {
		k.seen = append(k.seen, text)
		out[i] = th.vector(text)
	}
	return out, nil
}

func (th *thesaurus) Question(_ context.Context, text string) ([]float32, error) {
	k := th.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail != nil {
		return nil, k.fail
	}
	k.put = append(k.put, th.name+" "+text)
	return th.vector(text), nil
}

func (th *thesaurus) asked() (sections, questions []string) {
	th.mu.Lock()
	defer th.mu.Unlock()
	return slices.Clone(th.seen), slices.Clone(th.put)
}

func (th *thesaurus) failing(err error) {
	th.mu.Lock()
	defer th.mu.Unlock()
	th.fail = err
}

// wordy are pages enough for some to be nearer than others.
func wordy(more map[string]string) *memTree {
	tree := &memTree{commit: "1", files: map[string]string{
		"remove.md": "# Remove a project\n\nOpen the settings and confirm with the name.\n\n## Afterwards\n\nIts pages are gone.\n",
		"price.md":  "# Price\n\nThe price of a seat depends on the plan.\n",
	}}
	for i := range 30 {
		tree.files[fmt.Sprintf("other%02d.md", i)] = fmt.Sprintf("# Topic number%c%c\n\nThe widget%c turns the lever%c while the engine%c hums.\n",
			'a'+i%26, 'a'+i/26, 'a'+i%26, 'b'+i%24, 'c'+i%23)
	}
	maps.Copy(tree.files, more)
	return tree
}

func openNear(t *testing.T, dir string, e meaning.Embedder) *Library {
	t.Helper()
	l, err := Open(dir, Options{Log: quiet(), Embedder: e})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func update(t *testing.T, l *Library, tree *memTree) {
	t.Helper()
	if _, err := l.Update(t.Context(), api.Project{ID: "docs"}, tree, nil); err != nil {
		t.Fatal(err)
	}
}

func pathsOf(t *testing.T, l *Library, q Query) (list, degraded []string) {
	t.Helper()
	q.Degraded = func(why string) { degraded = append(degraded, why) }
	hits, err := l.Search(t.Context(), "docs", q)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		list = append(list, h.Path)
	}
	return list, degraded
}

func TestSectionsAreFoundInOtherWordsThanTheQuestions(t *testing.T) {
	th := &thesaurus{name: "first"}
	l := openNear(t, t.TempDir(), th)
	update(t, l, wordy(nil))
	embedded(t, l, "docs")
	q := Query{Text: "how can I zorp my blick"}
	if found, why := pathsOf(t, l, q); len(found) == 0 || found[0] != "remove.md" || why != nil {
		t.Errorf("found %v, %v", found, why)
	}
	q.Meaning = SemanticOff
	if found, _ := pathsOf(t, l, q); slices.Contains(found, "remove.md") {
		t.Errorf("words alone find %v: the page has them", found)
	}
	// A search box asks only if the options say so, and a question whose words are a heading keeps its page.
	q = Query{Text: "price", Box: true}
	if found, why := pathsOf(t, l, q); len(found) == 0 || found[0] != "price.md" || why != nil {
		t.Errorf("found %v, %v", found, why)
	}
	if _, questions := th.asked(); !slices.Equal(questions, []string{"first how can I zorp my blick"}) {
		t.Errorf("asked %q", questions)
	}
	if found, _ := pathsOf(t, l, Query{Text: "get  rid of my workspace", Box: true, Meaning: SemanticOn}); found[0] != "remove.md" {
		t.Errorf("a box that wants meaning finds %v", found)
	}
	if m, ok := l.Meaning("docs"); !ok || m.Serving != "first" || m.Embedded != m.Sections || m.Embedded < 30 || m.Working {
		t.Errorf("%+v", m)
	}
}

// What a reader may not see is never found, by meaning no more than by words.
func TestMeaningKeepsToTheFilters(t *testing.T) {
	l := openNear(t, t.TempDir(), &thesaurus{name: "first"})
	update(t, l, wordy(map[string]string{
		"secret.md":  "---\ngroups: [staff]\n---\n# Erase everything\n\nDelete each workspace.\n",
		"hidden.md":  "---\nnoindex: true\nhidden: true\nsearch:\n  exclude: true\n---\n# Erase at once\n\nDelete each workspace.\n",
		"old.md":     "---\nversion: \"1.0\"\n---\n# Erase then\n\nDelete each workspace.\n",
		"fr/loin.md": "---\nlanguage: fr\n---\n# Erase loin\n\nDelete each workspace pour toujours dans les pages.\n",
	}))
	embedded(t, l, "docs")
	for name, c := range map[string]struct {
		filter  Filter
		may     []string
		mayNot  []string
		nothing bool
	}{
		"anybody": {Filter{Language: "en"}, []string{"remove.md"}, []string{"secret.md", "fr/loin.md"}, false},
		"staff":   {Filter{Language: "en", Groups: []string{"staff"}}, []string{"secret.md"}, []string{"fr/loin.md"}, false},
		"version": {Filter{Version: "1.0", Language: "en"}, []string{"old.md"}, []string{"remove.md", "secret.md"}, false},
		"french":  {Filter{Language: "fr"}, []string{"fr/loin.md"}, []string{"remove.md", "secret.md", "old.md"}, false},
		"tag":     {Filter{Tag: "none"}, nil, []string{"remove.md"}, true},
	} {
		found, why := pathsOf(t, l, Query{Text: "get rid of projects", Limit: 50, Sections: 3, Filter: c.filter})
		for _, p := range c.may {
			if !slices.Contains(found, p) {
				t.Errorf("%s: %s is missing in %v", name, p, found)
			}
		}
		for _, p := range c.mayNot {
			if slices.Contains(found, p) {
				t.Errorf("%s: %s is found: %v", name, p, found)
			}
		}
		if c.nothing && len(found) > 0 || why != nil {
			t.Errorf("%s: %v, %v", name, found, why)
		}
	}
}

// A section is asked for once, whatever becomes of the index: over updates, restarts and a rebuilt index.
// What is damaged is asked for again.
func TestASectionIsAskedForOnce(t *testing.T) {
	th, dir := &thesaurus{name: "first"}, t.TempDir()
	l := openNear(t, dir, th)
	tree := wordy(nil)
	update(t, l, tree)
	embedded(t, l, "docs")
	first, _ := th.asked()
	tree.commit, tree.files["price.md"] = "2", "# Price\n\nNobody is charged.\n"
	update(t, l, tree)
	embedded(t, l, "docs")
	second, _ := th.asked()
	if len(second) != len(first)+1 || !strings.Contains(second[len(first)], "Nobody is charged") {
		t.Errorf("after a change of one section, asked for %q", second[len(first):])
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "docs", "CURRENT"), []byte("gone\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l = openNear(t, dir, th)
	update(t, l, tree)
	embedded(t, l, "docs")
	if third, _ := th.asked(); len(third) != len(second) {
		t.Errorf("after a rebuild, asked for %q", third[len(second):])
	}
	if found, why := pathsOf(t, l, Query{Text: "get rid of my workspace"}); found[0] != "remove.md" || why != nil {
		t.Errorf("found %v, %v", found, why)
	}
	l.Close()
	files, _ := filepath.Glob(filepath.Join(dir, "docs", "meaning", "*.vectors"))
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-300] ^= 1 // within the last record
	if err := os.WriteFile(files[0], raw, 0o600); err != nil {
		t.Fatal(err)
	}
	os.Remove(filepath.Join(dir, "docs", "meaning", "complete"))
	l = openNear(t, dir, th)
	embedded(t, l, "docs")
	if fourth, _ := th.asked(); len(fourth) != len(second)+1 {
		t.Errorf("after one record was damaged, asked for %q", fourth[len(second):])
	}
	if err := l.Remove("docs"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "docs")); err == nil {
		t.Error("vectors of a project that was removed are there")
	}
}

// While another model's vectors are being made, those of the one before serve, and questions are put to it.
func TestAnotherModelTakesOverWhenItsVectorsAreThere(t *testing.T) {
	dir := t.TempDir()
	l := openNear(t, dir, &thesaurus{name: "first"})
	update(t, l, wordy(nil))
	embedded(t, l, "docs")
	l.Close()
	second := &thesaurus{name: "second", gate: make(chan struct{})}
	l = openNear(t, dir, second)
	q := Query{Text: "get rid of my workspace"}
	if found, why := pathsOf(t, l, q); found[0] != "remove.md" || why != nil {
		t.Errorf("meanwhile found %v, %v", found, why)
	}
	close(second.gate)
	embedded(t, l, "docs")
	if found, why := pathsOf(t, l, q); found[0] != "remove.md" || why != nil {
		t.Errorf("afterwards found %v, %v", found, why)
	}
	if _, questions := second.asked(); !slices.Equal(questions, []string{"first " + q.Text, "second " + q.Text}) {
		t.Errorf("asked %q", questions)
	}
	if models, err := meaning.Models(filepath.Join(dir, "docs", "meaning")); err != nil || len(models) != 1 || models[0].Name != "second" {
		t.Errorf("kept %+v, %v", models, err)
	}
}

// An endpoint that fails costs the gain and nothing else: what is found is what words find, and the answer says so. Once
// it is well, meaning takes part again.
func TestAnEndpointThatFailsCostsTheGainAlone(t *testing.T) {
	th := &thesaurus{name: "first", sick: errors.New("sick")}
	l := openNear(t, t.TempDir(), th)
	update(t, l, wordy(nil))
	q := Query{Text: "what is the price of getting rid of a workspace", Sections: 2}
	plain := q
	plain.Meaning = SemanticOff
	same := func(want string) {
		t.Helper()
		found, why := pathsOf(t, l, q)
		words, none := pathsOf(t, l, plain)
		if !slices.Equal(found, words) || len(words) == 0 || !slices.Equal(why, []string{want}) || none != nil {
			t.Errorf("found %v and %v, %q and %q", found, words, why, none)
		}
	}
	same("meaning: not ready")
	th.mu.Lock()
	th.sick = nil
	th.mu.Unlock()
	tree := wordy(nil)
	tree.commit = "2"
	tree.files["price.md"] += "\nMore.\n"
	l.Close()
	l = openNear(t, t.TempDir(), th)
	update(t, l, tree)
	embedded(t, l, "docs")
	for why, err := range map[string]error{"meaning: timeout": &meaning.Later{Why: meaning.Timeout, Err: errors.New("x")},
		"meaning: over budget": &meaning.Later{Why: meaning.OverBudget, Err: errors.New("x")},
		"meaning: unavailable": errors.New("x")} {
		th.failing(err)
		same(why)
	}
	th.failing(nil)
	if found, why := pathsOf(t, l, q); !slices.Contains(found, "remove.md") || why != nil {
		t.Errorf("once it is well found %v, %v", found, why)
	}
}

// An explanation has the hits of the search, and its parts add up to their scores.
func TestExplanationsHoldWithMeaning(t *testing.T) {
	l := openNear(t, t.TempDir(), &thesaurus{name: "first"})
	update(t, l, wordy(nil))
	embedded(t, l, "docs")
	for _, text := range []string{"get rid of my workspace", "remove the widgeta", "what is charged"} {
		q := Query{Text: text, Sections: 3}
		hits, err := l.Search(t.Context(), "docs", q)
		if err != nil {
			t.Fatal(err)
		}
		e, err := l.Explain(t.Context(), "docs", q, "remove.md")
		if err != nil || len(e.Hits) != len(hits) || len(hits) == 0 {
			t.Fatalf("%q: %d of %d hits, %v", text, len(e.Hits), len(hits), err)
		}
		for i, x := range e.Hits {
			sum := 0.0
			for _, p := range x.Parts {
				sum += p.Amount
			}
			if x.Hit.Path != hits[i].Path || x.Hit.Anchor != hits[i].Anchor || math.Abs(sum-hits[i].Score) > 1e-4 {
				t.Errorf("%q: %s#%s %.4f is explained as %s#%s %+v", text, hits[i].Path, hits[i].Anchor, hits[i].Score, x.Hit.Path, x.Hit.Anchor, x.Parts)
			}
		}
	}
}
