package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/uptrace/bunrouter"

	"docent/api"
)

// formBytes is the most that a form may hold.
const formBytes = 256 << 10

// A form with a file may hold uploadBytes: what a zip may have, and its fields. It may take uploadTime.
const (
	uploadBytes = 256<<20 + 2*formBytes
	uploadTime  = 10 * time.Minute
)

// A visit is one request for a page: what was asked, who asks, and for which project.
type visit struct {
	http.ResponseWriter
	Req      *http.Request
	params   bunrouter.Request
	client   netip.Addr
	secure   bool // over TLS
	route    route
	now      time.Time
	server   *Server
	who      visitor
	signedIn bool
	org      api.OrgID   // of the address; empty where it names none
	project  api.Project // of the address; empty where it names none
	values   url.Values  // of the form that was sent
	file     io.Reader   // that came with it; nil where none did
	token    string      // what forms that are shown now bring along; empty before one is
}

// A visitor is who is signed in.
type visitor struct {
	id       string     // a person's or a key's; "link" of the operator
	name     string     // shown to people
	person   api.Person // empty where it is none
	signIn   api.SignIn // the session
	session  string     // what forms' tokens belong to
	key      api.Key
	roles    map[api.OrgID]api.Role
	operator bool
}

// role is what the visitor may do in an organization; empty for one that is not theirs.
func (w visitor) role(org api.OrgID) api.Role {
	if w.operator {
		return api.RoleOwner
	}
	return w.roles[org]
}

// Unwrap lets http.ResponseController find deadlines and flushing.
func (v *visit) Unwrap() http.ResponseWriter { return v.ResponseWriter }

// Context ends with the request.
func (v *visit) Context() context.Context { return v.Req.Context() }

// param is a part of the address as the visitor meant it.
func (v *visit) param(name string) string {
	text := v.params.Param(name)
	if v.Req.URL.RawPath == "" {
		return text
	}
	if u, err := url.PathUnescape(text); err == nil {
		return u
	}
	return text
}

// query is a value behind the question mark of the address.
func (v *visit) query(name string) string { return v.Req.URL.Query().Get(name) }

// formToken is what the forms of this answer bring along. A live part of a page has the same one for as long as it is
// shown, and so does not change for it.
func (v *visit) formToken() string {
	if v.token == "" {
		v.token = v.server.token(v.who.session)
	}
	return v.token
}

// form is what was sent. Only requests with the method POST have one.
func (v *visit) form() url.Values { return v.values }

// may reports whether the visitor may do in the address's organization what needs that role.
func (v *visit) may(n need) bool {
	switch {
	case n == operator:
		return v.who.operator
	case n == signedIn:
		return v.signedIn
	case n == anybody:
		return true
	}
	return v.who.role(v.org).AtLeast(n.role())
}

// base is the address of the overview of the visit's project.
func (v *visit) base() string { return consolePath(v.project) }

// consolePath is the address of a project's overview. Its last part is the domain.
func consolePath(p api.Project) string {
	return "/console/" + url.PathEscape(string(p.Org)) + "/" + url.PathEscape(p.Domain)
}

// page is the address of the page that the visitor looks at. A form acts below its page.
func (v *visit) page() string {
	if v.Req.Method == http.MethodPost {
		return path.Dir(v.Req.URL.Path)
	}
	return v.Req.URL.RequestURI()
}

// partial reports whether htmx asks, for a part of a page.
func (v *visit) partial() bool {
	h := v.Req.Header
	return h.Get("HX-Request") == "true" && h.Get("HX-Boosted") == "" &&
		h.Get("HX-History-Restore-Request") == "" // the browser goes back: htmx puts in the whole page
}

// about tells the log what the visit is about.
func (v *visit) about(job api.JobID, thread api.ThreadID) {
	if n, ok := v.ResponseWriter.(interface {
		About(key api.Key, project api.ProjectID, job api.JobID, thread api.ThreadID)
	}); ok {
		n.About(v.who.key, v.project.ID, job, thread)
	}
}

