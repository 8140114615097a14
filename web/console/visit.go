package console

import (
	"context"
	"errors"
	"io"
	"net"
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

// uploadBytes is the most that a form with a file may hold: what a zip may have, and its fields.
const uploadBytes = 256<<20 + 2*formBytes

// A Visit is one request for a page: what was asked, by whom, and for which project.
type Visit struct {
	http.ResponseWriter
	Req      *http.Request
	params   bunrouter.Request
	Client   netip.Addr
	secure   bool // over TLS
	route    Route
	Now      time.Time
	server   *Server
	Who      Visitor
	SignedIn bool
	Org      api.OrgID   // of the address; empty if it names none
	Project  api.Project // of the address; empty if it names none
	Form     url.Values  // that was sent; only requests with the method POST have one
	File     io.Reader   // that came with it; nil if none did
	token    string      // what forms that are shown now bring along; empty before one is
}

// A Visitor is who is signed in.
type Visitor struct {
	ID      string     // a person's or a key's; "link" of the operator
	Name    string     // shown to people
	Person  api.Person // empty if it is none
	SignIn  api.SignIn // the session
	session string     // what forms' tokens belong to
	Key     api.Key
	Rights  api.Rights // as they are now: looked up at each visit
}

// Role returns what the visitor may do in an organization; empty for one that is not theirs.
func (w Visitor) Role(org api.OrgID) api.Role { return w.Rights.Role(org) }

// Reads reports whether the visitor may see what an organization's viewers see.
func (w Visitor) Reads(org api.OrgID) bool {
	return org != "" && w.Role(org).Valid() && w.Rights.Admits(http.MethodGet)
}

// Unwrap lets http.ResponseController find deadlines and flushing.
func (v *Visit) Unwrap() http.ResponseWriter { return v.ResponseWriter }

// Context ends with the request.
func (v *Visit) Context() context.Context { return v.Req.Context() }

// Param returns a part of the address as the visitor meant it.
func (v *Visit) Param(name string) string {
	text := v.params.Param(name)
	if v.Req.URL.RawPath == "" {
		return text
	}
	if u, err := url.PathUnescape(text); err == nil {
		return u
	}
	return text
}

// Query returns a value behind the question mark of the address.
func (v *Visit) Query(name string) string { return v.Req.URL.Query().Get(name) }

// formToken is what the forms of this answer bring along. A live part of a page has the same one for as long as it is
// shown, and so does not change for it.
func (v *Visit) formToken() string {
	if v.token == "" {
		v.token = v.server.token(v.Who.session)
	}
	return v.token
}

// May reports whether the visitor may do in the address's organization what needs that role.
func (v *Visit) May(n Need) bool {
	switch {
	case n == Operator:
		return v.Who.Rights.Operator
	case n == SignedIn:
		return v.SignedIn
	case n == Anybody:
		return true
	}
	return v.Who.Role(v.Org).AtLeast(n.role())
}

// Base returns the address of the overview of the visit's project.
func (v *Visit) Base() string { return PathOf(v.Project) }

// PathOf returns the address of a project's overview. Its last part is the domain.
func PathOf(p api.Project) string {
	return "/console/" + url.PathEscape(string(p.Org)) + "/" + url.PathEscape(p.Domain)
}

// page is the address of the page that the visitor looks at. A form acts below its page.
func (v *Visit) page() string {
	if v.Req.Method == http.MethodPost {
		return path.Dir(v.Req.URL.Path)
	}
	return v.Req.URL.RequestURI()
}

// Partial reports whether htmx asks, for a part of a page.
func (v *Visit) Partial() bool {
	h := v.Req.Header
	return h.Get("HX-Request") == "true" && h.Get("HX-Boosted") == "" &&
		h.Get("HX-History-Restore-Request") == "" // the browser goes back: htmx puts in the whole page
}

// About tells the log what the visit is about.
func (v *Visit) About(job api.JobID, thread api.ThreadID) {
	if n, ok := v.ResponseWriter.(interface {
		About(key api.Key, project api.ProjectID, job api.JobID, thread api.ThreadID)
	}); ok {
		n.About(v.Who.Key, v.Project.ID, job, thread)
	}
}

// readForm reads what a page of ours sent.
func (v *Visit) readForm() error {
	if err := v.server.csrf.Check(v.Req); err != nil {
		return errForm
	}
	kind, _, _ := strings.Cut(v.Req.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded") {
		return Invalid("body", "must be sent as application/x-www-form-urlencoded")
	}
	v.Req.Body = http.MaxBytesReader(v.ResponseWriter, v.Req.Body, formBytes)
	if err := v.Req.ParseForm(); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return Invalid("body", "is larger than a form may be")
		}
		var broken net.Error // which names addresses of the server's
		if errors.As(err, &broken) || errors.Is(err, io.ErrUnexpectedEOF) {
			return Invalid("body", "did not arrive whole: send it again")
		}
		return Invalid("body", "must be a form: "+err.Error())
	}
	v.Form = v.Req.PostForm
	return operatorsAlone(v.Form)
}

