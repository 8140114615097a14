package reports

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/actors/gaps"
	"docent/actors/gaps/topics"
	"docent/api"
	"docent/internal/task/tasktest"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/insights"
	"docent/persistence/journal"
)

// figures are what a catalog and the topics would say.
type stub struct {
	*catalog.Catalog
	totals   insights.QuestionTotals
	searches []insights.SearchCount
	pages    []insights.CitedPage
	topics   []gaps.Topic
	since    gaps.Since
	merged   []api.Gap
	asked    []insights.AnalyticsQuery
}

func (s *stub) Totals(_ context.Context, q insights.AnalyticsQuery) (insights.QuestionTotals, error) {
	s.asked = append(s.asked, q)
	return s.totals, nil
}

func (s *stub) SearchesWithoutResult(context.Context, insights.AnalyticsQuery) ([]insights.SearchCount, string, error) {
	return s.searches, "", nil
}

func (s *stub) CitedPages(context.Context, insights.AnalyticsQuery) ([]insights.CitedPage, string, error) {
	return s.pages, "", nil
}

func (s *stub) Gaps(context.Context, api.ProjectID, ...api.GapState) ([]api.Gap, error) {
	return s.merged, nil
}

func (s *stub) Topics(context.Context, api.ProjectID, time.Time, time.Time) (gaps.Listing, error) {
	return gaps.Listing{Topics: s.topics}, nil
}
func (s *stub) SinceMerge(context.Context, api.Gap) (gaps.Since, error) { return s.since, nil }
func (s *stub) Follow(context.Context) error                            { return nil }

type house struct {
	t *testing.T
	*Reports
	stub    *stub
	journal *journal.Journal

	tasks   tasktest.Queue
	setting sync.Mutex // the catalog looks at the clock by itself now and then
	now     time.Time  // set by the test alone
}

func (h *house) set(now time.Time) {
	h.setting.Lock()
	defer h.setting.Unlock()
	h.now = now
}

func (h *house) clock() time.Time {
	h.setting.Lock()
	defer h.setting.Unlock()
	return h.now
}

