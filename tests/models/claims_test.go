package models

import (
	"cmp"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"docent/api/stream"
	"docent/docs"
	"docent/model/modeltest"
	"docent/tests/harness"
)

// A shownPassage is a passage as a prompt shows it.
type shownPassage struct{ label, url, text string }

var (
	givenHead  = regexp.MustCompile(`^\[(\d+)\] (.*)$`)
	givenURL   = regexp.MustCompile(`^(.*) \(([^()\s]+)\)$`)
	fencedPart = regexp.MustCompile(`(?s)<(passages-[0-9a-f]+)>\n(.*?)</passages-[0-9a-f]+>`)
)

// givens reads the passages of a prompt.
func givens(prompt string) []shownPassage {
	var list []shownPassage
	for _, part := range fencedPart.FindAllStringSubmatch(prompt, -1) {
		for line := range strings.Lines(part[2]) {
			head := givenHead.FindStringSubmatch(strings.TrimSpace(line))
			if n := len(list) + 1; head != nil && head[1] == strconv.Itoa(n) {
				g := shownPassage{label: head[2]}
				if m := givenURL.FindStringSubmatch(head[2]); m != nil {
					g.label, g.url = m[1], m[2]
				}
				list = append(list, g)
			} else if len(list) > 0 {
				list[len(list)-1].text += line
			}
		}
	}
	return list
}

// A planted is a sentence that a stand-in has said: as it stands in a passage, or changed.
type planted struct {
	kind string // "true", or what is wrong with it
	text string
}

// A liar is a model that mixes what the passages say with what they do not.
type liar struct {
	mu     sync.Mutex
	said   map[string][]planted // by question
	given  map[string][]shownPassage
	random func(question string) *rand.Rand
}

var (
	prose    = regexp.MustCompile(`[A-Z][^.!?|<>\[\]{}*"\n]{35,200}\.(?:\s|$)`)
	numbers  = regexp.MustCompile(`\b\d{1,5}\b`)
	spans    = regexp.MustCompile("`[a-z-]+(?:[-_.][a-z]+)+`")
	verbs    = regexp.MustCompile(`\b(is|are|can|must|does|will|has to be)\b`)
	capitals = regexp.MustCompile(`\s([A-Z][a-z]{3,})\b`)
	space    = regexp.MustCompile(`\s+`)
)

func squeezed(s string) string { return strings.TrimSpace(space.ReplaceAllString(s, " ")) }

// sentences are those of a passage that can be said as they stand.
func (g shownPassage) sentences() []string {
	var list []string
	for _, s := range prose.FindAllString(g.text, -1) {
		if s = squeezed(s); strings.Count(s, "`")%2 == 0 && !strings.Contains(s, "e.g.") && !strings.HasSuffix(s, "see.") {
			list = append(list, s)
		}
	}
	return list
}

// lie changes a sentence so that no passage says it; the kind is empty if that cannot be done.
func lie(r *rand.Rand, s, all string) (string, string) {
	fresh := func(changed string, word string) bool { return changed != s && !strings.Contains(all, word) }
	for _, kind := range r.Perm(5) {
		switch kind {
		case 0:
			if at := numbers.FindStringIndex(s); at != nil {
				n, _ := strconv.Atoi(s[at[0]:at[1]])
				if word := strconv.Itoa(n*2 + 3); fresh(s[:at[0]]+word+s[at[1]:], word) {
					return "a wrong number", s[:at[0]] + word + s[at[1]:]
				}
			}
		case 1:
			if at := spans.FindStringIndex(s); at != nil {
				if word := s[at[0]+1:at[1]-1] + "_all"; fresh(s, "") || !strings.Contains(all, word) {
					return "a wrong identifier", s[:at[0]+1] + word + s[at[1]-1:]
				}
			}
		case 2:
			if at := capitals.FindStringSubmatchIndex(s); at != nil {
				return "a wrong name", s[:at[2]] + "Zephyrus" + s[at[3]:]
			}
		case 3:
			if strings.Contains(s, " not ") {
				return "a dropped not", strings.Replace(s, " not ", " ", 1)
			}
			if at := verbs.FindStringIndex(s); at != nil && !strings.Contains(s, " no ") {
				return "a planted not", s[:at[1]] + " not" + s[at[1]:]
			}
		case 4:
			if r.IntN(3) == 0 {
				return "invented", []string{
					"The first hundred readers of each month get a discount on their invoice.",
					"Customers in Antarctica have to call the support hotline beforehand.",
					"It was written by volunteers during a long winter on a lighthouse island.",
					"You can buy additional seats from the marketplace whenever the team grows.",
				}[r.IntN(4)]
			}
		}
	}
	return "", ""
}

