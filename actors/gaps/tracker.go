package gaps

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"docent/actors/gaps/topics"
	"docent/api"
	"docent/internal/brief"
	"docent/internal/required"
	"docent/model"
	"docent/model/builtin"
	"docent/persistence/catalog/insights"
	"docent/persistence/cluster"
)

const (
	// MostOpen is how many questions topics are made of: the newest of a time.
	MostOpen = 5000
	// MostAll is the same when all questions are looked at, including those that were answered.
	MostAll = 3000

	maxProjects = 32           // whose questions are remembered
	maxKept     = 3 * MostOpen // questions of a project that are remembered
	maxResults  = 8            // times of a project of which the topics are remembered
	longest     = 2000         // characters of a question that are remembered
	commentMost = 1000         // the same of a comment
	anonymous   = "anonymous"  // the caller whom nobody knows
	matchWindow = 90 * 24 * time.Hour
)

// A Tracker knows the topics of all projects. What it has read it remembers, so that a page is made without reading it
// again; it remembers nothing that the catalog does not have.
type Tracker struct {
	Deps
	mu       sync.Mutex
	projects *lru.Cache[api.ProjectID, *memory]
}

// New makes a Tracker.
func New(deps Deps) (*Tracker, error) {
	if err := required.Fields("gaps", deps, "Catalog", "Documents", "Model", "Starter", "Jobs",
		"Pulls", "Now", "Log"); err != nil {
		return nil, err
	}
	projects, err := lru.New[api.ProjectID, *memory](maxProjects)
	if err != nil {
		return nil, err
	}
	return &Tracker{Deps: deps, projects: projects}, nil
}

// memory is what is remembered of a project. Its lock is held while something is made, so that it is made once.
type memory struct {
	mu       sync.Mutex
	open     map[api.TurnID]kept // that were not answered well
	all      map[api.TurnID]kept // of all, whose versions are others
	results  *lru.Cache[resultKey, *result]
	asking   sync.Mutex // held while questions are asked again, so that each is asked once
	verdicts *lru.Cache[asked, verdict]
	rarity   map[string]int // in how many sections a term is
	sections int
	commit   string // that rarity was counted at
}

type kept struct {
	version  int64
	question topics.Question
}

// A resultKey is all that a grouping depends on but the questions.
type resultKey struct {
	all      bool
	from, to time.Time
	stored   uint64 // which topics are stored
	commit   string
	day      int64
}

// A result is the topics of some questions.
type result struct {
	topics []topics.Topic
	digest uint64 // of the questions
	made   time.Time
	took   time.Duration
}

const (
	quick    = 50 * time.Millisecond // a grouping that takes longer is repeated for others less often
	restsFor = 20                    // times what it took
)

// good reports whether a result can be shown: it is of the same questions, or it takes long to make and is young.
func (r *result) good(digest uint64) bool {
	return r.digest == digest || r.took > quick && time.Since(r.made) < restsFor*r.took
}

func (t *Tracker) memory(project api.ProjectID) *memory {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, ok := t.projects.Get(project)
	if !ok {
		results, err := lru.New[resultKey, *result](maxResults)
		if err != nil {
			panic(err) // of a size that is not positive
		}
		verdicts, err := lru.New[asked, verdict](maxVerdicts)
		if err != nil {
			panic(err)
		}
		m = &memory{open: map[api.TurnID]kept{}, all: map[api.TurnID]kept{}, results: results, verdicts: verdicts}
		t.projects.Add(project, m)
	}
	return m
}

// A Topic is a topic of questions, and what is stored of it.
type Topic struct {
	topics.Topic
	ID  string   // of the stored gap, or else of a question
	Gap *api.Gap // nil if nobody has acted on it
	// Answered is whether the documentation, as it is now, answers what was asked, so that it is no gap.
	Answered bool
}

// State is the topic's state.
func (t Topic) State() api.GapState {
	if t.Gap == nil {
		return api.GapOpen
	}
	return t.Gap.State
}

// A Listing is the topics of a time, the most asked first.
type Listing struct {
	Topics    []Topic
	Questions int  // that they are made of
	More      bool // there are older questions in that time, which were not looked at
	Unasked   int  // topics whose questions are asked again when they are listed the next time
}

// Topics lists the topics of the questions that were not answered well. Those that are stored and of which nobody has
// asked in that time stand at the end, without questions. The questions of those that are open are asked again, as far as
// there is time for it.
func (t *Tracker) Topics(ctx context.Context, project api.ProjectID, from, to time.Time) (Listing, error) {
	list, err := t.topics(ctx, project, from, to)
	if err != nil {
		return list, err
	}
	return list, t.askAll(ctx, project, &list)
}

