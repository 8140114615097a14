package system

import (
	"cmp"
	"encoding/csv"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"docent/api"
	"docent/web/console"
)

const auditPage = 50

type auditView struct {
	Organization string
	Entries      []api.AuditEntry
	Actions      []string
	People       []wordLine // whom the log names
	Projects     []api.Project
	Filter       map[string]string
	Filtered     bool
	Older        string // address of the next page; empty on the last one
	Newest       string // address of the first page; empty there
	CSV          string
	CSVPath      string
}

type wordLine struct{ ID, Name string }

// auditFilter reads a filter from the address, and says which of its values mean something.
func auditFilter(v *console.Visit) (q api.AuditQuery, shown map[string]string) {
	shown = map[string]string{}
	for _, name := range []string{"who", "action", "project", "from", "until"} {
		if value := strings.TrimSpace(v.Query(name)); value != "" {
			shown[name] = value
		}
	}
	q = api.AuditQuery{Org: v.Org, WhoID: shown["who"], Action: shown["action"], Project: api.ProjectID(shown["project"]),
		After: api.AuditID(v.Query("after"))}
	if at, err := time.Parse(time.DateOnly, shown["from"]); err == nil {
		q.From = at
	} else {
		delete(shown, "from")
	}
	if at, err := time.Parse(time.DateOnly, shown["until"]); err == nil {
		q.Until = at.AddDate(0, 0, 1) // the day included
	} else {
		delete(shown, "until")
	}
	return q, shown
}

func withFilter(path string, filter map[string]string, after api.AuditID) string {
	values := url.Values{}
	for name, value := range filter {
		values.Set(name, value)
	}
	if after != "" {
		values.Set("after", string(after))
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}

func (s *handler) showAudit(v *console.Visit) error {
	q, filter := auditFilter(v)
	q.Limit = auditPage + 1
	path := "/console/" + url.PathEscape(string(v.Org)) + "/audit"
	view := auditView{Filter: filter, Filtered: len(filter) > 0, CSV: withFilter(path+".csv", filter, ""), CSVPath: path + ".csv"}
	var err error
	if view.Organization, err = s.Catalog.Organization(v.Context(), v.Org); err != nil {
		return api.Named(err, "organization")
	}
	if view.Entries, err = s.Catalog.AuditLog(v.Context(), q); err != nil {
		return err
	}
	if len(view.Entries) > auditPage {
		view.Entries = view.Entries[:auditPage]
		view.Older = withFilter(path, filter, view.Entries[auditPage-1].ID)
	}
	if q.After != "" {
		view.Newest = withFilter(path, filter, "")
	}
	actions, who, err := s.Catalog.AuditWords(v.Context(), v.Org)
	if err != nil {
		return err
	}
	view.Actions = actions
	for _, id := range slices.Sorted(maps.Keys(who)) {
		view.People = append(view.People, wordLine{id, who[id]})
	}
	slices.SortStableFunc(view.People, func(a, b wordLine) int { return cmp.Compare(a.Name, b.Name) })
	all, err := s.Catalog.Projects(v.Context())
	if err != nil {
		return err
	}
	view.Projects = slices.DeleteFunc(all, func(p api.Project) bool { return p.Org != v.Org })
	return s.Render(v, "audit", "Audit log", view)
}

// auditCSV gives the whole log, as it is filtered, the youngest first.
func (s *handler) auditCSV(v *console.Visit) error {
	q, _ := auditFilter(v)
	q.After, q.Limit = "", 1000
	entries, err := s.Catalog.AuditLog(v.Context(), q)
	if err != nil {
		return err
	}
	v.BeginFile(console.TypeCSV, "audit-"+string(v.Org), "csv")
	out := csv.NewWriter(v)
	out.Write([]string{"time", "who", "who id", "action", "object", "detail", "project", "address", "id"})
	for len(entries) > 0 {
		v.Patience()
		for _, e := range entries {
			out.Write(console.CSVRow(e.At.UTC().Format(time.RFC3339Nano), e.Who, e.WhoID, e.Action, e.Object, e.Detail,
				string(e.Project), e.Client, string(e.ID)))
		}
		out.Flush()
		if out.Error() != nil || len(entries) < q.Limit {
			return nil
		}
		q.After = entries[len(entries)-1].ID
		if entries, err = s.Catalog.AuditLog(v.Context(), q); err != nil {
			s.Log.Error("an audit log export was cut off", "error", err)
			panic(http.ErrAbortHandler) // a file that ends early must not look whole
		}
	}
	out.Flush()
	return nil
}