// readForm reads what a page of ours sent.
func (v *visit) readForm() error {
	if err := v.server.csrf.Check(v.Req); err != nil {
		return errForm
	}
	kind, _, _ := strings.Cut(v.Req.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded") {
		return invalid("body", "must be sent as application/x-www-form-urlencoded")
	}
	v.Req.Body = http.MaxBytesReader(v.ResponseWriter, v.Req.Body, formBytes)
	if err := v.Req.ParseForm(); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return invalid("body", "is larger than a form may be")
		}
		return invalid("body", "must be a form: "+err.Error())
	}
	v.values = v.Req.PostForm
	return operatorsAlone(v.values)
}

// readUpload reads what comes before the file of a form of ours: the file itself is read once it is known who sends it.
func (v *visit) readUpload() error {
	if !strings.HasPrefix(v.Req.Header.Get("Content-Type"), "multipart/form-data") {
		return v.readForm() // without a file, which its handler asks for
	}
	if err := v.server.csrf.Check(v.Req); err != nil {
		return errForm
	}
	v.Req.Body = http.MaxBytesReader(v.ResponseWriter, v.Req.Body, uploadBytes)
	parts, err := v.Req.MultipartReader()
	if err != nil {
		return invalid("body", "must be sent as multipart/form-data")
	}
	v.values = url.Values{}
	for left := formBytes; ; {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return invalid("body", "must be a form of several parts")
		}
		if part.FileName() != "" || part.FormName() == "zip" {
			v.file = part
			break
		}
		text, err := io.ReadAll(io.LimitReader(part, int64(left)+1))
		if left -= len(text) + len(part.FormName()); err != nil || left < 0 {
			return invalid("body", "is larger than a form may be")
		}
		v.values.Add(part.FormName(), string(text))
	}
	return operatorsAlone(v.values)
}

// operatorsAlone refuses what no page may set: whoever fills in such a field is told so, rather than nothing.
func operatorsAlone(form url.Values) error {
	for name := range form {
		last := name[strings.LastIndexByte(name, '.')+1:]
		if strings.EqualFold(strings.ReplaceAll(last, "-", ""), "allowPrivate") {
			return invalid("collect.web.allowPrivate", api.PrivateByCommand)
		}
	}
	return nil
}

var errForm = &api.StateError{Kind: api.ErrForbidden,
	Reason: "this form is out of date or came from another site: reload the page and send it again"}

func invalid(field, message string) error {
	return &api.InvalidError{Problems: []api.Problem{{Field: field, Message: message}}}
}

// seeOther leads to another page of ours.
func (v *visit) seeOther(to string) error {
	h := v.Header()
	h.Set("Cache-Control", "no-store")
	if v.partial() { // a part of a page cannot be replaced by another page: htmx goes there
		h.Set("HX-Redirect", to)
		v.WriteHeader(http.StatusNoContent)
		return nil
	}
	h.Set("Location", to)
	v.WriteHeader(http.StatusSeeOther)
	return nil
}

// again has the browser send the same form to another address of ours.
func (v *visit) again(to string) error {
	h := v.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Location", to)
	v.WriteHeader(http.StatusTemporaryRedirect)
	return nil
}

// done leads to another page, which says what was done.
func (v *visit) done(to, message string) error {
	v.setCookie(flashCookie, url.QueryEscape(message), time.Minute)
	return v.seeOther(to)
}

// flash is what the page before has done, said once.
func (v *visit) flash() string {
	said := v.cookie(flashCookie)
	if said == "" || v.partial() {
		return ""
	}
	v.setCookie(flashCookie, "", 0)
	text, err := url.QueryUnescape(said)
	if err != nil || len(text) > 1000 {
		return ""
	}
	return text
}

const flashCookie = "docent_done"

// setCookie keeps a value in the browser; an empty one removes it.
func (v *visit) setCookie(name, value string, life time.Duration) {
	c := &http.Cookie{Name: v.cookieName(name), Value: value, Path: "/", HttpOnly: true, Secure: v.tls(),
		SameSite: http.SameSiteLaxMode, MaxAge: int(life.Seconds())}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(v, c)
}