// answer says some sentences of the passages and some that are none, with citations of which some are wrong.
func (l *liar) answer(a modeltest.Asked) modeltest.Step {
	prompt := a.Messages[len(a.Messages)-1].Text
	_, question, _ := strings.Cut(prompt, "\n\nQuestion: ")
	list := givens(prompt)
	r := l.random(question)
	var all strings.Builder
	for _, g := range list {
		all.WriteString(g.label + " " + g.text)
	}
	var said []planted
	var out strings.Builder
	for range 40 {
		if len(said) >= 6 || len(list) == 0 {
			break
		}
		n := r.IntN(len(list))
		options := list[n].sentences()
		if len(options) == 0 {
			continue
		}
		p, cite := planted{"true", options[r.IntN(len(options))]}, n+1
		if slices.ContainsFunc(said, func(q planted) bool { return q.text == p.text }) {
			continue
		}
		switch r.IntN(8) {
		case 0, 1, 2:
			if kind, text := lie(r, p.text, all.String()); kind != "" {
				p = planted{kind, text}
			}
		case 3:
			cite = r.IntN(len(list)) + 1 // of another passage, mostly
		case 4:
			cite = len(list) + 1 + r.IntN(20) // of none
		}
		said = append(said, p)
		fmt.Fprintf(&out, "%s [%d].%s", strings.TrimSuffix(p.text, "."), cite, []string{" ", "\n\n", " "}[r.IntN(3)])
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said[question], l.given[question] = said, list
	return modeltest.Step{Text: cmp.Or(out.String(), "Nothing of this is documented.")}
}

// heardOf asks a question and gives text and sources of the answer.
func heardOf(t *testing.T, server *harness.Server, p harness.Project, form stream.Form, body map[string]any) (text string, sources []stream.Part) {
	t.Helper()
	path := map[stream.Form]string{stream.DataStream: "/discovery/v1/assistant/", stream.UIMessages: "/discovery/v2/assistant/"}[form]
	resp, err := server.Client(p.Assistant).Do(t.Context(), http.MethodPost, path+p.Domain+"/message", body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for decoder := stream.NewDecoder(form, resp.Body); ; {
		part, err := decoder.Next()
		if err != nil {
			t.Fatal(err)
		}
		switch part.Kind {
		case stream.Source:
			sources = append(sources, part)
		case stream.Finish:
			return text, sources
		default:
			text += part.Text
		}
	}
}

func asking(question string) map[string]any {
	return map[string]any{"fp": "anonymous", "messages": []any{map[string]any{"role": "user", "content": question}}}
}

// headings are questions about what this documentation has sections on.
func headings(t *testing.T) []string {
	t.Helper()
	var list []string
	err := fs.WalkDir(docs.Files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".mdx") {
			return err
		}
		text, err := fs.ReadFile(docs.Files, path)
		_, title, _ := strings.Cut(string(text), "title: \"")
		title, _, _ = strings.Cut(title, "\"")
		for line := range strings.Lines(string(text)) {
			if h, ok := strings.CutPrefix(line, "## "); ok {
				list = append(list, fmt.Sprintf("What do I have to know about %s in %s?", strings.ToLower(strings.TrimSpace(h)), title))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// playing serves a stand-in whose answers a function decides, and writes a configuration for it.
func playing(t *testing.T, answer func(modeltest.Asked) modeltest.Step, more string) (config string, asked func() []modeltest.Asked) {
	t.Helper()
	s := modeltest.New()
	s.Answer = answer
	peer := httptest.NewServer(s)
	t.Cleanup(peer.Close)
	return harness.SettingsFile(t, fmt.Sprintf("default_model = \"peer\"\n[models.peer]\nprovider = \"openai\"\nbase_url = %q\nmodel = \"stand-in\"\n%s",
		peer.URL+"/v1", more)), s.Asked
}

// TestEveryCitationHoldsWhatIsClaimed asks the server, over HTTP, with a model that mixes true sentences with wrong ones
// and with wrong citations. What came out is compared with what the model was given, without the code that checked it:
// each sentence of the answer stands in a passage of a page that the answer cites, and each page that is cited has one.
// CLAIMS_ANSWERS=200 asks more, CLAIMS_REPORT names a file for the figures.
func TestEveryCitationHoldsWhatIsClaimed(t *testing.T) {
	t.Parallel()
	answers := 24
	if text := os.Getenv("CLAIMS_ANSWERS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		answers = n
	}
	l := &liar{said: map[string][]planted{}, given: map[string][]shownPassage{}, random: func(question string) *rand.Rand {
		seed := uint64(len(question))
		for _, b := range []byte(question) {
			seed = seed*31 + uint64(b)
		}
		return rand.New(rand.NewPCG(seed, 24))
	}}
	config, _ := playing(t, l.answer, "searches = -1\nwindow = 32000\n[limits]\nip_day = -1\n")
	data := filepath.Join(t.TempDir(), "data")
	pages := t.TempDir()
	if err := os.CopyFS(pages, docs.Files); err != nil {
		t.Fatal(err)
	}
	project := harness.NewProject(t, data, "docent", pages)
	server := harness.NewServer(t, data, "--config", config)
	questions := headings(t)
	rand.New(rand.NewPCG(1, 24)).Shuffle(len(questions), func(i, j int) { questions[i], questions[j] = questions[j], questions[i] })
	questions = questions[:min(answers, len(questions))]
	f := &figures{said: map[string]int{}, through: map[string]int{}}
	for _, question := range questions {
		text, sources := heardOf(t, server, project, stream.UIMessages, asking(question))
		f.judge(t, question, text, sources, l.said[question], l.given[question])
	}
	// Words do not see each "not" that was put into a sentence; everything else they see.
	nots := f.through["a planted not"] + f.through["a dropped not"]
	for kind, n := range f.through {
		if kind != "true" && !strings.HasSuffix(kind, " not") && n > 0 {
			t.Errorf("%s: %d of %d got through", kind, n, f.said[kind])
		}
	}
	if f.bad*100 > 4*f.citations+300 || nots*100 > 10*(f.said["a planted not"]+f.said["a dropped not"])+300 || f.citations < answers ||
		f.through["true"]*100 < 95*f.said["true"] {
		t.Errorf("of too many it was not seen that they do not hold, or that they do: %s", f.report())
	}
	t.Log(f.report())
	if name := os.Getenv("CLAIMS_REPORT"); name != "" {
		if err := os.WriteFile(name, []byte(f.report()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Figures count what became of what the stand-in said.
type figures struct {
	said, through                    map[string]int
	answers, citations, bad, without int
}

func (f *figures) judge(t *testing.T, question, text string, sources []stream.Part, said []planted, list []shownPassage) {
	t.Helper()
	f.answers++
	flat := squeezed(text)
	for _, p := range said {
		f.said[p.kind]++
		if !strings.Contains(flat, squeezed(p.text)) {
			continue
		}
		f.through[p.kind]++
		if p.kind != "true" {
			t.Logf("%s: %s got through: %q", question, p.kind, p.text)
		}
	}
	if len(sources) == 0 {
		f.without++
	}
	holds := func(s stream.Part, sentence string) bool {
		return slices.ContainsFunc(list, func(g shownPassage) bool {
			return samePage(g.url, s.URL) && strings.Contains(squeezed(g.text), strings.TrimSuffix(sentence, "."))
		})
	}
	for _, s := range sources {
		f.citations++
		if !slices.ContainsFunc(list, func(g shownPassage) bool { return samePage(g.url, s.URL) }) {
			f.bad++
			t.Errorf("%s: %s was not retrieved", question, s.URL)
		} else if !slices.ContainsFunc(said, func(p planted) bool {
			return strings.Contains(flat, squeezed(p.text)) && holds(s, squeezed(p.text))
		}) {
			f.bad++
			t.Logf("%s: %s says nothing of %q", question, s.URL, text)
		}
	}
	for _, p := range said {
		if sentence := squeezed(p.text); strings.Contains(flat, sentence) &&
			!slices.ContainsFunc(sources, func(s stream.Part) bool { return holds(s, sentence) }) {
			f.bad++
			t.Logf("%s: no page that is cited says %q (%s)", question, sentence, p.kind)
		}
	}
}

// samePage reports whether two addresses are of one page, which is what an answer names as its source.
func samePage(a, b string) bool {
	a, _, _ = strings.Cut(a, "#")
	b, _, _ = strings.Cut(b, "#")
	return a == b
}

func (f *figures) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d answers, %d without a source, %d citations, %d sentences or citations that do not hold\n\n", f.answers, f.without,
		f.citations, f.bad)
	b.WriteString("| What the model said | Sentences | Shown to the reader |\n| --- | --- | --- |\n")
	var kinds []string
	for kind := range f.said {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", kind, f.said[kind], f.through[kind])
	}
	return b.String()
}
