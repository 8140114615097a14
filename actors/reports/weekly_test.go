package reports

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/actors/gaps"
	"docent/actors/gaps/topics"
	"docent/api"
	"docent/internal/outbound"
	"docent/internal/task/tasktest"
	"docent/persistence/catalog"
	"docent/persistence/catalog/insights"
)

// figures are what a catalogue and the topics would say.
type stub struct {
	*catalog.Catalog
	totals   insights.QuestionTotals
	searches []insights.SearchCount
	pages    []insights.CitedPage
	topics   []gaps.Topic
	since    gaps.Since
	merged   []api.Gap
	asked    []insights.AnalyticsQuery
	failSave int // so many times
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

func (s *stub) SaveReport(ctx context.Context, d api.ReportDelivery) error {
	if s.failSave > 0 {
		s.failSave--
		return errors.New("the disk is full")
	}
	return s.Catalog.SaveReport(ctx, d)
}

func (s *stub) Topics(context.Context, api.ProjectID, time.Time, time.Time) (gaps.Listing, error) {
	return gaps.Listing{Topics: s.topics}, nil
}
func (s *stub) SinceMerge(context.Context, api.Gap) (gaps.Since, error) { return s.since, nil }
func (s *stub) Follow(context.Context) error                            { return nil }

type secrets map[string]string

func (s secrets) Read(name string) (string, error) {
	if v, ok := s[name]; ok {
		return v, nil
	}
	return "", errors.New("missing")
}

// A receiver is a webhook that answers what a test says.
type receiver struct {
	mu      sync.Mutex
	answers []int // of the next requests; 204 after them
	got     []*http.Request
	bodies  [][]byte
	header  http.Header
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, _ := io.ReadAll(req.Body)
	r.got, r.bodies = append(r.got, req), append(r.bodies, body)
	code := http.StatusNoContent
	if len(r.answers) > 0 {
		code, r.answers = r.answers[0], r.answers[1:]
	}
	for name, values := range r.header {
		w.Header()[name] = values
	}
	w.WriteHeader(code)
}

type house struct {
	t *testing.T
	*Reports
	*receiver
	stub *stub
	url  string

	tasks   tasktest.Queue
	setting sync.Mutex // the catalogue looks at the clock by itself now and then
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

func newHouse(t *testing.T, answers ...int) *house {
	t.Helper()
	h := &house{t: t, receiver: &receiver{answers: answers}, now: monday.AddDate(0, 0, -3)}
	server := httptest.NewServer(h.receiver)
	t.Cleanup(server.Close)
	h.url = server.URL + "/hook"
	c, err := catalog.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "c.db"),
		catalog.Options{Log: slog.New(slog.DiscardHandler), Now: h.clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	h.stub = &stub{Catalog: c}
	if _, err := c.AddProject(t.Context(), api.Project{ID: "docs", Domain: "docs.example.com", Source: "/src"}); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReportHook(t.Context(), api.ReportHook{Project: "docs", URL: h.url, Secret: "docs.s"}); err != nil {
		t.Fatal(err)
	}
	h.restart()
	h.set(monday)
	return h
}

const testSecret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"

// restart is another process on the same catalogue.
func (h *house) restart() {
	h.t.Helper()
	h.tasks = tasktest.Queue{}
	r, err := New(Deps{Catalog: h.stub, Topics: h.stub, Secrets: secrets{"docs.s": testSecret}, Tasks: &h.tasks,
		Now: h.clock, Log: slog.New(slog.NewTextHandler(h.t.Output(), nil)),
		PublicURL: "https://docent.example.com", Targets: outbound.Policy{Loopback: true}})
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

// last is the newest delivery.
func (h *house) last() api.ReportDelivery {
	h.t.Helper()
	list, err := h.stub.Reports(h.t.Context(), "docs", 10)
	if err != nil || len(list) == 0 {
		h.t.Fatalf("%v, %v", list, err)
	}
	return list[0]
}

func TestAReportIsDeliveredOnMondayOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.step()
	if len(h.got) != 0 {
		t.Fatalf("before it is due: %d requests", len(h.got))
	}
	h.set(monday.Add(time.Hour))
	for range 3 {
		h.step()
		h.restart()
	}
	if len(h.got) != 1 {
		t.Fatalf("%d requests, want 1", len(h.got))
	}
	req, body := h.got[0], h.bodies[0]
	if id := req.Header.Get("webhook-id"); id != "rpt_docs_2026-W47" {
		t.Errorf("its id is %q", id)
	}
	// As a receiver checks it, from the specification.
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(testSecret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", req.Header.Get("webhook-id"), req.Header.Get("webhook-timestamp"), body)
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); req.Header.Get("webhook-signature") != want {
		t.Errorf("the signature is %q, want %q", req.Header.Get("webhook-signature"), want)
	}
	if at := req.Header.Get("webhook-timestamp"); at != strconv.FormatInt(h.now.Unix(), 10) {
		t.Errorf("its time is %s", at)
	}
	var m struct {
		Type string
		Data Report
	}
	if err := json.Unmarshal(body, &m); err != nil || m.Type != "report.weekly" || m.Data.Week != "2026-W47" ||
		m.Data.Domain != "docs.example.com" ||
		m.Data.URL != "https://docent.example.com/console/default/docs.example.com/report?week=2026-W47" {
		t.Errorf("it says %s, %v", body, err)
	}
	if d := h.last(); d.Status != api.ReportDelivered || d.Attempts != 1 || d.Code != 204 {
		t.Errorf("stored is %+v", d)
	}
	h.set(h.now.AddDate(0, 0, 7))
	h.step()
	if len(h.got) != 2 || h.got[1].Header.Get("webhook-id") != "rpt_docs_2026-W48" {
		t.Errorf("a week later: %d requests", len(h.got))
	}
}

func TestAReceiverThatFailsFirstGetsItLaterUnderTheSameID(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 500, 302, 429)
	h.header = http.Header{"Retry-After": {"600"}, "Location": {"http://169.254.169.254/"}}
	h.set(monday.Add(time.Hour))
	h.step()
	if d := h.last(); d.Status != api.ReportPending || d.Code != 500 || !strings.Contains(d.Error, "500") ||
		d.Next.Sub(h.now) != 10*time.Minute {
		t.Errorf("after the first attempt: %+v, %v", d, d.Next.Sub(h.now))
	}
	h.step()
	if len(h.got) != 1 {
		t.Errorf("it is sent again before its time")
	}
	for range 3 {
		h.restart()
		h.set(h.now.Add(10 * time.Minute))
		h.step()
	}
	if d := h.last(); d.Status != api.ReportDelivered || d.Attempts != 4 {
		t.Errorf("after four: %+v", d)
	}
	for i, req := range h.got {
		if req.Header.Get("webhook-id") != "rpt_docs_2026-W47" || !bytes.Equal(h.bodies[i], h.bodies[0]) {
			t.Errorf("attempt %d is another message", i+1)
		}
	}
	if a, b := h.got[0].Header.Get("webhook-signature"), h.got[1].Header.Get("webhook-signature"); a == b {
		t.Error("the signature is not of the time of the attempt")
	}
}

// The process ends between sending and storing that it was sent: the receiver gets it again, and knows it by its id.
func TestAReportWhoseDeliveryWasNotStoredIsSentAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.set(monday.Add(time.Hour))
	h.stub.failSave = 1000
	h.step()
	if d := h.last(); d.Status != api.ReportPending || len(h.got) != 1 {
		t.Fatalf("stored is %+v after %d requests", d, len(h.got))
	}
	h.stub.failSave = 0
	h.restart()
	h.step()
	if len(h.got) != 2 || h.got[0].Header.Get("webhook-id") != h.got[1].Header.Get("webhook-id") {
		t.Errorf("%d requests", len(h.got))
	}
	if d := h.last(); d.Status != api.ReportDelivered {
		t.Errorf("stored is %+v", d)
	}
}

