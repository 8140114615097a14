package stream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Asked is what a client of OpenAI's API or of AG-UI has said that its answer repeats.
type Asked struct {
	Model   string
	Created time.Time
	Usage   bool // is told at the end

	Previous    string // response that the question goes on from
	Thread, Run string // of AG-UI, as the client calls them
}

// A completion is what the encoder knows of an answer in one of OpenAI's forms, or of AG-UI.
type completion struct {
	Asked
	head    []byte // of each event, up to what is new in it
	length  int    // characters so far
	said    []byte // the text so far, of a response
	events  int    // of a response so far
	listing listing
}

// For says what the client has said that the answer repeats, in the forms that do.
func (e *Encoder) For(asked Asked) *Encoder {
	if e.completion != nil {
		e.completion.Asked = asked
	}
	return e
}

// chunk writes the events of a chat completion.
func (e *Encoder) chunk(dst []byte, p *Part) []byte {
	c := e.completion
	switch p.Kind {
	case Start:
		e.remember(p)
		b := appendString([]byte(`data: {"id":`), "chatcmpl-"+p.Message)
		b = append(b, `,"object":"chat.completion.chunk","created":`...)
		b = strconv.AppendInt(b, c.Created.Unix(), 10)
		b = appendString(append(b, `,"model":`...), c.Model)
		c.head = append(b, `,"choices":[{"index":0,"delta":`...)
		dst = c.event(dst, `{"role":"assistant","content":""}`, "")
	case Source:
		c.listing.add(p)
	case Text:
		if p.Text == "" {
			return dst
		}
		c.length += utf8.RuneCountInString(p.Text)
		dst = append(append(dst, c.head...), `{"content":`...)
		dst = appendString(dst, p.Text)
		dst = append(dst, "},\"finish_reason\":null}]}\n\n"...)
	case Finish:
		e.remember(p)
		if text, marks := c.listing.write(c.length); text != "" {
			delta, _ := json.Marshal(struct { // strings and numbers: cannot fail
				Content     string       `json:"content"`
				Annotations []Annotation `json:"annotations,omitempty"`
			}{text, marks})
			dst = c.event(dst, string(delta), "")
		}
		dst = c.event(dst, "{}", cmp.Or(p.Reason, "stop"))
		if c.Usage {
			head, _, _ := bytes.Cut(c.head, []byte(`"choices":`))
			dst = append(append(dst, head...), `"choices":[],"usage":`...)
			usage, _ := json.Marshal(p.Usage.completion())
			dst = append(append(dst, usage...), "}\n\n"...)
		}
		dst = e.endEvents(dst)
	case Error:
		dst = append(dst, `data: {"error":{"message":`...)
		dst = appendString(dst, p.Text)
		dst = append(dst, ",\"type\":\"server_error\",\"param\":null,\"code\":\"no_answer\"}}\n\n"...)
		dst = e.endEvents(dst)
	}
	return dst
}

func (c *completion) event(dst []byte, delta, reason string) []byte {
	dst = append(append(dst, c.head...), delta...)
	if reason == "" {
		return append(dst, ",\"finish_reason\":null}]}\n\n"...)
	}
	dst = append(dst, `,"finish_reason":`...)
	return append(appendString(dst, reason), "}]}\n\n"...)
}

// An Annotation says which page stands at a place of the text, in OpenAI's form.
type Annotation struct {
	Type string      `json:"type"`
	URL  urlCitation `json:"url_citation"`
}

type urlCitation struct {
	Start int    `json:"start_index"` // in characters
	End   int    `json:"end_index"`
	URL   string `json:"url"`
	Title string `json:"title"`
}

// A listing is the list of pages at the end of an answer, for clients that show nothing but text.
type listing struct{ cited, further []Part }

func (l *listing) add(p *Part) {
	if p.Excerpt == "" {
		l.cited = append(l.cited, *p)
	} else {
		l.further = append(l.further, *p)
	}
}

const sourcesHead = "\n\nSources:\n"

var linkText = strings.NewReplacer("[", `\[`, "]", `\]`, "\n", " ")

