package search

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"docent/api"
	"docent/internal/testing/need"
)

// sameAsFound checks that an explanation gives what Search gives, and that the parts of each score add up to it.
func sameAsFound(t *testing.T, found []Hit, e Explanation) {
	t.Helper()
	if len(found) != len(e.Hits) {
		t.Fatalf("%d hits are explained, %d are found", len(e.Hits), len(found))
	}
	for i, h := range found {
		x := e.Hits[i]
		if !reflect.DeepEqual(h, x.Hit) {
			t.Fatalf("hit %d is explained as\n%+v\nfound is\n%+v", i, x.Hit, h)
		}
		sum, byWord, text := 0.0, 0.0, 0.0
		for _, p := range x.Parts {
			sum += p.Amount
			if p.Kind == PartSection || p.Kind == PartPage {
				text += p.Amount
			}
		}
		for _, w := range x.Words {
			byWord += w.Amount
			if len(w.Fields) == 0 {
				t.Fatalf("hit %d, %s: %q counts and is in no field", i, h.Path, e.Understood.Words[w.Word].Text)
			}
		}
		if math.Abs(sum-h.Score) > 1e-4 || math.Abs(byWord-text) > 1e-4 {
			t.Fatalf("hit %d, %s#%s: the parts add up to %.5f, the score is %.5f; the words to %.5f of %.5f\n%+v", i, h.Path,
				h.Anchor, sum, h.Score, byWord, text, x.Parts)
		}
	}
}

// What is explained is what readers find: the same hits in the same order with the same scores, over all judged
// queries, as a box and as the assistant asks.
func TestAnExplanationGivesWhatSearchFinds(t *testing.T) {
	need.Everything(t, "one goroutine, over all judged queries")
	queries := judgedQueries(t)
	l := openTest(t, Options{})
	indexCorpora(t, l)
	limited := 0
	for n, j := range queries {
		for _, q := range []Query{
			{Text: j.Query, Limit: 10, Box: true}, {Text: j.Query, Sections: 4},
			{Text: j.Query, CurrentPath: j.Relevant[0], Threshold: 0.2},
		} {
			if (n+len(q.CurrentPath))%4 != 0 { // a quarter of them
				continue
			}
			found, err := l.Search(t.Context(), api.ProjectID(j.Corpus), q)
			if err != nil {
				t.Fatal(err)
			}
			e, err := l.Explain(t.Context(), api.ProjectID(j.Corpus), q)
			if err != nil {
				t.Fatal(err)
			}
			sameAsFound(t, found, e)
			for _, h := range e.Hits {
				for _, p := range h.Parts {
					if p.Kind == PartLimit {
						limited++
					}
				}
			}
			if t.Failed() {
				t.Fatalf("%s: %+v", j.Corpus, q)
			}
		}
	}
	t.Logf("%d hits were cut at a bound", limited)
}

var explainedSite = map[string]string{
	"docs.json": `{"navigation": {"pages": ["backups", "guides/restore", "guides/config", "reference/cli", "secret", "hidden", "wombat", "tagged"]}}`,
	"backups.md": front("title: Backups", "How to make a backup.\n\n## Restore a backup\n\n"+
		"Stop the server, then run the restore command.\n\n## Other things\n\nNothing of interest here."),
	"guides/restore.md": front("title: Restore", "See [backups](../backups.md) to restore a backup of the server."),
	"guides/config.md":  front("title: Configuration", "The configuration of the server. See [backups](../backups.md)."),
	"reference/cli.md":  front("title: Command line\nboost: 0.5", "`docent backup` makes a backup."),
	"secret.md":         front("title: Backup keys\ngroups: [\"staff\"]", "The backup keys."),
	"hidden.md":         front("title: Backup drafts\nsearchable: false", "A backup that nobody finds."),
	"wombat.md":         front("title: Wombats", "A wombat digs."),
	"tagged.md":         front("title: Backup tags\ntags: [\"ops\"]", "A backup with a tag."),
}