func TestDeliveryIsGivenUpAfterThreeDaysAndWhereTheReceiverIsGone(t *testing.T) {
	t.Parallel()
	h2 := newHouse(t, 410)
	h2.now = monday.Add(time.Hour)
	h2.step()
	if d := h2.last(); d.Status != api.ReportFailed || d.Code != 410 {
		t.Errorf("gone: %+v", d)
	}
	hook, err := h2.stub.ReportHook(t.Context(), "docs")
	if err != nil || !hook.Off || hook.OffReason == "" {
		t.Errorf("the webhook is %+v, %v", hook, err)
	}
	h2.now = h2.now.AddDate(0, 0, 7)
	h2.step()
	if len(h2.got) != 1 {
		t.Errorf("a receiver that is gone got %d requests", len(h2.got))
	}
	h3 := newHouse(t, slices.Repeat([]int{503}, 50)...)
	h3.now = monday.Add(time.Hour)
	h3.step()
	for range len(pauses) + 2 {
		d := h3.last()
		if d.Status != api.ReportPending || d.Week != "2026-W47" {
			break
		}
		h3.now = d.Next
		if h3.now.After(monday.AddDate(0, 0, 6)) {
			t.Fatalf("it goes on for longer than it should: %+v", d)
		}
		h3.step()
	}
	if d := h3.last(); d.Status != api.ReportFailed || d.Attempts != len(pauses)+1 {
		t.Errorf("in the end: %+v", d)
	}
}

