package reqbody

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"docent/api"
)

const (
	maxPrompt          = 100_000 // characters
	maxSessionMessages = 1000
)

// MaxPromptBody is as large as a body becomes whose prompt has as many characters as it may: each may be written as two
// escapes of six bytes.
const MaxPromptBody = 12*maxPrompt + 64<<10

// A Prompt is what a job is told: when it is created, or later. Its JSON is what Digest is made of: names and order
// stay.
type Prompt struct {
	Prompt string
	Model  string
	Draft  bool
	DryRun bool   `json:",omitempty"` // left out of digests that were made before there was one
	Branch string `json:",omitempty"`
}

// Digest tells requests apart that carry the same Idempotency-Key: by what was understood of them, so that an order of
// fields or a space makes no other request.
func (p Prompt) Digest() [32]byte {
	b, _ := json.Marshal(p) // strings and booleans: cannot fail
	return sha256.Sum256(b)
}

// DecodePrompt reads the body of a job's creation, or of a follow-up, which has fewer fields.
func DecodePrompt(raw []byte, create bool) (p Prompt, err error) {
	var ps Problems
	m, err := ps.body(raw)
	if err != nil {
		return p, err
	}
	p.Prompt = ps.required("prompt", m.get("prompt"), length{min: 1, max: maxPrompt, trim: true, lines: true})
	if create {
		p.Model = ps.nullable("model", m.get("model"), length{min: 1, max: 200})
		p.Draft = ps.boolean("asDraft", m.get("asDraft"))
		p.DryRun = ps.boolean("dryRun", m.get("dryRun"))
	}
	return p, ps.Err()
}

// DecodeSession reads the body of a session's creation: a conversation, of which the system's and the user's words
// are the instruction. Callers send asDraft as a boolean or as a word.
func DecodeSession(raw []byte) (p Prompt, err error) {
	var ps Problems
	m, err := ps.body(raw)
	if err != nil {
		return p, err
	}
	p.Prompt = ps.instruction(m.get("messages"))
	if p.Branch = ps.nullable("branch", m.get("branch"), length{min: 1, max: 200}); p.Branch != "" &&
		!api.ValidBranch(p.Branch) {
		ps.Add("branch", "must be a name that a git branch can have")
	}
	p.Model = ps.nullable("model", m.get("model"), length{min: 1, max: 200})
	switch draft := m.get("asDraft"); is(draft) {
	case null:
	case text:
		said := word(draft)
		if p.Draft = said == "true"; !p.Draft && said != "false" && said != "" {
			ps.Add("asDraft", `must be true or false, as a boolean or as a string`)
		}
	default:
		p.Draft = ps.boolean("asDraft", draft)
	}
	return p, ps.Err()
}

// instruction joins the words of a conversation that tell the agent what to do.
func (p *Problems) instruction(messages value) string {
	if is(messages) != brackets {
		p.Add("messages", "is required: send an array of at least one message")
		return ""
	}
	var texts []string
	before := len(p.list)
	for i, message := range elements(messages) {
		at := "messages[" + strconv.Itoa(i) + "]"
		if i == maxSessionMessages {
			p.Add("messages", "must have at most %d messages", maxSessionMessages)
			break
		}
		if is(message) != braces {
			p.Add(at, "must be an object, not %s", kind(message))
			continue
		}
		m := members(message)
		who := p.required(at+".role", m.get("role"), length{min: 1, max: 20})
		l := length{max: maxPrompt, trim: true, lines: true}
		if who == "assistant" { // what it said is no instruction
			p.nullable(at+".content", m.get("content"), l)
			continue
		}
		said := p.required(at+".content", m.get("content"), l)
		switch who {
		case "system", "user":
			if said != "" {
				texts = append(texts, said)
			}
		case "":
		default:
			p.Add(at+".role", "must be system, user or assistant")
		}
	}
	joined := strings.Join(texts, "\n\n")
	switch {
	case len(p.list) > before:
	case joined == "":
		p.Add("messages", "must hold at least one system or user message with text")
	case utf8.RuneCountInString(joined) > maxPrompt:
		p.Add("messages", "must have at most %d characters together, and have %d: shorten them", maxPrompt,
			utf8.RuneCountInString(joined))
	}
	return joined
}