func explain(t *testing.T, l *Library, q Query, expected ...string) Explanation {
	t.Helper()
	found := mustSearch(t, l, "x", q)
	e, err := l.Explain(t.Context(), "x", q, expected...)
	if err != nil {
		t.Fatal(err)
	}
	sameAsFound(t, found, e)
	return e
}

func (e Explained) amount(kind PartKind) float64 {
	for _, p := range e.Parts {
		if p.Kind == kind {
			return p.Amount
		}
	}
	return 0
}

func explainedLibrary(t *testing.T) *Library {
	t.Helper()
	l := openTest(t, Options{})
	mustUpdate(t, l, api.Project{ID: "x"}, &memTree{commit: "1", files: explainedSite})
	return l
}

// Each reason that the ranking knows is named where it counts, and only there.
func TestAnExplanationNamesWhatCounts(t *testing.T) {
	l := explainedLibrary(t)
	first := func(q Query) Explained {
		t.Helper()
		e := explain(t, l, q)
		if len(e.Hits) == 0 {
			t.Fatalf("%+v finds nothing", q)
		}
		return e.Hits[0]
	}
	of := func(q Query, path string) Explained {
		t.Helper()
		e := explain(t, l, q)
		for _, h := range e.Hits {
			if h.Hit.Path == path {
				return h
			}
		}
		t.Fatalf("%+v does not find %s", q, path)
		return Explained{}
	}
	exact := first(Query{Text: "restore a backup"})
	if exact.Hit.Anchor != "restore-a-backup" || exact.amount(PartExact) <= 0 || exact.amount(PartHeading) <= 0 ||
		exact.amount(PartLinks) <= 0 || exact.amount(PartNear) != 0 || exact.amount(PartStart) != 0 {
		t.Errorf("a query that is a heading: %+v", exact)
	}
	if p := exact.Parts[slices.IndexFunc(exact.Parts, func(p Part) bool { return p.Kind == PartLinks })]; p.Count != 2 {
		t.Errorf("%d pages link there, want 2", p.Count)
	}
	fields := fmt.Sprint(exact.Words[0].Fields, exact.Words[1].Fields)
	if fields != "[heading body] [title path links description heading]" &&
		fields != "[heading body] [title path links heading]" {
		t.Errorf("the words are found in %s", fields)
	}
	if h := of(Query{Text: "backup"}, "reference/cli.md"); h.amount(PartBoost) >= 0 {
		t.Errorf("a page that its author lowers: %+v", h.Parts)
	}
	if h := of(Query{Text: "server", CurrentPath: "/guides/restore"}, "guides/config.md"); h.amount(PartNear) <= 0 {
		t.Errorf("a page beside the reader's: %+v", h.Parts)
	}
	if h := first(Query{Text: "conf", Box: true}); h.Hit.Path != "guides/config.md" || h.amount(PartStart) <= 0 {
		t.Errorf("the beginning of a title: %+v", h)
	}
}

