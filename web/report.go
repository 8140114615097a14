package web

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"docent/api"
	"docent/outbound"
	"docent/weekly"
)

// deliveriesShown is how many deliveries the page lists.
const deliveriesShown = 20

type reportView struct {
	weekly.Report
	Sunday   time.Time
	Previous string // the week before
	Next     string // empty where that is not over
	Running  bool   // the week is not over
	Lines    []figureLine

	Hook       *api.ReportHook // nil where there is none
	Deliveries []api.ReportDelivery
	Secret     string // a new one, shown once
	URL        string // as it was sent, where it was refused
	Zone       string
	Problems   map[string]string
}

// A figureLine compares a figure with that of the week before.
type figureLine struct {
	Name      string
	Now, Then int
}

// Change is by how much a figure has changed, in words.
func (f figureLine) Change() string {
	switch {
	case f.Now == f.Then:
		return "as before"
	case f.Then == 0:
		return "none before"
	case percentOf(max(f.Now-f.Then, f.Then-f.Now), f.Then) == "0":
		return "about as before"
	case f.Now > f.Then:
		return "+" + percentOf(f.Now-f.Then, f.Then) + " %"
	}
	return "−" + percentOf(f.Then-f.Now, f.Then) + " %"
}

// reportWeek is the week of the address: the last one that is over where it names none.
func (s *Server) reportWeek(v *visit, hook *api.ReportHook) (weekly.Week, error) {
	zone := time.UTC
	if hook != nil {
		if z, err := weekly.Zone(hook.TimeZone); err == nil {
			zone = z
		}
	}
	now := weekly.WeekOf(v.now, zone)
	text := v.query("week")
	if text == "" {
		return now.Add(-1), nil
	}
	w, ok := weekly.ParseWeek(text, zone)
	if !ok || w.Start().After(v.now) {
		return w, invalid("week", "must be a week such as "+now.Add(-1).String()+" that has begun")
	}
	return w, nil
}

// reportHook is where the project's report is sent; nil where it is sent nowhere.
func (s *Server) reportHook(v *visit) (*api.ReportHook, error) {
	h, err := s.ReportStore.ReportHook(v.Context(), v.project.ID)
	if errors.Is(err, api.ErrNotFound) {
		return nil, nil
	}
	return &h, err
}

// showReport is a project's week.
func (s *Server) showReport(v *visit) error {
	return s.reportPage(v, http.StatusOK, reportView{})
}

func (s *Server) reportPage(v *visit, status int, view reportView) error {
	hook, err := s.reportHook(v)
	if err != nil {
		return err
	}
	w, err := s.reportWeek(v, hook)
	if err != nil {
		return err
	}
	if view.Report, err = s.Reports.Make(v.Context(), v.project, w); err != nil {
		return err
	}
	view.Hook, view.Sunday, view.Previous = hook, w.Last(), w.Add(-1).String()
	view.Running = w.End().After(v.now)
	if !view.Running {
		view.Next = w.Add(1).String()
	}
	f, b := view.Figures, view.Before
	view.Lines = []figureLine{{"Questions", f.Questions, b.Questions}, {"Answered", f.Answered, b.Answered},
		{"Not answered", f.Unanswered, b.Unanswered}, {"Failed", f.Failed, b.Failed},
		{"Conversations", f.Conversations, b.Conversations}, {"Rated up", f.RatedUp, b.RatedUp},
		{"Rated down", f.RatedDown, b.RatedDown}}
	if v.may(owner) {
		if view.Deliveries, err = s.ReportStore.Reports(v.Context(), v.project.ID, deliveriesShown); err != nil {
			return err
		}
		if hook != nil && view.Problems == nil {
			view.URL, view.Zone = hook.URL, hook.TimeZone
		}
	}
	return s.renderStatus(v, status, "report", "Report of "+w.String(), view)
}