// monday is one hour before reports are due.
var monday = time.Date(2026, 11, 23, 7, 0, 0, 0, time.UTC)

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, now: monday.AddDate(0, 0, -3)}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	c, err := catalog.Open(t.Context(), catalogtest.SQLite(t), catalog.Options{Log: log, Now: h.clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if h.journal, err = journal.Open(filepath.Join(t.TempDir(), "journal"), journal.Options{Log: log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.journal.Close() })
	h.stub = &stub{Catalog: c}
	if _, err := c.AddProject(t.Context(), api.Project{ID: "docs", Domain: "docs.example.com", Source: "/src"}); err != nil {
		t.Fatal(err)
	}
	h.restart()
	h.set(monday)
	return h
}

// restart is another process on the same data.
func (h *house) restart() {
	h.t.Helper()
	h.tasks = tasktest.Queue{}
	r, err := New(Deps{Catalog: h.stub, Topics: h.stub, Journal: h.journal, Tasks: &h.tasks, Now: h.clock,
		Log: slog.New(slog.NewTextHandler(h.t.Output(), nil)), PublicURL: "https://docent.example.com"})
	if err != nil {
		h.t.Fatal(err)
	}
	h.Reports = r
}

func (h *house) step() {
	h.t.Helper()
	h.Wake()
	h.tasks.Run(h.t.Context())
}

// wants adds a webhook at a time.
func (h *house) wants(id string, at time.Time, kinds ...api.EventKind) {
	h.t.Helper()
	w := api.Webhook{ID: id, Project: "docs", URL: "https://a.example/", Events: kinds, CreatedAt: at}
	if err := h.stub.AddWebhook(h.t.Context(), w, 0); err != nil {
		h.t.Fatal(err)
	}
}

// made are the weeks of the reports that the journal holds.
func (h *house) made() (weeks []string) {
	h.t.Helper()
	err := h.journal.Log(0, func(string) bool { return true }, func(e journal.Logged) bool {
		m, err := Decode(e.Event)
		if project, ok := OfStream(e.Stream); !ok || project != "docs" || err != nil {
			h.t.Errorf("the journal holds %+v: %v", e, err)
		}
		weeks = append(weeks, m.Data.Week)
		return true
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return weeks
}

func TestAReportIsMadeOnMondayOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.wants("whk_1", monday.AddDate(0, 0, -3))
	h.step()
	if got := h.made(); len(got) != 0 {
		t.Fatalf("before it is due: %v", got)
	}
	h.set(monday.Add(time.Hour))
	for range 3 {
		h.step()
		h.restart()
	}
	rec, err := h.journal.Load(Stream("docs"))
	if err != nil || rec.Seq != 1 {
		t.Fatalf("%d reports are journaled: %v", rec.Seq, err)
	}
	if len(rec.Events) == 1 {
		var m struct {
			Type string
			Data Report
		}
		if err := json.Unmarshal(rec.Events[0].Data, &m); err != nil || m.Type != "report.weekly" || m.Data.Week != "2026-W47" ||
			m.Data.Domain != "docs.example.com" ||
			m.Data.URL != "https://docent.example.com/console/default/docs.example.com/report?week=2026-W47" {
			t.Errorf("it says %s, %v", rec.Events[0].Data, err)
		}
	}
	h.set(h.now.AddDate(0, 0, 7))
	h.step()
	if got := h.made(); !slices.Equal(got, []string{"2026-W47", "2026-W48"}) {
		t.Errorf("a week later: %v", got)
	}
	h.set(h.now.AddDate(0, 0, 21))
	h.step()
	if got := h.made(); len(got) != 3 || got[2] != "2026-W51" {
		t.Errorf("after a server was off for three weeks: %v", got)
	}
	h.set(h.now.AddDate(0, 0, -14))
	h.step()
	if got := h.made(); len(got) != 3 {
		t.Errorf("after the clock was set back: %v", got)
	}
}

func TestOnlyAReportThatWasWantedWhenItWasDueIsMade(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.wants("whk_1", monday.AddDate(0, 0, -30), api.EventJobEnded)
	h.wants("whk_2", monday.Add(2*time.Hour), api.EventReportWeekly)
	h.set(monday.Add(3 * time.Hour))
	h.step()
	if got := h.made(); len(got) != 0 {
		t.Errorf("a webhook of afterwards gets %v", got)
	}
	h.set(h.now.AddDate(0, 0, 7))
	h.step()
	if got := h.made(); !slices.Equal(got, []string{"2026-W48"}) {
		t.Errorf("a week later: %v", got)
	}
}

// A report of before reports were journaled was made by an earlier version: its event is there.
func TestAReportOfAnEarlierVersionIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.wants("whk_1", monday.AddDate(0, 0, -3))
	event := api.WebhookEvent{ID: "rpt_docs_2026-W47", Position: 1, Project: "docs", Kind: api.EventReportWeekly,
		Stream: Stream("docs"), At: monday, Payload: []byte("{}")}
	if err := h.stub.AddEvents(t.Context(), []api.WebhookEvent{event}, nil, 1); err != nil {
		t.Fatal(err)
	}
	h.set(monday.Add(time.Hour))
	h.step()
	if got := h.made(); len(got) != 0 {
		t.Errorf("made are %v", got)
	}
}

// The week of a project begins in its time zone.
func TestAReportIsMadeInTheProjectsTimeZone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if _, err := h.stub.ChangeProject(t.Context(), "docs", func(p api.Project) (api.Project, error) {
		p.TimeZone = "Europe/Berlin"
		return p, nil
	}); err != nil {
		t.Fatal(err)
	}
	h.wants("whk_1", monday.AddDate(0, 0, -3))
	h.set(monday) // at 8:00 there
	h.step()
	if got := h.made(); len(got) != 1 {
		t.Errorf("made are %v", got)
	}
}

func TestAFormulaInAReportIsText(t *testing.T) {
	t.Parallel()
	at := monday
	r := Report{Gaps: []GapLine{{Question: `=HYPERLINK("http://evil.example","x")`, Questions: 2}},
		Closed: []ClosedLine{{Question: "+1", MergedAt: at}}, Missed: []SearchLine{{"@SUM(A1)", 1}, {" =1", 1}},
		Pages: []PageLine{{"-2+3", 1}}}
	var b strings.Builder
	if err := r.CSV(&b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		for _, c := range row {
			if strings.ContainsAny(strings.TrimSpace(c)[:min(1, len(strings.TrimSpace(c)))], "=+-@") {
				t.Errorf("a spreadsheet computes %q", c)
			}
		}
	}
	if len(rows) != 1+7+1+2+2+1 {
		t.Errorf("%d lines:\n%s", len(rows), &b)
	}
}