func TestAnExplanationSaysWhatWasUnderstood(t *testing.T) {
	l := explainedLibrary(t)
	read := func(q Query) string {
		t.Helper()
		u := explain(t, l, q).Understood
		var out []string
		for _, w := range u.Words {
			for _, term := range w.Terms {
				if term.Reading != ReadTyped {
					out = append(out, fmt.Sprintf("%s: %s %s", w.Text, term.Reading, term.Text))
				}
			}
		}
		return strings.Join(append(out, fmt.Sprintf("without %q", u.LeftOut)), ", ")
	}
	for _, c := range []struct {
		q    Query
		want string
	}{
		{Query{Text: "how do I restore a bakcup", Box: true}, `bakcup: corrected backup, without ["how" "do" "i" "a"]`},
		{Query{Text: "the wom", Box: true}, `wom: begun wombat, without ["the"]`},
		{Query{Text: "the wom"}, `without ["the"]`},
		{Query{Text: "config"}, `config: other form configuration, without []`},
	} {
		if got := read(c.q); got != c.want {
			t.Errorf("%+v is read as %s, want %s", c.q, got, c.want)
		}
	}
	e := explain(t, l, Query{Text: "wombat server zzz", CurrentPath: "/guides/restore", Filter: Filter{Language: "xx"}})
	if e.Understood.Language.By != ByAbsence || len(e.Hits) != 0 || e.Understood.Page != "guides/restore.md" {
		t.Errorf("a language that the site does not have: %+v", e.Understood)
	}
	e = explain(t, l, Query{Text: "wombat server zzz"})
	share := 0.0
	for _, w := range e.Understood.Words {
		share += w.Share
	}
	if u := e.Understood; math.Abs(share-1) > 1e-3 || u.Words[2].Sections != 0 || u.Words[0].Sections != 1 ||
		u.Words[0].Share <= u.Words[1].Share || u.Language.By != BySite || u.Version.By != BySite {
		t.Errorf("%+v", u)
	}
	l2 := openTest(t, Options{})
	mustUpdate(t, l2, api.Project{ID: "x"}, &memTree{commit: "1", files: docusaurusSite})
	for _, c := range []struct {
		q                 Query
		version, language Choice
	}{
		{Query{Text: "install machine"}, Choice{"", BySite}, Choice{"en", BySite}},
		{Query{Text: "comment installer Acme sur votre machine"}, Choice{"", BySite}, Choice{"fr", ByQuestion}},
		{Query{Text: "machine", Filter: Filter{Version: "1.0", Language: "fr"}}, Choice{"1.0", ByFilter},
			Choice{"fr", ByFilter}},
		{Query{Text: "machine", CurrentPath: "versioned_docs/version-1.0/install.md"}, Choice{"1.0", ByPage},
			Choice{"en", ByPage}},
		{Query{Text: "wombat burrow", CurrentPath: "/fr/docs/install"}, Choice{"", BySite}, Choice{"en", ByFit}},
		{Query{Text: "machine", Everywhere: true}, Choice{"", ByNobody}, Choice{"", ByNobody}},
	} {
		u := explain(t, l2, c.q).Understood
		if u.Version != c.version || u.Language != c.language {
			t.Errorf("%+v: version %v, language %v; want %v, %v", c.q, u.Version, u.Language, c.version, c.language)
		}
	}
}

// A person who misses a page learns why it is not found.
func TestAPageThatWasExpectedIsExplained(t *testing.T) {
	l := explainedLibrary(t)
	q := Query{Text: "backup", Limit: 2}
	for page, want := range map[string]Standing{
		"backups.md": StandsFound, "/nope": StandsUnknown, "hidden.md": StandsHidden, "secret.md": StandsGroups,
		"wombat.md": StandsWordless, "reference/cli.md": StandsBelow,
	} {
		e := explain(t, l, q, page)
		if got := e.Expected[0]; got.Why != want || (got.Rank > 0) != (want == StandsFound || want == StandsBelow) {
			t.Errorf("%s: %+v, want %s", page, got, want)
		}
	}
	q.Filter.Tag = "ops"
	if got := explain(t, l, q, "backups.md").Expected[0]; got.Why != StandsTag {
		t.Errorf("without the tag: %+v", got)
	}
	q = Query{Text: "backup", Threshold: 0.99}
	if got := explain(t, l, q, "backups.md").Expected[0]; got.Why != StandsThreshold || got.Score == 0 ||
		len(got.Parts) == 0 {
		t.Errorf("under the threshold: %+v", got)
	}
	l2 := openTest(t, Options{})
	mustUpdate(t, l2, api.Project{ID: "x"}, &memTree{commit: "1", files: docusaurusSite})
	old := explain(t, l2, Query{Text: "install"}, "versioned_docs/version-1.0/install.md").Expected[0]
	if old.Why != StandsEdition || !strings.Contains(old.Detail, "1.0") {
		t.Errorf("a page of another version: %+v", old)
	}
}

