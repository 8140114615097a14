package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"docent/api"
)

// readerHeader carries the token by which a site's server says who the reader is.
const readerHeader = "X-Docent-Reader"

// badToken refuses a reader token. Clients know it by its code, and fetch a fresh token.
func badToken(reason string) error {
	return &keyError{kind: api.ErrUnauthorized, code: "reader_token", challenge: `error="invalid_token"`, reason: reason}
}

// identify finds out who the reader is, if a token says so. One that is not valid is refused: it is never answered as
// no token is.
func (s *Server) identify(x *exchange, req *http.Request) error {
	tokens := req.Header.Values(readerHeader)
	if x.signed != "" {
		tokens = append([]string{x.signed}, tokens...)
	}
	switch {
	case len(tokens) == 0 || x.project.ID == "":
		return nil
	case len(tokens) > 1:
		return badToken("send one " + readerHeader + " header, not several")
	case s.Readers == nil:
		return badToken("this server takes no reader tokens")
	}
	r, err := s.Readers.Verify(context.WithoutCancel(req.Context()), x.project, tokens[0])
	if errors.Is(err, api.ErrUnauthorized) {
		s.metrics.refuse("reader_token")
		return badToken(words(err, api.ErrUnauthorized))
	}
	if err != nil {
		return err
	}
	x.reader = &r
	return nil
}

// audience are the groups of the reader: those that a reader token says, those of a server key, or those that a request
// with a server key names in a field. No other request may name any.
func (x *exchange) audience(field string, named []string) ([]string, error) {
	switch {
	case len(named) == 0 && x.reader != nil:
		return x.reader.Groups, nil
	case len(named) == 0:
		return x.key.Groups, nil
	case x.reader != nil:
		return nil, &keyError{kind: api.ErrForbidden, reason: field + ": the reader token says which groups the reader is in: leave " +
			field + " out"}
	case x.key.Kind != api.ServerKey:
		return nil, &keyError{kind: api.ErrForbidden, reason: field + ": this key may not say which groups a reader is in. Leave " +
			field + " out, and have your server say it: by a server key (docent key create --kind server), which never leaves your " +
			"servers, or by a token that it signs for the reader, in the header " + readerHeader +
			" (docent reader-secret create). See Private documentation in the docs."}
	}
	for _, g := range named {
		if len(x.key.Groups) > 0 && !slices.Contains(x.key.Groups, g) {
			return nil, &keyError{kind: api.ErrForbidden,
				reason: fmt.Sprintf("%s: this server key is not for the group %q: it is for %q", field, g, x.key.Groups)}
		}
	}
	return named, nil
}

// asks are the names of the caller: as analytics count it, and as threads know whose they are. The second is empty if
// nobody but the client itself says who it is.
func (x *exchange) asks(fp string) (caller, reader string) {
	switch {
	case x.reader != nil:
		return x.reader.Subject, x.reader.Subject
	case x.key.Kind == api.ServerKey:
		return fp, cmp.Or(fp, anonymous)
	}
	return fp, ""
}