// readUpload reads what comes before the file of a form of ours: the file itself is read once it is known who sends it.
func (v *Visit) readUpload() error {
	if !strings.HasPrefix(v.Req.Header.Get("Content-Type"), "multipart/form-data") {
		return v.readForm() // without a file, which its handler asks for
	}
	if err := v.server.csrf.Check(v.Req); err != nil {
		return errForm
	}
	v.Req.Body = http.MaxBytesReader(v.ResponseWriter, v.Req.Body, uploadBytes)
	parts, err := v.Req.MultipartReader()
	if err != nil {
		return Invalid("body", "must be sent as multipart/form-data")
	}
	v.Form = url.Values{}
	for left := formBytes; ; {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Invalid("body", "must be a form of several parts")
		}
		if part.FileName() != "" || part.FormName() == "zip" {
			v.File = part
			break
		}
		text, err := io.ReadAll(io.LimitReader(part, int64(left)+1))
		if left -= len(text) + len(part.FormName()); err != nil || left < 0 {
			return Invalid("body", "is larger than a form may be")
		}
		v.Form.Add(part.FormName(), string(text))
	}
	return operatorsAlone(v.Form)
}

// operatorsAlone refuses what no page may set: such a field is an error, rather than ignored.
func operatorsAlone(form url.Values) error {
	for name := range form {
		last := name[strings.LastIndexByte(name, '.')+1:]
		if strings.EqualFold(strings.ReplaceAll(last, "-", ""), "allowPrivate") {
			return Invalid("collect.web.allowPrivate", api.PrivateByCommand)
		}
	}
	return nil
}

var errForm = &api.StateError{Kind: api.ErrForbidden,
	Reason: "this form is out of date or came from another site: reload the page and send it again"}

// Invalid returns the error of one field of a form.
func Invalid(field, message string) error {
	return &api.InvalidError{Problems: []api.Problem{{Field: field, Message: message}}}
}

// SeeOther leads to another page of ours.
func (v *Visit) SeeOther(to string) error {
	h := v.Header()
	h.Set("Cache-Control", "no-store")
	if v.Partial() { // a part of a page cannot be replaced by another page: htmx goes there
		h.Set("HX-Redirect", to)
		v.WriteHeader(http.StatusNoContent)
		return nil
	}
	h.Set("Location", to)
	v.WriteHeader(http.StatusSeeOther)
	return nil
}

// Resend makes the browser send the same form to another address of ours.
func (v *Visit) Resend(to string) error {
	h := v.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Location", to)
	v.WriteHeader(http.StatusTemporaryRedirect)
	return nil
}

// Done leads to another page, which says what was done.
func (v *Visit) Done(to, message string) error {
	v.SetCookie(flashCookie, url.QueryEscape(message), time.Minute)
	return v.SeeOther(to)
}

// flash is what the page before has done, said once.
func (v *Visit) flash() string {
	said := v.Cookie(flashCookie)
	if said == "" || v.Partial() {
		return ""
	}
	v.SetCookie(flashCookie, "", 0)
	text, err := url.QueryUnescape(said)
	if err != nil || len(text) > 1000 {
		return ""
	}
	return text
}

const flashCookie = "docent_done"

// SetCookie keeps a value in the browser; an empty one removes it.
func (v *Visit) SetCookie(name, value string, life time.Duration) {
	c := &http.Cookie{Name: v.cookieName(name), Value: value, Path: "/", HttpOnly: true, Secure: v.tls(),
		SameSite: http.SameSiteLaxMode, MaxAge: int(life.Seconds())}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(v, c)
}

// Caller returns the caller's name when a visitor asks.
func (v *Visit) Caller() string { return "console:" + v.Who.ID }
