package insights

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"docent/actors/reports"
	"docent/api"
	"docent/internal/outbound"
	"docent/web/console"
)

// deliveriesShown is how many deliveries the page lists.
const deliveriesShown = 20

type reportView struct {
	reports.Report
	Sunday   time.Time
	Previous string // the week before
	Next     string // empty if that is not over
	Running  bool   // the week is not over
	Lines    []figureLine

	Hook       *api.ReportHook // nil if there is none
	Deliveries []api.ReportDelivery
	Secret     string // a new one, shown once
	URL        string // as it was sent, if it was refused
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
	case console.PercentOf(max(f.Now-f.Then, f.Then-f.Now), f.Then) == "0":
		return "about as before"
	case f.Now > f.Then:
		return "+" + console.PercentOf(f.Now-f.Then, f.Then) + " %"
	}
	return "−" + console.PercentOf(f.Then-f.Now, f.Then) + " %"
}

// reportWeek is the week of the address: the last one that is over if it names none.
func (s *handler) reportWeek(v *console.Visit, hook *api.ReportHook) (reports.Week, error) {
	zone := time.UTC
	if hook != nil {
		if z, err := reports.Zone(hook.TimeZone); err == nil {
			zone = z
		}
	}
	now := reports.WeekOf(v.Now, zone)
	text := v.Query("week")
	if text == "" {
		return now.Add(-1), nil
	}
	w, ok := reports.ParseWeek(text, zone)
	if !ok || w.Start().After(v.Now) {
		return w, console.Invalid("week", "must be a week such as "+now.Add(-1).String()+" that has begun")
	}
	return w, nil
}

// reportHook is the destination of the project's report; nil if it is sent nowhere.
func (s *handler) reportHook(v *console.Visit) (*api.ReportHook, error) {
	h, err := s.Catalog.ReportHook(v.Context(), v.Project.ID)
	if errors.Is(err, api.ErrNotFound) {
		return nil, nil
	}
	return &h, err
}

// showReport is a project's week.
func (s *handler) showReport(v *console.Visit) error {
	return s.reportPage(v, http.StatusOK, reportView{})
}

func (s *handler) reportPage(v *console.Visit, status int, view reportView) error {
	hook, err := s.reportHook(v)
	if err != nil {
		return err
	}
	w, err := s.reportWeek(v, hook)
	if err != nil {
		return err
	}
	if view.Report, err = s.Reports.Make(v.Context(), v.Project, w); err != nil {
		return err
	}
	view.Hook, view.Sunday, view.Previous = hook, w.Last(), w.Add(-1).String()
	view.Running = w.End().After(v.Now)
	if !view.Running {
		view.Next = w.Add(1).String()
	}
	f, b := view.Figures, view.Before
	view.Lines = []figureLine{{"Questions", f.Questions, b.Questions}, {"Answered", f.Answered, b.Answered},
		{"Not answered", f.Unanswered, b.Unanswered}, {"Failed", f.Failed, b.Failed},
		{"Conversations", f.Conversations, b.Conversations}, {"Rated up", f.RatedUp, b.RatedUp},
		{"Rated down", f.RatedDown, b.RatedDown}}
	if v.May(console.Owner) {
		if view.Deliveries, err = s.Catalog.Reports(v.Context(), v.Project.ID, deliveriesShown); err != nil {
			return err
		}
		if hook != nil && view.Problems == nil {
			view.URL, view.Zone = hook.URL, hook.TimeZone
		}
	}
	return s.RenderStatus(v, status, "report", "Report of "+w.String(), view)
}

// reportCSV is a project's week as a table.
func (s *handler) reportCSV(v *console.Visit) error {
	hook, err := s.reportHook(v)
	if err != nil {
		return err
	}
	w, err := s.reportWeek(v, hook)
	if err != nil {
		return err
	}
	report, err := s.Reports.Make(v.Context(), v.Project, w)
	if err != nil {
		return err
	}
	v.BeginFile(console.TypeCSV, "report-"+v.Project.Domain+"-"+w.String(), "csv")
	_ = report.CSV(v) // a browser that has gone is no error of ours
	return nil
}

// setReportHook stores where the report is sent. The first time it creates the secret that deliveries are signed with.
func (s *handler) setReportHook(v *console.Visit) error {
	address, zone := strings.TrimSpace(v.Form.Get("url")), strings.TrimSpace(v.Form.Get("zone"))
	problems := map[string]string{}
	if say := s.Reports.CheckURL(address); say != "" {
		problems["url"] = say
	}
	if _, err := reports.Zone(zone); err != nil {
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
		hook = &api.ReportHook{Project: v.Project.ID}
	}
	hook.URL, hook.TimeZone, hook.Off, hook.OffReason = address, zone, false, ""
	if !fresh {
		if err := s.Catalog.SetReportHook(v.Context(), *hook); err != nil {
			return err
		}
		v.Audit("report.webhook", string(v.Project.ID), console.HostOf(address))
		return v.Done(v.Base()+"/report", "The webhook is stored.")
	}
	return s.newReportSecret(v, *hook)
}

// newReportSecret makes a secret, stores it with the webhook, and shows it once.
func (s *handler) newReportSecret(v *console.Visit, hook api.ReportHook) error {
	secret := outbound.NewSecret()
	name, err := s.Secrets.Keep(v.Project.ID, secret)
	if err != nil {
		return err
	}
	old := hook.Secret
	hook.Secret = name
	if err := s.Catalog.SetReportHook(v.Context(), hook); err != nil {
		return err
	}
	if err := s.Secrets.Drop(old); err != nil {
		s.Log.Warn("an old secret of a report's webhook is still there", "project", v.Project.ID, "error", err)
	}
	v.Audit("report.secret", string(v.Project.ID), console.HostOf(hook.URL))
	return s.reportPage(v, http.StatusOK, reportView{Secret: secret})
}

// renewReportSecret replaces the secret that deliveries are signed with.
func (s *handler) renewReportSecret(v *console.Visit) error {
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
func (s *handler) testReport(v *console.Visit) error {
	id, err := s.Reports.Test(v.Context(), v.Project.ID)
	if err != nil {
		return api.Named(err, "webhook")
	}
	v.Audit("report.test", id, "")
	return v.Done(v.Base()+"/report#deliveries", "A test is on its way. Reload this page to see what the receiver answered.")
}

// removeReportHook stops sending the report.
func (s *handler) removeReportHook(v *console.Visit) error {
	hook, err := s.reportHook(v)
	if err != nil {
		return err
	}
	if hook == nil {
		return api.Missing("webhook")
	}
	if err := s.Catalog.RemoveReportHook(v.Context(), v.Project.ID); err != nil {
		return err
	}
	if err := s.Secrets.Drop(hook.Secret); err != nil {
		s.Log.Warn("the secret of a report's webhook is still there", "project", v.Project.ID, "error", err)
	}
	v.Audit("report.remove", string(v.Project.ID), console.HostOf(hook.URL))
	return v.Done(v.Base()+"/report", "The report is sent nowhere now.")
}
