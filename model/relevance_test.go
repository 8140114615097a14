package model

import (
	"archive/tar"
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A corpus is a documentation set, searched by plain BM25 over sections: the room may not import the real search, whose
// passages the same judgement is made on elsewhere.
type corpus struct {
	passages []Passage
	terms    []map[string]int
	lengths  []float64
	df       map[string]int
	average  float64
}

func sharedFolder(t testing.TB) string {
	t.Helper()
	dir := filepath.Join("..", "..", "shared", "relevance")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the judged queries are not beside the repository")
	}
	return dir
}

var (
	frontMatter = regexp.MustCompile(`(?s)\A(---|\+\+\+)\n(.*?)\n(---|\+\+\+)\n`)
	frontTitle  = regexp.MustCompile(`(?m)^title\s*[:=]\s*["']?(.*?)["']?\s*$`)
	cutHeading  = regexp.MustCompile(`^(#{1,4})\s+(.*?)\s*$`)
)

func loadCorpus(t testing.TB, file string) *corpus {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	c := &corpus{df: map[string]int{}}
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if ext := path.Ext(h.Name); ext != ".md" && ext != ".mdx" {
			continue
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		name := h.Name[strings.Index(h.Name, "/")+1:]
		c.add(name, string(data))
	}
	total := 0.0
	for i := range c.passages {
		p := &c.passages[i]
		m := map[string]int{}
		n := 0
		count := func(text string, times int) {
			for _, term := range terms(text) {
				m[term] += times
				n++
			}
		}
		count(p.Title, 3)
		count(p.Heading, 4)
		count(p.Text, 1)
		for term := range m {
			c.df[term]++
		}
		c.terms = append(c.terms, m)
		c.lengths = append(c.lengths, float64(n))
		total += float64(n)
	}
	c.average = total / float64(len(c.passages))
	return c
}

func (c *corpus) add(name, src string) {
	title := strings.TrimSuffix(path.Base(name), path.Ext(name))
	if m := frontMatter.FindStringSubmatch(src); m != nil {
		if f := frontTitle.FindStringSubmatch(m[2]); f != nil {
			title = f[1]
		}
		src = src[len(m[0]):]
	}
	p := Passage{Path: name, Title: title, URL: "https://docs.example/" + strings.TrimSuffix(name, path.Ext(name))}
	var body []string
	put := func() {
		if p.Text = strings.Join(body, "\n"); strings.TrimSpace(p.Text) != "" || p.Heading != "" {
			c.passages = append(c.passages, p)
		}
		body = nil
	}
	fenced := false
	for line := range strings.Lines(src) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if m := cutHeading.FindStringSubmatch(line); m != nil && !fenced {
			text := explicitID.ReplaceAllString(m[2], "")
			if len(m[1]) == 1 && title == strings.TrimSuffix(path.Base(name), path.Ext(name)) {
				title = text
				p.Title = text
				continue
			}
			put()
			p = Passage{Path: p.Path, Title: title, URL: p.URL, Heading: text}
			continue
		}
		body = append(body, line)
	}
	put()
}

// search gives the best section of each of the best n pages.
func (c *corpus) search(question string, n int) []Passage {
	const k1, b = 1.5, 0.6
	asked := terms(question)
	slices.Sort(asked)
	asked = slices.Compact(asked)
	type hit struct {
		at    int
		score float64
	}
	ideal := 0.0
	idf := map[string]float64{}
	for _, term := range asked {
		d := float64(c.df[term])
		idf[term] = math.Log(1 + (float64(len(c.passages))-d+0.5)/(d+0.5))
		ideal += idf[term] * (k1 + 1)
	}
	var hits []hit
	for i, m := range c.terms {
		s := 0.0
		for _, term := range asked {
			if tf := float64(m[term]); tf > 0 {
				s += idf[term] * tf * (k1 + 1) / (tf + k1*(1-b+b*c.lengths[i]/c.average))
			}
		}
		if s > 0 {
			hits = append(hits, hit{i, s / ideal})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	var out []Passage
	seen := map[string]bool{}
	for _, h := range hits {
		p := c.passages[h.at]
		if seen[p.Path] {
			continue
		}
		seen[p.Path] = true
		p.Score = h.score
		if out = append(out, p); len(out) == n {
			break
		}
	}
	return out
}

type judged struct {
	Corpus   string   `json:"corpus"`
	Kind     string   `json:"kind"`
	Query    string   `json:"query"`
	Relevant []string `json:"relevant"`
	Sections []string `json:"sections"`
}

func loadQuestions(t testing.TB, dir string) []judged {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "queries.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []judged
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var q judged
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			t.Fatal(err)
		}
		if q.Kind == "question" {
			out = append(out, q)
		}
	}
	return out
}
