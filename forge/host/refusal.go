package host

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"docent/forge/failure"
)

// answered reports whether the host answered with one of these statuses.
func answered(err error, statuses ...int) bool {
	var e *failure.Error
	if !errors.As(err, &e) {
		return false
	}
	return slices.ContainsFunc(statuses, func(s int) bool { return e.Status == s })
}

// said reports whether the host's own words hold one of these, whatever their case.
func said(err error, words ...string) bool {
	var e *failure.Error
	if !errors.As(err, &e) {
		return false
	}
	text := strings.ToLower(e.Words)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// refusalOf sorts an answer that is no success by what can be done about it.
func (c *client) refusalOf(status int, header http.Header, text string) *failure.Error {
	e := &failure.Error{Kind: failure.ErrMisconfigured, Status: status, Words: text}
	if wait, limited := c.limit(status, header, text); limited {
		e.Kind, e.After = failure.ErrTemporary, wait
		e.Say = fmt.Sprintf("%s asks for fewer requests, for the next %v.", c.name, wait.Round(time.Second))
		return e
	}
	words := ""
	if text != "" {
		words = fmt.Sprintf(" (%s says: %s)", c.name, strings.TrimRight(text, "."))
	}
	switch {
	case status == http.StatusUnauthorized:
		e.Say = fmt.Sprintf("%s does not accept %s: it is wrong, has expired or was revoked.", c.name, c.what)
	case status == http.StatusForbidden && strings.Contains(strings.ToLower(text), "archived"):
		e.Say = fmt.Sprintf("The repository %s is archived on %s: nothing can be changed in it.", c.repo, c.name)
	case status == http.StatusForbidden:
		e.Say = fmt.Sprintf(
			"%s does not allow this with %s: it needs the right to write the contents and the pull requests of %s%s.", c.name,
			c.what, c.repo, words)
	case status == http.StatusNotFound:
		e.Say = fmt.Sprintf("%s has no repository %s, or does not show it to %s%s.", c.name, c.repo, c.what, words)
	case status == http.StatusRequestTimeout, status >= 500:
		e.Kind = failure.ErrTemporary
		e.Say = fmt.Sprintf("%s has trouble of its own now (status %d)%s.", c.name, status, words)
	case status >= 300 && status < 400:
		e.Say = fmt.Sprintf("%s says that %s has moved to another address. Update the project's repository and host address.",
			c.name, c.repo)
	default:
		e.Say = fmt.Sprintf("%s refuses the request with status %d%s.", c.name, status, words)
	}
	return e
}
