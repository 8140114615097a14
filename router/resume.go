package router

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/uptrace/bunrouter"

	"docent/actors/thread"
	"docent/api"
	"docent/api/stream"
	"docent/internal/budget"
	"docent/router/peer"
	"docent/router/reqbody"
)

const (
	// threadKeyHeader carries a thread's secret: in the answer that opens the thread, and in requests.
	threadKeyHeader = "X-Thread-Key"
	// unguessable is the length of the chat SDK's own ids. What is shorter is often the same in every page.
	unguessable = 16
	// guessableLife is how long after its end an answer can be resumed by a chat id that is shorter: others who come to
	// have the same address may have the same id.
	guessableLife = time.Hour
)

// chat is the name of a chat of one reader. Clients choose the ids of their chats and resume by them: the SDK sends
// nothing else, and a page may have the same id for all of its readers. So the name is made of the id, the key, the
// reader's address, and who the reader is if the site's server says so. It is stored as a keyed hash, from which nobody
// can find the address. It is empty if the address is that of a proxy that is not trusted, which says nothing about the
// reader.
func (s *Server) chat(x *exchange, req *http.Request, id, reader string) string {
	if id == "" || len(id) > reqbody.MaxID || !x.client.IsValid() {
		return ""
	}
	if forOthers(x, req) {
		s.unknownProxy.Do(func() {
			s.Log.Warn("a proxy that trusted_proxies does not name speaks for readers: their chats cannot be resumed by the chat's id, and limits count them as one",
				"address", x.client.String())
		})
		return ""
	}
	parts := []string{string(x.project.ID), string(x.key.ID), api.Network(x.client), id}
	if reader != "" {
		parts = append(parts, reader)
	}
	payload := strings.Join(parts, "\x00")
	return base64.RawURLEncoding.EncodeToString(api.Sign(s.Secret, "chat", []byte(payload)))
}

// forOthers reports whether the client says that it speaks for somebody else, and is not trusted to.
func forOthers(x *exchange, req *http.Request) bool {
	chain := req.Header.Get("X-Forwarded-For")
	first, _, _ := strings.Cut(chain, ",")
	return chain != "" && peer.Address(strings.TrimSpace(first)) != x.client
}

// resumeStream serves the stream of a thread's newest answer from its start, and then live. For an unknown thread the
// answer is 204 as well: chat clients ask on every page load, with ids that they have just made up.
func (s *Server) resumeStream(x *exchange, req bunrouter.Request) error {
	return s.resume(x, req, param(req, "id"), stream.UIMessages)
}

// resumeChat is the form that version 4 of the chat SDK uses.
func (s *Server) resumeChat(x *exchange, req bunrouter.Request) error {
	var ps reqbody.Problems
	id, ok := ps.QueryOne(req.URL.Query(), "chatId")
	if ps.Err() == nil && !ok {
		ps.Add("chatId", "is required: send the id of the chat or of the thread")
	}
	if err := ps.Err(); err != nil {
		return err
	}
	return s.resume(x, req, id, stream.DataStream)
}

func (s *Server) resume(x *exchange, req bunrouter.Request, id string, form stream.Form) error {
	query := req.URL.Query()
	caller, reader := x.asks(query.Get("fp"))
	cmd := thread.Resume{Project: x.project, Caller: caller, Reader: reader,
		ThreadKey: cmp.Or(query.Get("threadKey"), req.Header.Get(threadKeyHeader))}
	chat := s.chat(x, req.Request, id, reader)
	if known, ok := s.Threads.Chat(chat); ok {
		x.thread, cmd.Chat = known, chat
		if len(id) < unguessable {
			cmd.Within = guessableLife
		}
	} else if api.ValidID(api.ThreadPrefix, id) {
		x.thread, cmd.Caller = api.ThreadID(id), cmp.Or(cmd.Caller, anonymous)
	} else {
		return s.nothing(x)
	}
	done, err := s.open(x, budget.Streams)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), s.Bounds.CommandTimeout)
	turn, err := s.Threads.Resume(ctx, x.thread, cmd)
	cancel()
	if err != nil {
		done()
		switch {
		case errors.Is(err, thread.ErrKey):
			return &api.StateError{Kind: api.ErrNotFound,
				Reason: "there is no such thread, or its key is missing or wrong: send the key that the thread's first answer came with, as header " + threadKeyHeader + " or as threadKey in the query"}
		case errors.Is(err, api.ErrNotFound):
			return s.nothing(x)
		}
		return err
	}
	s.metrics.resumed.Inc()
	if reqbody.OnlyJSON(req.Request) {
		defer done()
		return s.inOnePiece(x, req.Request, &turn, form)
	}
	return s.follow(x, req.Request, turn, form, done)
}

// nothing says that there is no stream to resume.
func (s *Server) nothing(x *exchange) error {
	s.metrics.nothing.Inc()
	x.Header().Set("Cache-Control", "no-store")
	x.WriteHeader(http.StatusNoContent)
	return nil
}