func TestAReportHasItsFigures(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	when := monday.AddDate(0, 0, -2)
	h.stub.totals = insights.QuestionTotals{Threads: 3, Questions: 4, Answered: 3, Unanswered: 1, Up: 2, Down: 1}
	h.stub.searches = []insights.SearchCount{{Query: "sso", Count: 3}}
	h.stub.pages = []insights.CitedPage{{Page: "/keys", Answers: 9}}
	gap := api.Gap{ID: "gap_1", State: api.GapMerged, MergedAt: &when, Question: "old"}
	h.stub.merged = []api.Gap{gap}
	h.stub.since = gaps.Since{Answered: 4, Bad: 1}
	dismissed := api.Gap{ID: "gap_2", State: api.GapDismissed}
	one := []topics.Question{{ID: "msg_1"}}
	h.stub.topics = []gaps.Topic{
		{ID: "msg_1", Topic: topics.Topic{Question: "How?", Questions: one, Askers: 1}},
		{ID: "gap_2", Topic: topics.Topic{Question: "no", Questions: one}, Gap: &dismissed},
		{ID: "gap_3", Topic: topics.Topic{Question: "nobody asked"}},
	}
	p, _ := h.stub.Project(t.Context(), "docs")
	r, err := h.Make(t.Context(), p, WeekOf(monday, time.UTC).Add(-1))
	if err != nil {
		t.Fatal(err)
	}
	if r.Figures.AnsweredShare != 0.75 || len(r.Gaps) != 1 || r.Gaps[0].Question != "How?" ||
		r.Gaps[0].URL != "https://docent.example.com/console/default/docs.example.com/gaps/msg_1" ||
		len(r.Closed) != 1 || r.Closed[0].Answered != 4 || r.Missed[0].Query != "sso" || r.Pages[0].Answers != 9 {
		t.Errorf("the report is %+v", r)
	}
	if q := h.stub.asked[0]; !q.From.Equal(monday.Truncate(24*time.Hour).AddDate(0, 0, -7)) || q.To.Sub(q.From) != 7*24*time.Hour {
		t.Errorf("it is of %v to %v", q.From, q.To)
	}
	if q := h.stub.asked[1]; !q.To.Equal(h.stub.asked[0].From) {
		t.Errorf("the week before ends at %v", q.To)
	}
}

func TestWeeksAreOfTheISOCalendarInTheirZone(t *testing.T) {
	t.Parallel()
	berlin := Zone(api.Project{TimeZone: "Europe/Berlin"})
	w, ok := ParseWeek("2026-W13", berlin) // the clocks change on its Sunday
	if !ok || w.Start().Format(time.RFC3339) != "2026-03-23T00:00:00+01:00" ||
		w.End().Format(time.RFC3339) != "2026-03-30T00:00:00+02:00" {
		t.Errorf("%v: %v to %v", w, w.Start(), w.End())
	}
	if got := w.due().UTC().Format(time.RFC3339); got != "2026-03-30T06:00:00Z" {
		t.Errorf("due at %s", got)
	}
	for _, bad := range []string{"", "2026-W00", "2026-W54", "2026-47", "2025-W53", "abcd-W01", "2026-W1", "2026-W47x"} {
		if w, ok := ParseWeek(bad, time.UTC); ok {
			t.Errorf("%q is %v", bad, w)
		}
	}
	if w, ok := ParseWeek("2026-W53", time.UTC); !ok || w.Add(1).String() != "2027-W01" || w.Add(-52).String() != "2026-W01" {
		t.Errorf("%v", w)
	}
	for at := time.Date(2019, 12, 20, 3, 0, 0, 0, berlin); at.Year() < 2028; at = at.AddDate(0, 0, 1) {
		w := WeekOf(at, berlin)
		if parsed, ok := ParseWeek(w.String(), berlin); !ok || parsed != w || at.Before(w.Start()) || !at.Before(w.End()) {
			t.Fatalf("%v is in %v: %v to %v", at, w, w.Start(), w.End())
		}
	}
}
