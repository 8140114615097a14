package web

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"docent/api"
	"docent/crawl"
	"docent/ingest"
)

// mostPreviews go on at once: each asks another site for some seconds.
const mostPreviews = 2

// A siteForm adds a web site, which may be looked at before.
type siteForm struct {
	Fields   []formField
	Problems []string
	Open     bool
	Preview  *crawl.Report
	Same     []string // the preview, and adding it, by command
}

// newSiteForm is the form, filled in with what was sent.
func newSiteForm(sent url.Values, problems map[string]string) siteForm {
	f := siteForm{Open: sent != nil, Fields: []formField{
		{Name: "address", Label: "Address where reading begins", Kind: "url", Required: true,
			Hint: "Such as https://docs.example.com/. Sites of this machine and of private networks are the operator's to add, by command."},
		{Name: "label", Label: "Label of the site", Hint: "A word such as blog; answers and commands name the source by it. Not needed for a preview."},
		{Name: "prefix", Label: "Only pages below", Hint: "A path such as /docs/. That of the address where empty."},
		{Name: "sitemap", Label: "Sitemap", Hint: "Its address, or none to follow links. Where empty, llms.txt, the site's sitemaps, or links."},
		{Name: "maxPages", Label: "Pages at most", Kind: "number", Hint: "5,000 where empty."},
		{Name: "every", Label: "Read every", Hint: "Such as 24h. Every 6 hours where empty."},
		{Name: "groups", Label: "Groups that the site is for", Hint: "With commas between them; for everybody where empty."},
	}}
	for i, field := range f.Fields {
		f.Fields[i].Value = sent.Get(field.Name)
	}
	f.Problems = placeFaults(f.Fields, problems)
	return f
}

// siteOf is the source that a form describes.
func siteOf(form url.Values) (api.Source, map[string]string) {
	get := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	s := api.Source{Label: get("label"), Kind: api.SourceWeb, Address: get("address"), Every: get("every"),
		Groups: strings.Split(form.Get("groups"), ",")}
	if s.Address != "" && !strings.Contains(s.Address, "://") {
		s.Address = "https://" + s.Address
	}
	s.Collect.Web = api.WebOptions{Prefix: get("prefix"), Sitemap: get("sitemap")}
	n, err := strconv.Atoi(cmp.Or(get("maxPages"), "0"))
	if err != nil {
		return s, map[string]string{"maxPages": "must be a whole number"}
	}
	s.Collect.Web.MaxPages = n
	return s, nil
}

// siteFaults are the problems of a site by the fields of its form.
func siteFaults(err error) map[string]string {
	problems, ok := faults(err)
	if !ok {
		return map[string]string{"": Failure(err)}
	}
	out := map[string]string{}
	for name, text := range problems {
		name = strings.TrimPrefix(name, "collect.web.")
		if name == "source" {
			name = "address"
		}
		out[name] = text
	}
	return out
}

// previewSite shows how a site would be read: its first pages, and what is left out and why. Nothing is kept.
func (s *Server) previewSite(v *visit) error {
	form := v.form()
	source, wrong := siteOf(form)
	fail := func(status int, problems map[string]string) error {
		return s.sourcesWith(v, status, "", newSiteForm(form, problems), newZipForm(nil, nil))
	}
	if wrong == nil {
		named := source
		named.Label = cmp.Or(named.Label, "preview")
		if err := v.project.MayAdd(named); err != nil {
			wrong = siteFaults(err)
		}
	}
	if wrong != nil {
		return fail(http.StatusBadRequest, wrong)
	}
	select {
	case s.previews <- struct{}{}:
		defer func() { <-s.previews }()
	default:
		return fail(http.StatusConflict, map[string]string{"": "Other sites are being looked at: try again in some seconds."})
	}
	report, err := s.Setup.Preview(v.Context(), source)
	if err != nil {
		return fail(http.StatusBadRequest, siteFaults(err))
	}
	view := newSiteForm(form, nil)
	view.Preview = &report
	view.Same = siteCommands(v.project.ID, source)
	return s.sourcesWith(v, http.StatusOK, "", view, newZipForm(nil, nil))
}