func (t *Tracker) topics(ctx context.Context, project api.ProjectID, from, to time.Time) (Listing, error) {
	stored, err := t.Catalog.Gaps(ctx, project)
	if err != nil {
		return Listing{}, err
	}
	marks, more, err := t.Catalog.OpenQuestions(ctx, insights.AnalyticsQuery{Project: project, From: from, To: to,
		Limit: MostOpen})
	if err != nil {
		return Listing{}, err
	}
	found, err := t.group(ctx, project, resultKey{from: from, to: to}, marks, stored)
	if err != nil {
		return Listing{}, err
	}
	out := Listing{More: more}
	seen := map[int]bool{}
	for _, topic := range found {
		out.Questions += len(topic.Questions)
		full := Topic{Topic: topic, ID: topic.ID}
		if topic.Seed >= 0 {
			seen[topic.Seed] = true
			full.Gap = &stored[topic.Seed]
			full.ID = string(full.Gap.ID)
		}
		out.Topics = append(out.Topics, full)
	}
	for i := range stored {
		if !seen[i] {
			out.Topics = append(out.Topics, withoutQuestions(&stored[i]))
		}
	}
	for i := range out.Topics {
		if gap := out.Topics[i].Gap; gap != nil {
			t.follow(ctx, gap)
		}
	}
	return out, nil
}

func withoutQuestions(g *api.Gap) Topic {
	return Topic{Topic: topics.Topic{Question: g.Question, Words: g.Words, Terms: g.Terms}, ID: string(g.ID), Gap: g}
}

// Asked groups all questions of a time, the most asked first, also those that were answered.
func (t *Tracker) Asked(ctx context.Context, project api.ProjectID, from, to time.Time) (Listing, error) {
	marks, more, err := t.Catalog.QuestionMarks(ctx, insights.AnalyticsQuery{Project: project, From: from, To: to,
		Limit: MostAll})
	if err != nil {
		return Listing{}, err
	}
	found, err := t.group(ctx, project, resultKey{all: true, from: from, to: to}, marks, nil)
	out := Listing{More: more}
	for _, topic := range found {
		out.Questions += len(topic.Questions)
		out.Topics = append(out.Topics, Topic{Topic: topic, ID: topic.ID})
	}
	return out, err
}

// group makes topics of the questions that are marked, or remembers that it has.
func (t *Tracker) group(ctx context.Context, project api.ProjectID, key resultKey, marks []insights.QuestionMark,
	stored []api.Gap) ([]topics.Topic, error) {
	m := t.memory(project)
	m.mu.Lock()
	defer m.mu.Unlock()
	now, began := t.Now(), time.Now()
	key.stored, key.commit, key.day = digestOf(nil, stored), t.Documents.Commit(project),
		now.Unix()/(24*3600) // ranks change with the days
	of := digestOf(marks, nil)
	if made, ok := m.results.Get(key); ok && made.good(of) {
		return made.topics, nil
	}
	questions, err := t.read(ctx, m, key.all, project, marks)
	if err != nil {
		return nil, err
	}
	questions = slices.DeleteFunc(slices.Clone(questions), func(q topics.Question) bool {
		return builtin.Courtesy(cmp.Or(q.Own, q.Text)) != ""
	})
	seeds := make([]topics.Seed, len(stored))
	for i, g := range stored {
		seeds[i] = g.Terms
	}
	rarity, err := t.rarity(ctx, m, project, questions, seeds)
	if err != nil {
		return nil, err
	}
	found := topics.Topics(questions, seeds, rarity, now)
	m.results.Add(key, &result{found, of, time.Now(), time.Since(began)})
	return found, nil
}

// digestOf tells apart lists of questions and of stored topics.
func digestOf(marks []insights.QuestionMark, stored []api.Gap) uint64 {
	h := fnv.New64a()
	var b [8]byte
	for _, m := range marks {
		h.Write([]byte(m.ID))
		binary.LittleEndian.PutUint64(b[:], uint64(m.Version))
		h.Write(b[:])
	}
	for _, g := range stored { // the terms of one never change
		h.Write([]byte(g.ID))
	}
	return h.Sum64()
}

// read returns the questions that are marked: from memory if they have not changed.
func (t *Tracker) read(ctx context.Context, m *memory, all bool, project api.ProjectID, marks []insights.QuestionMark) (
	[]topics.Question, error) {
	known := m.open
	if all {
		known = m.all
	}
	var missing []api.TurnID
	version := make(map[api.TurnID]int64, len(marks))
	for _, mark := range marks {
		version[mark.ID] = mark.Version
		if have, ok := known[mark.ID]; !ok || have.version != mark.Version {
			missing = append(missing, mark.ID)
		}
	}
	if len(known)+len(missing) > maxKept {
		for id := range known {
			if _, wanted := version[id]; !wanted {
				delete(known, id)
			}
		}
	}
	rows, err := t.Catalog.QuestionsOf(ctx, project, missing)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		known[rows[i].ID] = kept{version[rows[i].ID], question(&rows[i])}
	}
	out := make([]topics.Question, 0, len(marks))
	for _, mark := range marks {
		if have, ok := known[mark.ID]; ok { // one that was removed meanwhile is not there
			out = append(out, have.question)
		}
	}
	return out, nil
}

