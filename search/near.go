package search

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"docent/api"
	"docent/internal/background"
	"docent/internal/brief"
	"docent/internal/cache"
	"docent/internal/tracing"
	"docent/search/meaning"
	"docent/search/page"
)

// Sections are found by meaning as well, if a library has an embedder. Vectors of sections lie beside the index and are made in the
// background; a query that has none yet, or whose own vector cannot be had in time, is answered by its words alone, and says so.

// A SemanticMode says whether a query wants sections that are found by what they mean.
type SemanticMode int8

const (
	SemanticDefault SemanticMode = iota // for whole questions, and for a search box if the library's options say so
	SemanticOn                          // if the library can
	SemanticOff                         // by words alone
)

// An embeddingIndex is what an open index knows of meaning. It never changes: another one takes its place.
type embeddingIndex struct {
	field  *meaning.Field
	from   meaning.Embedder // that is asked for the vectors of questions
	serial uint64           // of all that this process has made
}

// semanticSearch is a library's part in the search by meaning.
type semanticSearch struct {
	embedder meaning.Embedder // nil if words alone are searched
	boxes    bool             // searches in boxes ask the endpoint too
	asked    cache.Cache[questionKey, []float32]
	flights  cache.Flights[questionKey, []float32]
	serial   atomic.Uint64
	others   sync.Map // embedders for other models' vectors, by the models' ids
	work     embeddings
	used     nearCounts
	held     atomic.Int64
}

// nearCounts counts what became of questions.
type nearCounts struct{ helped, without, cached atomic.Uint64 }

// A questionKey names the vector of a question.
type questionKey struct{ model, text string }

// How many bytes the vectors of questions that were asked lately may take.
const askedBytes = 8 << 20

func newSemanticSearch(e meaning.Embedder, boxes bool) *semanticSearch {
	n := &semanticSearch{embedder: e, boxes: boxes}
	n.work.byID, n.work.changed = make(map[api.ProjectID]*Meaning), make(chan struct{}, 1)
	n.asked = cache.Cache[questionKey, []float32]{Most: askedBytes, Held: &n.held,
		Size: func(k questionKey, v []float32) int64 { return int64(len(k.text)+4*len(v)) + 200 }}
	return n
}

// meaning is the library's part in the search by meaning; nil if words alone are searched.
func (l *Library) meaning() *semanticSearch {
	if near := l.near.Load(); near.embedder != nil {
		return near
	}
	return nil
}

// vectorsIn is the folder of the vectors of a project, beside the generations of its index.
func vectorsIn(project string) string { return filepath.Join(project, "meaning") }

// near opens the vectors for a generation that is being opened. Without them it is served all the same.
func (s *snapshot) openMeaning() {
	n := s.library.meaning()
	if n == nil {
		s.setMeaning(nil)
		return
	}
	m, err := n.attach(vectorsIn(filepath.Dir(s.Dir)), s)
	if err != nil {
		s.library.log.Warn("vectors cannot be used", "index", s.Dir, "error", err)
	}
	s.setMeaning(m)
}

func (s *snapshot) setMeaning(m *embeddingIndex) {
	var more int64
	if m != nil {
		more = m.field.Bytes()
	}
	if old := s.embeddingIndex.Swap(m); old != nil {
		more -= old.field.Bytes()
	}
	s.meantBytes.Add(more)
	if s.memory != nil {
		s.memory.Add(more)
	}
}

// servesFrom is the share of the sections that must have vectors for these to be used: with few, the sections that have
// some would come before better ones.
const servesFrom = 0.8

// attach makes what a snapshot knows of meaning from the vectors on disk: those of the library's model, or as long as
// they are too few, those of a model before it.
func (n *semanticSearch) attach(dir string, s *snapshot) (*embeddingIndex, error) {
	models, err := meaning.Models(dir)
	if err != nil || len(models) == 0 {
		return nil, err
	}
	keys, err := s.sectionKeys()
	if err != nil {
		return nil, err
	}
	own := n.embedder.Model()
	var best *embeddingIndex
	for _, m := range models {
		field, err := meaning.Load(dir, m, keys)
		if err != nil {
			return best, err
		}
		if field == nil || float64(field.Len()) < servesFrom*float64(countKeys(keys)) {
			continue
		}
		isOwn := m.ID() == own.ID()
		if isOwn || best == nil {
			best = &embeddingIndex{field: field, from: n.embedderOf(m), serial: n.serial.Add(1)}
		}
		if isOwn {
			break
		}
	}
	return best, nil
}

// embedderOf asks for the questions of a model's vectors.
func (n *semanticSearch) embedderOf(m meaning.Model) meaning.Embedder {
	if m.ID() == n.embedder.Model().ID() {
		return n.embedder
	}
	if e, ok := n.others.Load(m.ID()); ok {
		return e.(meaning.Embedder)
	}
	e, _ := n.others.LoadOrStore(m.ID(), n.embedder.Like(m))
	return e.(meaning.Embedder)
}

