// Package builtin implements the model that needs nothing: it answers with the documentation's own sentences.
package builtin

import (
	"context"
	"iter"
	"strings"

	"docent/model"
)

// A Model answers with the documentation's own sentences. It reads the passages as blocks, weighs each block by how
// much of the question it holds, takes the best ones with their context, and writes them in the order of their
// page, with the number of their source; what else was found it only points to. When too little of the question is in
// the documentation it says so.
type Model struct{ name string }

// New makes the model under a name.
func New(name string) Model { return Model{name} }

// Answer writes one answer. Emit is called from the caller's goroutine; an error of it ends the answer.
func (e Model) Answer(ctx context.Context, req model.Request, emit func(model.Delta) error) (model.Result, error) {
	result := model.Result{Model: e.name, Reason: "stop"}
	write := func(cite []int, text string) error {
		for piece := range pieces(text) {
			if err := ctx.Err(); err != nil {
				return err
			}
			d := model.Delta{Text: piece, Cite: cite}
			cite = nil // with the first piece
			result.CompletionTokens++
			if err := emit(d); err != nil {
				return err
			}
		}
		return nil
	}
	if reply := Courtesy(req.Question); reply != "" {
		result.Answered = true
		return result, write(nil, reply)
	}
	composed := compose(req)
	result.Answered = composed.verdict == answered && len(composed.quotes) > 0
	for _, part := range composed.deltas(&req, result.Answered) {
		if err := write(part.Cite, part.Text); err != nil {
			return result, err
		}
	}
	if len(composed.quotes) == 0 {
		if err := write(nil, req.Denied(composed.language)); err != nil {
			return result, err
		}
	}
	if len(composed.cards) > 0 {
		if err := emit(model.Delta{Cards: composed.cards}); err != nil {
			return result, err
		}
	}
	if !result.Answered && len(composed.quotes) > 0 && strings.TrimSpace(req.Deflection) != "" {
		return result, write(nil, "\n\n"+req.AskHere(composed.language))
	}
	return result, nil
}

// deltas are the parts of an answer, each with the passage that it cites. If it is not sure that it is one, it says so first.
func (c *composition) deltas(req *model.Request, sure bool) (out []model.Delta) {
	if len(c.quotes) == 0 {
		return nil
	}
	before := ""
	switch {
	case c.foreign != "":
		before = model.Foreign(c.language, c.foreign)
	case !sure:
		before = model.Doubtful(c.language)
	}
	if before != "" {
		out = append(out, model.Delta{Text: before})
	}
	number, title := numbers(req, c.quotes), titles(req, c.quotes, before != "")
	for n, part := range c.quotes {
		text := mark(part.text, number[n])
		if title[n] != "" {
			text = "**" + title[n] + "**\n\n" + text
		}
		if n > 0 || before != "" {
			text = "\n\n" + text
		}
		out = append(out, model.Delta{Text: text, Cite: []int{part.passage}})
	}
	if len(c.unfound) > 0 {
		out = append(out, model.Delta{Text: "\n\n" + model.Unfound(c.language, c.unfound)})
	}
	return out
}

// Closest is what is shown of the passages where a language model has found no answer in them, as a doubtful answer shows
// it. It has no text if they have hardly anything to do with the question.
func Closest(req model.Request) (shown model.Delta) {
	c := compose(req)
	for _, part := range c.deltas(&req, false) {
		shown.Text += part.Text
		shown.Cite = append(shown.Cite, part.Cite...)
	}
	shown.Cards = c.cards
	return shown
}

// Prompt says what the model makes of a request.
func (e Model) Prompt(req model.Request) model.Prompt {
	c := compose(req)
	j := &model.Judgement{Question: c.question, Verdict: c.verdict.shown(), Opening: string(c.opening), Search: c.evidence.search, Held: c.evidence.held,
		Missing: c.evidence.missing, Sum: c.evidence.sum(), Answers: 0, Doubts: doubt}
	for _, q := range c.quotes {
		j.Quoted = append(j.Quoted, model.Quote{Passage: q.passage, Text: q.text})
	}
	return model.Prompt{Model: e.name, Provider: model.Builtin, Judged: j}
}

// pieces cuts an answer into what one event of a stream carries: a few words each, a line of code whole.
func pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) { cutPieces(text, yield) }
}

func cutPieces(text string, yield func(string) bool) {
	const words = 4
	start, first, n, coding := 0, -1, 0, false // first is where something is after start; -1 if nothing is
	for i := 0; i < len(text); i++ {
		end := false
		switch text[i] {
		case '\n':
			end = true
			if first >= 0 && strings.HasPrefix(text[first:i], "```") {
				coding = !coding
			}
		case ' ':
			if !coding {
				n++
				end = n >= words && i+1 < len(text) && text[i+1] != ' ' && text[i+1] != '\n'
			}
		case '\t', '\r':
		default:
			if first < 0 {
				first = i
			}
		}
		if end && first >= 0 {
			if !yield(text[start : i+1]) {
				return
			}
			start, first, n = i+1, -1, 0
		}
	}
	if start < len(text) {
		yield(text[start:])
	}
}