// siteCommands do by command what the form does.
func siteCommands(project api.ProjectID, s api.Source) []string {
	more := ""
	flag := func(name, value string) {
		if value != "" {
			more += " --" + name + " " + shellWord(value)
		}
	}
	o := s.Collect.Web
	flag("prefix", o.Prefix)
	flag("sitemap", o.Sitemap)
	preview := "docent crawl preview " + shellWord(s.Address) + more
	if o.MaxPages != 0 {
		flag("max-pages", strconv.Itoa(o.MaxPages))
	}
	flag("every", s.Every)
	for _, g := range s.Groups {
		flag("group", strings.TrimSpace(g))
	}
	return []string{preview, "docent source add " + shellWord(string(project)) + " " + shellWord(cmp.Or(s.Label, "LABEL")) +
		" --kind web --address " + shellWord(s.Address) + more}
}

// addSite reads a web site and adds it. Its address leads to the public web alone, so that an owner may.
func (s *Server) addSite(v *visit) error {
	form := v.form()
	source, wrong := siteOf(form)
	if wrong == nil {
		if err := v.project.MayAdd(source); err != nil {
			wrong = siteFaults(err)
		}
	}
	fail := func(status int, problems map[string]string) error {
		return s.sourcesWith(v, status, "", newSiteForm(form, problems), newZipForm(nil, nil))
	}
	if wrong != nil {
		return fail(http.StatusBadRequest, wrong)
	}
	task, err := s.Setup.AddSource(v.project.ID, source)
	return s.addedSource(v, "source.add", source.Label, task, err, fail)
}

// addedSource follows a task that adds a source, and shows its form again where that fails.
func (s *Server) addedSource(v *visit, action, label string, task ingest.Task, err error,
	fail func(status int, problems map[string]string) error) error {
	switch {
	case errors.Is(err, api.ErrConflict):
		return fail(http.StatusConflict, siteFaults(err))
	case errors.Is(err, api.ErrInvalid):
		return fail(http.StatusBadRequest, siteFaults(err))
	case err != nil:
		return err
	}
	v.audit(action, label, "")
	switch task = s.settled(v.Context(), task); {
	case task.Running():
		return v.seeOther(v.base() + "/sources/task/" + task.ID)
	case task.Failed():
		return fail(http.StatusBadRequest, siteFaults(task.Err))
	}
	return v.done(v.base()+"/sources", "The source "+label+" was read.")
}

// A zipForm uploads the pages of a source.
type zipForm struct {
	Fields   []formField
	Problems []string
	Open     bool
}

func newZipForm(sent url.Values, problems map[string]string) zipForm {
	f := zipForm{Open: sent != nil, Fields: []formField{
		{Name: "zipLabel", Label: "Label of the source", Required: true,
			Hint: "That of a source of the kind zip, whose pages it replaces; or a new word, such as manual, which adds one."},
		{Name: "zipGroups", Label: "Groups that a new source is for", Hint: "With commas between them; for everybody where empty."},
		{Name: "zip", Label: "Zip with the pages", Kind: "file", Required: true,
			Hint: "256 MiB at most. It is checked first, and takes the place of the one before whole or not at all."},
	}}
	for i, field := range f.Fields[:2] {
		f.Fields[i].Value = sent.Get(field.Name)
	}
	moved := map[string]string{}
	for name, text := range problems {
		moved[cmp.Or(map[string]string{"label": "zipLabel", "groups": "zipGroups"}[name], name)] = text
	}
	f.Problems = placeFaults(f.Fields, moved)
	return f
}

// uploadZip takes a zip as the pages of a source, as `docent source upload` does.
func (s *Server) uploadZip(v *visit) error {
	form := v.form()
	fail := func(status int, problems map[string]string) error {
		return s.sourcesWith(v, status, "", newSiteForm(nil, nil), newZipForm(form, problems))
	}
	source := api.Source{Label: strings.ToLower(strings.TrimSpace(form.Get("zipLabel"))), Kind: api.SourceZip,
		Groups: strings.Split(form.Get("zipGroups"), ",")}
	if _, there := v.project.Further(source.Label); !there && source.Label != v.project.FirstLabel() {
		if err := v.project.MayAdd(source); err != nil {
			return fail(http.StatusBadRequest, siteFaults(err))
		}
	}
	if v.file == nil {
		return fail(http.StatusBadRequest, map[string]string{"zip": "is required"})
	}
	rc := http.NewResponseController(v)
	if err := errors.Join(rc.SetReadDeadline(time.Now().Add(uploadTime)), rc.SetWriteDeadline(time.Now().Add(uploadTime+time.Minute))); err != nil {
		s.Log.Debug("an upload has the time of any form", "error", err)
	}
	task, err := s.Setup.Upload(v.Context(), v.project.ID, source, v.file)
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		err = invalid("zip", "is larger than a zip may be")
	}
	return s.addedSource(v, "source.upload", source.Label, task, err, fail)
}
