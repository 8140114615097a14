package router

import (
	"context"
	"net/http"

	"github.com/uptrace/bunrouter"

	"docent/actors/thread"
	"docent/api"
)

const maxComment = 2000 // characters of what a reader says about an answer

// A verdict is what a reader thinks of an answer, decoded.
type verdict struct {
	Thread    string
	Message   string
	Rating    api.Rating
	Comment   string
	Caller    string
	ThreadKey string
}

func decodeVerdict(body node) (verdict, error) {
	var (
		v                                                 verdict
		ps                                                problems
		threadID, message, rating, comment, fp, threadKey node
	)
	if ps.object(body) {
		for name, n := range body.members {
			switch name {
			case "threadId":
				threadID = n
			case "messageId":
				message = n
			case "rating":
				rating = n
			case "comment":
				comment = n
			case "fp":
				fp = n
			case "threadKey":
				threadKey = n
			}
		}
		v.Thread = ps.required("threadId", threadID, length{min: 1, max: maxID})
		v.Message = ps.required("messageId", message, length{min: 1, max: maxID})
		v.Rating = api.Rating(ps.enum("rating", rating, string(api.RatedUp), string(api.RatedDown)))
		v.Comment = ps.nullable("comment", comment, length{max: maxComment, trim: true, lines: true})
		v.Caller = ps.nullable("fp", fp, length{max: maxCaller})
		v.ThreadKey = ps.nullable("threadKey", threadKey, length{max: maxID})
	}
	return v, ps.err()
}

// rateAnswer stores what a reader thinks of an answer. Who knows the ids of a thread and of an answer in it may rate
// that answer; fp and threadKey are looked at where they are sent, and the key where the project asks for it.
func (s *Server) rateAnswer(x *exchange, req bunrouter.Request) error {
	doc, err := s.body(x, req.Request)
	if err != nil {
		return err
	}
	v, err := decodeVerdict(doc.root)
	doc.release()
	if err != nil {
		return err
	}
	if !api.ValidID(api.ThreadPrefix, v.Thread) {
		return missing("message")
	}
	x.thread = api.ThreadID(v.Thread)
	place, err := s.enqueue(req.Context())
	if err != nil {
		return err
	}
	defer place.Leave()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), s.Bounds.CommandTimeout)
	defer cancel()
	err = s.Threads.Rate(ctx, x.thread, thread.Rate{Project: x.project, Caller: v.Caller, ThreadKey: or(v.ThreadKey, req.Header.Get(threadKeyHeader)),
		Turn: api.TurnID(v.Message), Rating: v.Rating, Comment: v.Comment})
	if err != nil {
		return named(err, "message")
	}
	x.Header().Set("Cache-Control", "no-store")
	x.WriteHeader(http.StatusNoContent)
	return nil
}