func countKeys(keys []meaning.Key) (n int) {
	for _, k := range keys {
		if k != (meaning.Key{}) {
			n++
		}
	}
	return n
}

// sectionKeys are the keys of the sections by number; zero for those that no search finds. They are not to be changed.
func (s *snapshot) sectionKeys() (_ []meaning.Key, err error) {
	s.keying.Lock()
	defer s.keying.Unlock()
	if s.keys == nil {
		s.keys, err = s.makeKeys(nil, nil)
	}
	return s.keys, err
}

// takeKeys takes over the keys that the snapshot before knows, of the pages that have not changed.
func (s *snapshot) takeKeys(before *snapshot) {
	before.keying.Lock()
	known := before.keys
	before.keying.Unlock()
	if known != nil {
		s.keys, _ = s.makeKeys(before, known) // without them the first who asks is told why
	}
}

func (s *snapshot) makeKeys(before *snapshot, known []meaning.Key) ([]meaning.Key, error) {
	keys, next := make([]meaning.Key, len(s.sections)), 0
	for at, r := range s.pages {
		if r.Hidden || s.covered[uint32(at)] {
			continue
		}
		own := keys[s.firstOf[at]:s.firstOf[at+1]]
		if before != nil {
			for next < len(before.pages) && before.pages[next].Path < r.Path {
				next++
			}
			if next < len(before.pages) && before.pages[next] == r && !before.covered[uint32(next)] {
				copy(own, known[before.firstOf[next]:])
				continue
			}
		}
		content, err := s.Content(r)
		if err != nil {
			return nil, err
		}
		for n := range own {
			sec := &r.Sections[n]
			from, to := max(0, min(sec.Start, r.Size)), max(0, min(sec.End, r.Size))
			own[n] = meaning.KeyOf([]byte(heading(r, sec)), content[from:max(from, to)])
		}
	}
	return keys, nil
}

// heading is what stands above the text of a section for an embedding model: the page and what it is about, then the
// headings down to the section's own.
func heading(r *page.Record, sec *page.Section) string {
	var b strings.Builder
	b.WriteString(r.Title)
	if r.Description != "" && sec.Heading == "" {
		b.WriteString("\n" + r.Description)
	}
	if sec.Heading != "" {
		b.WriteString("\n")
		for _, above := range sec.Trail {
			b.WriteString(above + " > ")
		}
		b.WriteString(sec.Heading)
	}
	return b.String()
}

// inlineLink is a link as Markdown has it; its address says nothing of the text's meaning.
var inlineLink = regexp.MustCompile(`!?\[([^\]\n]*)\]\([^)\s]*(?:\s"[^"\n]*")?\)`)

// passage is a section as an embedding model gets it.
func (s *snapshot) passage(section uint32, longest int) (string, error) {
	r, sec := s.pages[s.pageOf[section]], s.sections[section]
	buf := make([]byte, max(0, min(sec.End-sec.Start, int64(4*longest))))
	if _, err := s.Text.ReadAt(buf, r.Offset+sec.Start); err != nil {
		return "", fmt.Errorf("read %s: %w", r.Path, err)
	}
	text := strings.ToValidUTF8(s.readable(r, buf, s.labels()), "")
	if first, rest, ok := strings.Cut(strings.TrimSpace(text), "\n"); ok && sec.Heading != "" && strings.HasPrefix(first, "#") {
		text = rest // the heading stands above already
	}
	text = heading(r, sec) + "\n" + strings.TrimSpace(inlineLink.ReplaceAllString(text, "$1"))
	for len(text) > longest {
		text = text[:longest]
		for !utf8.ValidString(text) {
			text = text[:len(text)-1]
		}
	}
	return text, nil
}

// degraded tells the caller what had no part in a search.
func (q *Query) degraded(why string) {
	if q.Degraded != nil {
		q.Degraded(why)
	}
}

// once tells each reason once, one at a time: several sources are searched side by side.
func once(tell func(why string)) func(why string) {
	if tell == nil {
		return nil
	}
	var mu sync.Mutex
	told := map[string]bool{}
	return func(why string) {
		mu.Lock()
		defer mu.Unlock()
		if !told[why] {
			told[why] = true
			tell(why)
		}
	}
}

// meaningOf is what a query may use of meaning; nil if it goes by words alone.
func (s *snapshot) meaningOf(q *Query) *embeddingIndex {
	n := s.library.meaning()
	if n == nil || q.Meaning == SemanticOff || q.Meaning == SemanticDefault && q.Box && !n.boxes {
		return nil
	}
	m := s.embeddingIndex.Load()
	if m == nil {
		n.used.without.Add(1)
		q.degraded(noVectors)
	}
	return m
}