// question is a row as topics are made of it.
func question(r *api.QuestionRow) topics.Question {
	q := topics.Question{ID: string(r.ID), Thread: string(r.Thread), Text: brief.Runes(r.Standing(), longest, ""), Asker: r.Caller,
		Asked: r.Asked, Comment: brief.Runes(r.Comment, commentMost, ""), Words: topics.Read(r.Standing())}
	if r.Before != "" && r.Rewritten == "" {
		q.Own, q.Before = brief.Runes(r.Question, longest, ""), r.Before
		q.Words = topics.Read(builtin.Standalone(r.Question, said(r.Before), nil)) // without what it replaces
	}
	if q.Asker == "" || q.Asker == anonymous {
		q.Asker = q.Thread // who is not known counts once for each conversation
	}
	switch {
	case r.Answered || r.Error != "":
	case len(r.Sources) > 0:
		q.Kind |= topics.Doubt
	default:
		q.Kind |= topics.Unanswered
	}
	if r.Rating == api.RatedDown {
		q.Kind |= topics.RatedDown
	}
	return q
}

// said is a conversation in which a reader has said that much.
func said(before string) []model.Message {
	if before == "" {
		return nil
	}
	return []model.Message{{Role: "user", Text: before}}
}

// rarity counts in how many sections terms are, once for each commit of the documentation. Without an index, only the
// questions tell what is rare.
func (t *Tracker) rarity(ctx context.Context, m *memory, project api.ProjectID, questions []topics.Question,
	seeds []topics.Seed) (topics.Rarity, error) {
	if commit := t.Documents.Commit(project); commit != m.commit || m.rarity == nil || len(m.rarity) > 20*maxKept {
		m.commit, m.rarity, m.sections = commit, map[string]int{}, 0
	}
	var fresh []string
	note := func(term string) {
		if _, ok := m.rarity[term]; !ok {
			m.rarity[term] = 0
			fresh = append(fresh, term)
		}
	}
	for i := range questions {
		for _, w := range questions[i].Words {
			note(w.Term)
		}
	}
	for _, seed := range seeds {
		for term := range seed {
			note(term)
		}
	}
	if len(fresh) > 0 {
		in, of, err := t.Documents.Rarity(ctx, project, fresh)
		if err != nil {
			m.rarity = nil // what was noted was not counted
			if unindexed(err) {
				return nil, nil
			}
			return nil, err
		}
		m.sections = of
		for i, term := range fresh {
			m.rarity[term] = in[i]
		}
	}
	counts, sections := m.rarity, m.sections
	return func(terms []string) ([]int, int) {
		in := make([]int, len(terms))
		for i, term := range terms {
			in[i] = counts[term]
		}
		return in, sections
	}, nil
}

// Find is the topic of an id: of a stored one, or of a question in it. A topic that is old is found as well, by its
// question.
func (t *Tracker) Find(ctx context.Context, project api.ProjectID, id string, now time.Time) (Topic, error) {
	for _, from := range []time.Time{now.Add(-matchWindow), {}} {
		list, err := t.topics(ctx, project, from, time.Time{})
		if err != nil {
			return Topic{}, err
		}
		var empty *Topic
		for i := range list.Topics {
			topic := &list.Topics[i]
			switch {
			case topic.ID == id && len(topic.Questions) > 0, topic.Gap != nil && string(topic.Gap.Anchor) == id,
				slices.ContainsFunc(topic.Questions, func(q topics.Question) bool { return q.ID == id }):
				return *topic, nil
			case topic.ID == id:
				empty = topic
			}
		}
		if empty != nil && from.IsZero() {
			return *empty, nil
		}
	}
	if !api.ValidID(api.TurnPrefix, id) {
		return Topic{}, missing
	}
	rows, err := t.Catalog.QuestionsOf(ctx, project, []api.TurnID{api.TurnID(id)})
	if err != nil {
		return Topic{}, err
	}
	if len(rows) == 0 {
		return Topic{}, missing
	}
	alone := topics.Topics([]topics.Question{question(&rows[0])}, nil, nil, now)
	if len(alone) == 0 || alone[0].Questions[0].Kind == 0 {
		return Topic{}, missing
	}
	return Topic{Topic: alone[0], ID: id}, nil
}

var missing = &api.StateError{Kind: api.ErrNotFound,
	Reason: "there is no such topic: its questions were removed, or are answered well"}

// passing reports an error after which nobody knows whether something took place, or after which another node carries it
// on: the request goes there, and finds the order as it is stored.
func passing(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.As(err, new(*cluster.ElsewhereError))
}
