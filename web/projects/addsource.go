package projects

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"docent/api"
	"docent/search/sources"
	"docent/search/sources/crawl"
	"docent/web/console"
)

// maxPreviews go on at once: each asks another site for some seconds.
const maxPreviews = 2

// A siteForm adds a web site, which may be looked at before.
type siteForm struct {
	Fields   []console.Field
	Problems []string
	Open     bool
	Preview  *crawl.Report
	Same     []string // the preview, and adding it, by command
}

// newSiteForm is the form, filled in with what was sent.
func newSiteForm(sent url.Values, problems map[string]string) siteForm {
	f := siteForm{Open: sent != nil, Fields: []console.Field{
		{Name: "address", Label: "Start address", Kind: "url", Required: true,
			Hint: "Such as https://docs.example.com/. Sites on this machine and in private networks can be added only by the operator, by command."},
		{Name: "label", Label: "Label of the site", Hint: "A word such as blog, which names the source in answers and commands. Not needed for a preview."},
		{Name: "prefix", Label: "Only pages below", Hint: "A path such as /docs/. Default: the path of the address."},
		{Name: "sitemap", Label: "Sitemap", Hint: "Its URL, or none to follow links. Default: llms.txt, the site's sitemaps, or links."},
		{Name: "maxPages", Label: "Max pages", Kind: "number", Hint: "Default: 5,000."},
		{Name: "every", Label: "Re-index every", Hint: "Such as 24h. Default: every 6 hours."},
		{Name: "groups", Label: "Groups that may read the site", Hint: "Separated by commas. Leave empty for everybody."},
	}}
	for i, field := range f.Fields {
		f.Fields[i].Value = sent.Get(field.Name)
	}
	f.Problems = console.PlaceFaults(f.Fields, problems)
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
	problems := console.Faults(err)
	if len(problems) == 0 {
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
func (s *handler) previewSite(v *console.Visit) error {
	form := v.Form
	source, wrong := siteOf(form)
	fail := func(status int, problems map[string]string) error {
		return s.sourcesWith(v, status, "", newSiteForm(form, problems), newZipForm(nil, nil))
	}
	if wrong == nil {
		named := source
		named.Label = cmp.Or(named.Label, "preview")
		if err := v.Project.MayAdd(named); err != nil {
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
		return fail(http.StatusConflict, map[string]string{"": "Other sites are being checked. Try again in a few seconds."})
	}
	report, err := s.Setup.Preview(v.Context(), source)
	if err != nil {
		return fail(http.StatusBadRequest, siteFaults(err))
	}
	view := newSiteForm(form, nil)
	view.Preview = &report
	view.Same = siteCommands(v.Project.ID, source)
	return s.sourcesWith(v, http.StatusOK, "", view, newZipForm(nil, nil))
}

// siteCommands do by command what the form does.
func siteCommands(project api.ProjectID, s api.Source) []string {
	more := ""
	flag := func(name, value string) {
		if value != "" {
			more += " --" + name + " " + console.ShellWord(value)
		}
	}
	o := s.Collect.Web
	flag("prefix", o.Prefix)
	flag("sitemap", o.Sitemap)
	preview := "docent crawl preview " + console.ShellWord(s.Address) + more
	if o.MaxPages != 0 {
		flag("max-pages", strconv.Itoa(o.MaxPages))
	}
	flag("every", s.Every)
	for _, g := range s.Groups {
		flag("group", strings.TrimSpace(g))
	}
	return []string{preview, "docent source add " + console.ShellWord(string(project)) + " " + console.ShellWord(cmp.Or(s.Label, "LABEL")) +
		" --kind web --address " + console.ShellWord(s.Address) + more}
}

// addSite reads a web site and adds it. Its address leads to the public web alone, so that an owner may.
func (s *handler) addSite(v *console.Visit) error {
	form := v.Form
	source, wrong := siteOf(form)
	if wrong == nil {
		if err := v.Project.MayAdd(source); err != nil {
			wrong = siteFaults(err)
		}
	}
	fail := func(status int, problems map[string]string) error {
		return s.sourcesWith(v, status, "", newSiteForm(form, problems), newZipForm(nil, nil))
	}
	if wrong != nil {
		return fail(http.StatusBadRequest, wrong)
	}
	task, err := s.Setup.AddSource(v.Project.ID, source)
	return s.addedSource(v, "source.add", source.Label, task, err, fail)
}

// addedSource follows a task that adds a source, and shows its form again if that fails.
func (s *handler) addedSource(v *console.Visit, action, label string, task sources.Task, err error,
	fail func(status int, problems map[string]string) error) error {
	switch {
	case errors.Is(err, api.ErrConflict):
		return fail(http.StatusConflict, siteFaults(err))
	case errors.Is(err, api.ErrInvalid):
		return fail(http.StatusBadRequest, siteFaults(err))
	case err != nil:
		return err
	}
	v.Audit(action, label, "")
	switch task = s.settled(v.Context(), task); {
	case task.Running():
		return v.SeeOther(v.Base() + "/sources/task/" + task.ID)
	case task.Failed():
		return fail(http.StatusBadRequest, siteFaults(task.Err))
	}
	return v.Done(v.Base()+"/sources", "The source "+label+" was read.")
}

// A zipForm uploads the pages of a source.
type zipForm struct {
	Fields   []console.Field
	Problems []string
	Open     bool
}

func newZipForm(sent url.Values, problems map[string]string) zipForm {
	f := zipForm{Open: sent != nil, Fields: []console.Field{
		{Name: "zipLabel", Label: "Label of the source", Required: true,
			Hint: "The label of a zip source replaces its pages. A new label, such as manual, adds a source."},
		{Name: "zipGroups", Label: "Groups that may read a new source", Hint: "Separated by commas. Leave empty for everybody."},
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
	f.Problems = console.PlaceFaults(f.Fields, moved)
	return f
}

// uploadTime is how long a file may take to arrive.
const uploadTime = 10 * time.Minute

// uploadZip takes a zip as the pages of a source, as `docent source upload` does.
func (s *handler) uploadZip(v *console.Visit) error {
	form := v.Form
	fail := func(status int, problems map[string]string) error {
		return s.sourcesWith(v, status, "", newSiteForm(nil, nil), newZipForm(form, problems))
	}
	source := api.Source{Label: strings.ToLower(strings.TrimSpace(form.Get("zipLabel"))), Kind: api.SourceZip,
		Groups: strings.Split(form.Get("zipGroups"), ",")}
	if _, there := v.Project.Further(source.Label); !there && source.Label != v.Project.FirstLabel() {
		if err := v.Project.MayAdd(source); err != nil {
			return fail(http.StatusBadRequest, siteFaults(err))
		}
	}
	if v.File == nil {
		return fail(http.StatusBadRequest, map[string]string{"zip": "is required"})
	}
	rc := http.NewResponseController(v)
	if err := errors.Join(rc.SetReadDeadline(time.Now().Add(uploadTime)), rc.SetWriteDeadline(time.Now().Add(uploadTime+time.Minute))); err != nil {
		s.Log.Debug("an upload has the time of any form", "error", err)
	}
	task, err := s.Setup.Upload(v.Context(), v.Project.ID, source, v.File)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		err = console.Invalid("zip", "is larger than a zip may be")
	}
	return s.addedSource(v, "source.upload", source.Label, task, err, fail)
}