// both ranks by words and, if it can, by meaning; helped is whether it could.
func (s *snapshot) both(ctx context.Context, q Query) (found []scored, helped bool, err error) {
	m := s.meaningOf(&q)
	if m == nil {
		found, err = s.ranked(ctx, q)
		return found, false, err
	}
	key := s.key(&q)
	key.meaning = m.serial
	near := s.library.near.Load()
	if found, ok := s.results.Get(key); ok {
		near.used.cached.Add(1)
		return found, true, nil
	}
	vector, err := near.question(ctx, m.from, q.Text)
	if err != nil {
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		near.used.without.Add(1)
		q.degraded(whyNot(err))
		found, err = s.ranked(ctx, q)
		return found, false, err
	}
	found, helped, err = s.fused(ctx, q, m, vector)
	if err == nil && helped {
		near.used.helped.Add(1)
		s.results.Put(key, found)
	}
	return found, helped, err
}

// What a search says that meaning had no part in.
const (
	degradedPart = "meaning: "
	noVectors    = degradedPart + "not ready"     // the vectors of the sections are still being made
	otherVectors = degradedPart + "other vectors" // the endpoint's have another number of dimensions now
)

func whyNot(err error) string {
	if later, ok := errors.AsType[*meaning.Later](err); ok {
		return degradedPart + later.Why
	}
	return degradedPart + meaning.Unavailable
}

// question is the vector of a question: remembered, or asked for once for all who want it.
func (n *semanticSearch) question(ctx context.Context, from meaning.Embedder, text string) (vector []float32, err error) {
	ctx, span := tracing.Start(ctx, "embed the question")
	defer func() { span.Done(err) }()
	key := questionKey{from.Model().ID(), brief.Line(text)}
	if v, ok := n.asked.Get(key); ok {
		return v, nil
	}
	f, first := n.flights.Join(key)
	if first {
		// Its own time limit ends it, not the end of the first who asked: others may wait for it.
		background.Go("search.question", func() {
			n.flights.Land(key, f, func() ([]float32, error) {
				vector, err := from.Question(context.WithoutCancel(ctx), key.text)
				if err == nil {
					n.asked.Put(key, vector)
				}
				return vector, err
			})
		})
	}
	return f.Wait(ctx)
}

// scopeFound is the scope that a ranking by words was answered from: it may have gone on to another language.
func (s *snapshot) scopeFound(ctx context.Context, q *Query, found []scored) (scope, error) {
	sc, err := s.scopeOf(ctx, q)
	if err != nil || sc.strict || sc.anything || len(s.locales) == 1 || len(found) == 0 {
		return sc, err
	}
	switch locale := int(s.localeOf[s.pageOf[found[0].section]]); {
	case locale == sc.locale || sc.locale == everyLocale:
	case locale == 0 && sc.certain:
		sc.foreign = true
	default:
		sc.locale = locale
	}
	return sc, nil
}

// nearSections is how many sections that lie near are taken into account.
const nearSections = 100

// fused ranks by words and by a question's vector; helped is false if that is of another model than it was.
func (s *snapshot) fused(ctx context.Context, q Query, m *embeddingIndex, vector []float32) (list []scored, helped bool,
	err error) {
	probe := m.field.Probe(vector)
	if probe == nil {
		s.library.near.Load().used.without.Add(1)
		q.degraded(otherVectors)
		list, err = s.ranked(ctx, q)
		return list, false, err
	}
	deep := q
	deep.Limit, deep.Threshold, deep.Sections = max(s.tuning.Closer, q.pages()), 0, max(q.Sections, fusedSections)
	found, err := s.ranked(ctx, deep)
	if err != nil {
		return nil, false, err
	}
	sc, err := s.scopeFound(ctx, &q, found)
	if err != nil {
		return nil, false, err
	}
	_, span := tracing.Start(ctx, "retrieve by meaning")
	near := m.field.Nearest(probe, nearSections, s.allowed(s.filter(&q, &sc)))
	span.Int("docent.sections", int64(len(near)))
	span.End()
	_, span = tracing.Start(ctx, "fuse")
	list = s.fuse(q, found, near, probe, m.field)
	span.Int("docent.sections", int64(len(list)))
	span.End()
	return list, true, nil
}

// allowed is a filter of pages for sections. Sections come in the order of their pages, so each page is looked at once.
func (s *snapshot) allowed(filter func(page uint32) bool) func(section uint32) bool {
	last, may := -1, false
	return func(section uint32) bool {
		if at := int(s.pageOf[section]); at != last {
			last, may = at, filter(uint32(at))
		}
		return may
	}
}

// Meanings returns the state of each project's vectors, by project; nothing if there is no embedder.
func (l *Library) Meanings() []Meaning {
	near := l.meaning()
	if near == nil {
		return nil
	}
	return near.work.states()
}

// Meaning says how the vectors of one project stand.
func (l *Library) Meaning(project api.ProjectID) (Meaning, bool) {
	near := l.meaning()
	if near == nil {
		return Meaning{}, false
	}
	return near.work.state(project), true
}