// reportCSV is a project's week as a table.
func (s *Server) reportCSV(v *visit) error {
	hook, err := s.reportHook(v)
	if err != nil {
		return err
	}
	w, err := s.reportWeek(v, hook)
	if err != nil {
		return err
	}
	report, err := s.Reports.Make(v.Context(), v.project, w)
	if err != nil {
		return err
	}
	h := v.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="report-`+fileName(v.project.Domain+"-"+w.String())+`.csv"`)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	_ = report.CSV(v) // a browser that has gone is no error of ours
	return nil
}

// setReportHook stores where the report is sent. The first time it makes the secret that deliveries are signed with.
func (s *Server) setReportHook(v *visit) error {
	address, zone := strings.TrimSpace(v.form().Get("url")), strings.TrimSpace(v.form().Get("zone"))
	problems := map[string]string{}
	if say := s.Reports.CheckURL(address); say != "" {
		problems["url"] = say
	}
	if _, err := weekly.Zone(zone); err != nil {
		problems["zone"] = "is no time zone: write one such as Europe/Berlin"
	}
	if len(problems) > 0 {
		return s.reportPage(v, http.StatusBadRequest, reportView{URL: address, Zone: zone, Problems: problems})
	}
	hook, err := s.reportHook(v)
	if err != nil {
		return err
	}
	fresh := hook == nil
	if fresh {
		hook = &api.ReportHook{Project: v.project.ID}
	}
	hook.URL, hook.TimeZone, hook.Off, hook.OffReason = address, zone, false, ""
	if !fresh {
		if err := s.ReportStore.SetReportHook(v.Context(), *hook); err != nil {
			return err
		}
		v.audit("report.webhook", string(v.project.ID), HostOf(address))
		return v.done(v.base()+"/report", "The webhook is stored.")
	}
	return s.newReportSecret(v, *hook)
}

// newReportSecret makes a secret, stores it with the webhook, and shows it once.
func (s *Server) newReportSecret(v *visit, hook api.ReportHook) error {
	secret := outbound.NewSecret()
	name, err := s.ReportSecrets.Keep(v.project.ID, secret)
	if err != nil {
		return err
	}
	old := hook.Secret
	hook.Secret = name
	if err := s.ReportStore.SetReportHook(v.Context(), hook); err != nil {
		return err
	}
	if err := s.ReportSecrets.Drop(old); err != nil {
		s.Log.Warn("an old secret of a report's webhook is still there", "project", v.project.ID, "error", err)
	}
	v.audit("report.secret", string(v.project.ID), HostOf(hook.URL))
	return s.reportPage(v, http.StatusOK, reportView{Secret: secret})
}

// renewReportSecret replaces the secret that deliveries are signed with.
func (s *Server) renewReportSecret(v *visit) error {
	hook, err := s.reportHook(v)
	if err != nil {
		return err
	}
	if hook == nil {
		return api.Missing("webhook")
	}
	return s.newReportSecret(v, *hook)
}

// testReport sends the last week's report now.
func (s *Server) testReport(v *visit) error {
	id, err := s.Reports.Test(v.Context(), v.project.ID)
	if err != nil {
		return api.Named(err, "webhook")
	}
	v.audit("report.test", id, "")
	return v.done(v.base()+"/report#deliveries", "A test is on its way. Reload this page to see what the receiver answered.")
}

// removeReportHook has the report sent nowhere.
func (s *Server) removeReportHook(v *visit) error {
	hook, err := s.reportHook(v)
	if err != nil {
		return err
	}
	if hook == nil {
		return api.Missing("webhook")
	}
	if err := s.ReportStore.RemoveReportHook(v.Context(), v.project.ID); err != nil {
		return err
	}
	if err := s.ReportSecrets.Drop(hook.Secret); err != nil {
		s.Log.Warn("the secret of a report's webhook is still there", "project", v.project.ID, "error", err)
	}
	v.audit("report.remove", string(v.project.ID), HostOf(hook.URL))
	return v.done(v.base()+"/report", "The report is sent nowhere now.")
}

// HostOf is what the audit log says of an address, which may hold a token.
func HostOf(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	host, _, _ := strings.Cut(rest, "/")
	host, _, _ = strings.Cut(host, "?")
	return host
}