// Weights that are tried change the order for the person who tries them, and for nobody else.
func TestWeightsAreTriedForOneQuery(t *testing.T) {
	l := explainedLibrary(t)
	q := Query{Text: "restore backup", Limit: 3}
	before := mustSearch(t, l, "x", q)
	tried := q
	tried.Weights = map[string]float64{"vote": 0, "heading_exact": 0, "heading_cover": 0, "title_cover": 5}
	e := explain(t, l, tried)
	if e.Hits[0].amount(PartLinks) != 0 || e.Hits[0].amount(PartHeading) != 0 || e.Hits[0].amount(PartTitle) == 0 {
		t.Errorf("%+v", e.Hits[0])
	}
	measured := q
	measured.Weights = map[string]float64{"body": 0, "code": 0}
	for _, h := range explain(t, l, measured).Hits {
		for _, w := range h.Words {
			if slices.Equal(w.Fields, []string{"body"}) {
				t.Errorf("a word that only the body has counts: %+v", h)
			}
		}
	}
	if after := mustSearch(t, l, "x", q); !reflect.DeepEqual(before, after) {
		t.Errorf("others find %+v now", after)
	}
	for name, value := range map[string]float64{"nope": 1, "vote": -1, "page_share": 1.5, "boost": math.NaN()} {
		tried.Weights = map[string]float64{name: value}
		if _, err := l.Search(t.Context(), "x", tried); err == nil || !strings.Contains(err.Error(), "weights."+name) {
			t.Errorf("%s = %v: %v", name, value, err)
		}
	}
	for _, w := range l.TrialWeights() {
		tried.Weights = map[string]float64{w.Name: w.Default}
		if got := mustSearch(t, l, "x", tried); !reflect.DeepEqual(before, got) {
			t.Errorf("%s as it is: %+v", w.Name, got)
		}
	}
}

func TestSectionsAreNamed(t *testing.T) {
	l := explainedLibrary(t)
	got, err := l.Names(t.Context(), "x", []Place{{"backups.md", "restore-a-backup"}, {"backups.md", "gone"},
		{"gone.md", ""}, {"secret.md", ""}})
	want := []Named{{"Backups", "Restore a backup", "/backups#restore-a-backup"}, {"Backups", "", "/backups"}, {},
		{"Backup keys", "", "/secret"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if _, err := l.Names(t.Context(), "none", nil); err == nil {
		t.Error("a project without an index has names")
	}
}

// A question in other words than the page's finds it, and it is said which word stands for which.
func TestASynonymThatTookPartIsNamed(t *testing.T) {
	l := openTest(t, Options{})
	mustUpdate(t, l, api.Project{ID: "x"}, &memTree{commit: "1", files: map[string]string{
		"delete.md": "# Delete a project\n\nWhat is deleted cannot be restored.",
		"limits.md": "# Rate limits\n\nEach key may send 60 requests a minute.",
		"words.md":  "# Colors\n\nA project has a color.",
		"erase.md":  "# Erase a disk\n\nThe disk is empty afterwards.",
	}})
	through := func(text, path string) string {
		t.Helper()
		for _, h := range explain(t, l, Query{Text: text}).Hits {
			if h.Hit.Path != path {
				continue
			}
			var out []string
			for _, w := range h.Words {
				for _, term := range w.Through {
					out = append(out, fmt.Sprint(w.Word, " ", term.Text, " ", term.Reading))
				}
			}
			return strings.Join(out, ", ")
		}
		return "not found"
	}
	if got := through("get rid of my project", "delete.md"); got != "0 delete synonym" {
		t.Errorf("an idiom: %s", got)
	}
	if got := through("throttle callers", "limits.md"); got != "0 limit synonym, 0 rate synonym" {
		t.Errorf("a word that no page has: %s", got)
	}
	// If the question's own word is a title, nothing else is looked for.
	if hits := explain(t, l, Query{Text: "erase a disk"}).Hits; len(hits) != 1 || hits[0].Hit.Path != "erase.md" {
		t.Errorf("erase finds %+v", hits)
	}
	if got := through("erase", "delete.md"); got != "not found" {
		t.Errorf("a word that a title has: %s", got)
	}
}
