package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"docent/actors/thread"
	"docent/api"
)

// entryForget is the handler that removes a thread, between nodes.
const entryForget = "forget"

// forget removes a thread, whichever node runs it: for what removes many, and so is no request that goes to one node.
func (a *Server) forget(ctx context.Context, id api.ThreadID, project api.ProjectID) error {
	if a.forgets == nil {
		return a.System.Threads().Forget(ctx, id, thread.Forget{Project: project})
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, "/"+url.PathEscape(string(id))+"?project="+
		url.QueryEscape(string(project)), nil)
	if err != nil {
		return err
	}
	got := &reply{header: http.Header{}}
	switch err := got.from(a.forgets, req); {
	case err != nil:
		return errors.Join(err, ctx.Err())
	case got.status == http.StatusNoContent:
		return nil
	case got.status == http.StatusNotFound:
		return api.ErrNotFound
	case got.status == http.StatusServiceUnavailable:
		return &api.BusyError{Kind: api.ErrUnavailable, RetryAfter: time.Second}
	default:
		return fmt.Errorf("its node says: %s", strings.TrimSpace(got.text.String()))
	}
}

// serveForget is what forget asks for, at the node that runs the thread.
func (a *Server) serveForget(w http.ResponseWriter, req *http.Request) {
	err := a.System.Threads().Forget(req.Context(), api.ThreadID(strings.TrimPrefix(req.URL.Path, "/")),
		thread.Forget{Project: api.ProjectID(req.URL.Query().Get("project"))})
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, api.ErrNotFound):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, api.ErrUnavailable):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// A reply takes what a handler answers to a request of this process.
type reply struct {
	header http.Header
	status int
	text   bytes.Buffer
}

var errNoReply = errors.New("the node that runs it was lost: try again")

// from asks a handler.
func (r *reply) from(h http.Handler, req *http.Request) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			err = errNoReply
		default:
			panic(p)
		}
	}()
	h.ServeHTTP(r, req)
	return nil
}

// Header, WriteHeader and Write are http.ResponseWriter's.
func (r *reply) Header() http.Header { return r.header }

func (r *reply) WriteHeader(status int) { r.status = status }

func (r *reply) Write(b []byte) (int, error) {
	r.status = cmp.Or(r.status, http.StatusOK)
	return r.text.Write(b)
}
