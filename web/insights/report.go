package insights

import (
	"time"

	"docent/actors/reports"
	"docent/web/console"
)

type reportView struct {
	reports.Report
	Sunday   time.Time
	Previous string // the week before
	Next     string // empty if that is not over
	Running  bool   // the week is not over
	Lines    []figureLine
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
		return "+" + console.PercentOf(f.Now-f.Then, f.Then) + "%"
	}
	return "−" + console.PercentOf(f.Then-f.Now, f.Then) + "%"
}

// reportWeek is the week of the address: the last one that is over if it names none.
func reportWeek(v *console.Visit) (reports.Week, error) {
	zone := reports.Zone(v.Project)
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

// showReport is a project's week.
func (s *handler) showReport(v *console.Visit) error {
	w, err := reportWeek(v)
	if err != nil {
		return err
	}
	view := reportView{Sunday: w.Last(), Previous: w.Add(-1).String(), Running: w.End().After(v.Now)}
	if view.Report, err = s.Reports.Make(v.Context(), v.Project, w); err != nil {
		return err
	}
	if !view.Running {
		view.Next = w.Add(1).String()
	}
	f, b := view.Figures, view.Before
	view.Lines = []figureLine{{"Questions", f.Questions, b.Questions}, {"Answered", f.Answered, b.Answered},
		{"Not answered", f.Unanswered, b.Unanswered}, {"Failed", f.Failed, b.Failed},
		{"Conversations", f.Conversations, b.Conversations}, {"Rated up", f.RatedUp, b.RatedUp},
		{"Rated down", f.RatedDown, b.RatedDown}}
	return s.Render(v, "report", "Report of "+w.String(), view)
}

// reportCSV is a project's week as a table.
func (s *handler) reportCSV(v *console.Visit) error {
	w, err := reportWeek(v)
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