func TestATestIsSentAtOnceAndIsOneOfItsOwn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 500)
	id, err := h.Test(t.Context(), "docs")
	if err != nil {
		t.Fatal(err)
	}
	h.step()
	h.set(h.now.Add(time.Minute))
	h.step()
	if len(h.got) != 2 || h.got[1].Header.Get("webhook-id") != id || !strings.Contains(string(h.bodies[1]), `"report.test"`) {
		t.Errorf("%d requests: %s", len(h.got), h.bodies)
	}
	h.set(monday.Add(2 * time.Hour))
	h.step()
	if len(h.got) != 3 {
		t.Errorf("the weekly one is not sent beside it: %d requests", len(h.got))
	}
	if err := h.stub.RemoveReportHook(t.Context(), "docs"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Test(t.Context(), "docs"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("without a webhook: %v", err)
	}
}

func TestReportsReachThisMachineAndPrivateNetworksOnlyIfTheOperatorAllowsIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, err := New(Deps{Catalog: h.stub, Topics: h.stub, Secrets: secrets{"docs.s": testSecret}, Tasks: &h.tasks,
		Now: h.clock, Log: slog.New(slog.DiscardHandler), Targets: outbound.Policy{Setting: "webhook_allow"}})
	if err != nil {
		t.Fatal(err)
	}
	for url, ok := range map[string]bool{"https://hooks.example.com/x": true, "https://10.0.0.1:8443/x": false,
		"http://127.0.0.1/": false, "https://localhost/": false, "https://169.254.169.254/latest": false} {
		if say := r.CheckURL(url); (say == "") != ok || strings.Contains(url, "localhost") && !strings.Contains(say, "webhook_allow") {
			t.Errorf("%s: %q", url, say)
		}
	}
	h.set(monday.Add(time.Hour))
	r.Wake()
	h.tasks.Run(t.Context())
	if d := h.last(); len(h.got) != 0 || d.Status != api.ReportPending || !strings.Contains(d.Error, "this machine itself") {
		t.Errorf("%d requests, stored is %+v", len(h.got), d)
	}
	h.step()
	if len(h.got) != 0 {
		t.Errorf("it is sent again before its time")
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
	berlin, err := Zone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
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
	for _, name := range []string{"Local", "Nowhere/City", "../etc/passwd"} {
		if _, err := Zone(name); err == nil {
			t.Errorf("%s is a zone", name)
		}
	}
}