// write is the list after a text of so many characters, with where in it each cited page stands.
func (l *listing) write(length int) (text string, marks []Annotation) {
	var b strings.Builder
	link := func(p *Part) string {
		title := cmp.Or(p.Title, p.URL)
		return "[" + linkText.Replace(title) + "](" + p.URL + ")"
	}
	for i := range l.cited {
		p := &l.cited[i]
		if i == 0 {
			b.WriteString(sourcesHead)
		}
		fmt.Fprintf(&b, "%d. ", i+1)
		at := length + utf8.RuneCountInString(b.String())
		b.WriteString(link(p))
		marks = append(marks, Annotation{"url_citation", urlCitation{Start: at, End: length + utf8.RuneCountInString(b.String()),
			URL: p.URL, Title: p.Title}})
		b.WriteString("\n")
	}
	for i := range l.further {
		p := &l.further[i]
		if i == 0 {
			b.WriteString("\n\nSee also:\n")
		}
		fmt.Fprintf(&b, "- %s: %s\n", link(p), p.Excerpt)
	}
	return b.String(), marks
}

// Unlisted is an answer without the list of pages that was put at its end.
func Unlisted(text string) string {
	for _, head := range []string{sourcesHead + "1. [", "\n\nSee also:\n- ["} {
		if at := strings.LastIndex(text, head); at >= 0 {
			text = text[:at]
		}
	}
	return text
}

// A Whole is an answer in one piece, made of its parts.
type Whole struct {
	Message, Text, Explanation string
	Sources                    []Part // with an Excerpt those that it only points to
	End                        Part   // Finish, or Error
}

// Add takes in the next part.
func (w *Whole) Add(p Part) {
	switch p.Kind {
	case Start:
		w.Message = p.Message
	case Source:
		w.Sources = append(w.Sources, p)
	case Text:
		w.Text += p.Text
	case Explained:
		w.Explanation = p.Text
	case Finish, Error:
		w.End = p
	}
}

type tokenUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

func (u Usage) completion() tokenUsage {
	return tokenUsage{u.Prompt, u.Completion, u.Prompt + u.Completion}
}

// A Completion is a whole answer in the form of OpenAI's chat completions.
type Completion struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"`
	Created int64              `json:"created"`
	Model   string             `json:"model"`
	Choices []completionChoice `json:"choices"`
	Usage   tokenUsage         `json:"usage"`
	// Metadata leads to the thread, as a request names it.
	Metadata map[string]string `json:"metadata"`
}

type completionChoice struct {
	Index   int               `json:"index"`
	Message completionMessage `json:"message"`
	Reason  string            `json:"finish_reason"`
	Logs    *string           `json:"logprobs"`
}

type completionMessage struct {
	Role        string       `json:"role"`
	Content     string       `json:"content"`
	Refusal     *string      `json:"refusal"`
	Annotations []Annotation `json:"annotations"`
}

// list is the list of pages at the end of the text.
func (w *Whole) list() (string, []Annotation) {
	var l listing
	for i := range w.Sources {
		l.add(&w.Sources[i])
	}
	return l.write(utf8.RuneCountInString(w.Text))
}

// As is the answer in one of OpenAI's forms.
func (w *Whole) As(form Form, asked Asked, thread, key string) any {
	if form == Responses {
		return w.Response(asked, thread, key)
	}
	return w.Completion(asked, thread, key)
}

// Completion is the answer in the form of OpenAI's chat completions.
func (w *Whole) Completion(asked Asked, thread, key string) Completion {
	list, marks := w.list()
	if marks == nil {
		marks = []Annotation{}
	}
	c := Completion{ID: "chatcmpl-" + w.Message, Object: "chat.completion", Created: asked.Created.Unix(), Model: asked.Model,
		Choices: []completionChoice{{Message: completionMessage{Role: "assistant", Content: w.Text + list, Annotations: marks},
			Reason: cmp.Or(w.End.Reason, "stop")}},
		Usage: w.End.Usage.completion(), Metadata: map[string]string{"thread_id": thread}}
	if key != "" {
		c.Metadata["thread_key"] = key
	}
	return c
}
