package router

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/uptrace/bunrouter"

	"docent/actors/job"
	"docent/api"
	"docent/persistence/catalog"
)

// sessionBody is a session of version 1 on the wire; the spelling is the specification's.
type sessionBody struct {
	SessionID       api.JobID      `json:"sessionId"`
	Subdomain       string         `json:"subdomain"`
	Branch          string         `json:"branch"`
	Haulted         bool           `json:"haulted"`
	HaultReason     api.HaltReason `json:"haultReason"`
	PullRequestLink string         `json:"pullRequestLink"`
	MessageToUser   string         `json:"messageToUser"`
	Todos           []api.Todo     `json:"todos"`
	UserID          string         `json:"userId"`
	Title           string         `json:"title"`
	CreatedAt       timestamp      `json:"createdAt"`
}

func (s *Server) sessionBody(x *exchange, req *http.Request, row api.JobRow) sessionBody {
	row.Job.PRLink = s.link(x, req, row.Job.PRLink)
	v := row.Session(x.project.Domain)
	if v.HaultReason == "" { // a row of a job that has said nothing yet
		v.HaultReason = api.HaltProcessing
	}
	return sessionBody{SessionID: v.SessionID, Subdomain: v.Subdomain, Branch: v.Branch, Haulted: v.Haulted, HaultReason: v.HaultReason,
		PullRequestLink: v.PullRequestLink, MessageToUser: v.MessageToUser, Todos: v.Todos, UserID: v.UserID, Title: v.Title,
		CreatedAt: timestamp(v.CreatedAt)}
}

func (s *Server) listSessions(x *exchange, req bunrouter.Request) error {
	var ps problems
	query := req.URL.Query()
	q := catalog.JobQuery{Project: x.project.ID, MinPos: catalog.Newest, // who created a job finds it
		Skip:  ps.queryInt(query, "skip", 0, math.MaxInt32, 0),
		Limit: ps.queryInt(query, "take", 1, 100, 0)} // all where it is not given
	if err := ps.err(); err != nil {
		return err
	}
	rows, err := s.Catalog.Jobs(req.Context(), q)
	if err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	out := struct {
		AllSessions []sessionBody `json:"allSessions"`
	}{AllSessions: make([]sessionBody, 0, len(rows))}
	for _, r := range rows {
		out.AllSessions = append(out.AllSessions, s.sessionBody(x, req.Request, r))
	}
	return encode(x, http.StatusOK, out)
}

func (s *Server) readSession(x *exchange, req bunrouter.Request) error {
	id, err := jobID(x, req)
	if err != nil {
		return err
	}
	reply, err := s.command(req.Context(), id, job.Read{Project: x.project.ID})
	if err != nil {
		return named(err, "job")
	}
	return encode(x, http.StatusOK, s.sessionBody(x, req.Request, reply.Row))
}

// decodeSession reads the body of a session's creation: a conversation, of which the system's and the user's words are the
// instruction. Callers send asDraft as a boolean or as a word.
func decodeSession(body node) (prompt, error) {
	var (
		p                              prompt
		ps                             problems
		messages, branch, draft, model node
	)
	if !ps.object(body) {
		return p, ps.err()
	}
	for name, v := range body.members {
		switch name {
		case "messages":
			messages = v
		case "branch":
			branch = v
		case "asDraft":
			draft = v
		case "model":
			model = v
		}
	}
	p.Prompt = ps.instruction(messages)
	if p.Branch = ps.nullable("branch", branch, length{min: 1, max: 200}); p.Branch != "" && !api.ValidBranch(p.Branch) {
		ps.add("branch", "must be a name that a git branch can have")
	}
	p.Model = ps.nullable("model", model, length{min: 1, max: 200})
	switch {
	case draft.is() == 'n':
	case draft.is() == '"':
		word := draft.text()
		if p.Draft = word == "true"; !p.Draft && word != "false" && word != "" {
			ps.add("asDraft", `must be true or false, as a boolean or as a string`)
		}
	default:
		p.Draft = ps.boolean("asDraft", draft)
	}
	return p, ps.err()
}

// instruction joins the words of a conversation that tell the agent what to do.
func (p *problems) instruction(messages node) string {
	if messages.is() != '[' {
		p.add("messages", "is required: send an array of at least one message")
		return ""
	}
	var texts []string
	before := len(p.list)
	for i, m := range messages.elements {
		at := "messages[" + strconv.Itoa(i) + "]"
		if i == maxSessionMessages {
			p.add("messages", "must have at most %d messages", maxSessionMessages)
			break
		}
		if m.is() != '{' {
			p.add(at, "must be an object, not %s", m.kind())
			continue
		}
		var role, content node
		for name, v := range m.members {
			switch name {
			case "role":
				role = v
			case "content":
				content = v
			}
		}
		who := p.required(at+".role", role, length{min: 1, max: 20})
		l := length{max: maxPrompt, trim: true, lines: true}
		if who == "assistant" { // what it said is no instruction
			p.nullable(at+".content", content, l)
			continue
		}
		text := p.required(at+".content", content, l)
		switch who {
		case "system", "user":
			if text != "" {
				texts = append(texts, text)
			}
		case "":
		default:
			p.add(at+".role", "must be system, user or assistant")
		}
	}
	joined := strings.Join(texts, "\n\n")
	switch {
	case len(p.list) > before:
	case joined == "":
		p.add("messages", "must hold at least one system or user message with text")
	case utf8.RuneCountInString(joined) > maxPrompt:
		p.add("messages", "must have at most %d characters together, and have %d: shorten them", maxPrompt, utf8.RuneCountInString(joined))
	}
	return joined
}

const maxSessionMessages = 1000
