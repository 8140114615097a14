package remote

import (
	"bytes"
	"cmp"
	"encoding/json"
	"html"
	"regexp"
	"strings"

	"docent/internal/brief"
)

// reported is an error that the provider reported, in place of an answer or within its stream.
type reported struct {
	text      string
	kind      string // type, code and status, as far as given, in lower case
	param     string // the parameter that it names
	status    int    // of HTTP; 0 within a stream
	temporary bool
	spent     bool  // no waiting helps: somebody has to pay
	means     error // ErrTooLong or ErrRefused if it is one of these
	given     bool  // the text is the provider's own
}

func (e *reported) Error() string { return e.text }

// readProblem reads an error in the forms that providers and the proxies before them give: an object, a list of them,
// a text, or a page.
func readProblem(status int, page []byte) *reported {
	e := &reported{status: status}
	page = bytes.TrimSpace(page)
	e.read(page, 0)
	if e.text == "" && len(page) > 0 && page[0] != '{' && page[0] != '[' {
		e.text = plainText(string(page))
	}
	e.given = e.text != ""
	e.kind = strings.ToLower(strings.TrimSpace(e.kind))
	text := strings.ToLower(e.text)
	e.temporary = holds(e.kind, "overloaded", "rate_limit", "server_error", "api_error", "unavailable", "resource_exhausted")
	e.spent = holds(e.kind, "insufficient_quota", "billing") || strings.Contains(text, "credit balance is too low")
	e.means = meaning(e.kind, cmp.Or(e.text, string(page)))
	return e
}

// deepestProblem bounds how far errors are looked for in what wraps them.
const deepestProblem = 5

// read takes in what a value says of an error. The words that are nearest to the bottom count: gateways wrap those of
// the provider behind them.
func (e *reported) read(value json.RawMessage, depth int) {
	if depth > deepestProblem || len(value) == 0 {
		return
	}
	switch value[0] {
	case '"':
		var s string
		if json.Unmarshal(value, &s) != nil {
			return
		}
		if inner := strings.TrimSpace(s); strings.HasPrefix(inner, "{") || strings.HasPrefix(inner, "[{") {
			before := e.text
			e.read(json.RawMessage(inner), depth+1)
			if e.text != before {
				return
			}
		}
		if s = strings.TrimSpace(s); s != "" {
			e.text = s
		}
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil || len(list) == 0 {
			return
		}
		for _, item := range list[:min(len(list), 8)] {
			if e.text == "" || depth > 0 && len(e.text) < 400 {
				said := e.text
				e.text = ""
				e.read(item, depth+1)
				e.text = strings.Trim(said+"; "+e.text, "; ")
			}
		}
	case '{':
		var in map[string]json.RawMessage
		if json.Unmarshal(value, &in) == nil {
			e.readObject(in, depth)
		}
	}
}

func (e *reported) readObject(in map[string]json.RawMessage, depth int) {
	word := func(key string) string {
		var v any
		if json.Unmarshal(in[key], &v) != nil {
			return ""
		}
		switch v := v.(type) {
		case string:
			return v
		case float64:
			return string(in[key])
		}
		return ""
	}
	for _, key := range []string{"type", "code", "status"} {
		if s := word(key); s != "" && s != "error" {
			e.kind += " " + s
		}
	}
	e.param = cmp.Or(word("param"), e.param)
	var where []any
	own := ""                                                       // the field that it is about, if it says so itself
	if json.Unmarshal(in["loc"], &where) == nil && len(where) > 0 { // as FastAPI says which field it means
		var names []string
		for _, part := range where {
			if s, ok := part.(string); ok && s != "body" {
				names = append(names, s)
			}
		}
		own = strings.Join(names, ".")
		e.param = cmp.Or(e.param, own)
	}
	for _, key := range []string{"title", "error_description", "detail", "details", "msg", "message", "error", "errors"} {
		if key == "details" && e.text != "" {
			continue
		}
		e.read(in[key], depth+1)
	}
	if own != "" && e.text != "" && !strings.Contains(e.text, own) {
		e.text = own + ": " + e.text
	}
	var more struct {
		Raw json.RawMessage `json:"raw"`
	}
	if json.Unmarshal(in["metadata"], &more) == nil { // OpenRouter: what the provider behind it said
		e.read(more.Raw, depth+1)
	}
}

var (
	pageTitle = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	pageHead  = regexp.MustCompile(`(?is)<(head|script|style)\b.*?</(head|script|style)>`)
	pageTags  = regexp.MustCompile(`(?s)<[^>]*>`)

	bareStatus = regexp.MustCompile(`(?i)^(?:(?:error )?\d{3}\b[ a-z:-]*|error|bad request|unprocessable [a-z]+)$`)
)

// plainText is what a page or a text says, in one line.
func plainText(page string) string {
	page = brief.Bytes(page, longestError, "")
	if strings.HasPrefix(page, "<") {
		title := ""
		if m := pageTitle.FindStringSubmatch(page); m != nil {
			title = strings.TrimSpace(html.UnescapeString(m[1]))
		}
		body := strings.Join(strings.Fields(html.UnescapeString(pageTags.ReplaceAllString(pageHead.ReplaceAllString(page, " "), " "))), " ")
		more := strings.TrimSpace(strings.TrimPrefix(body, title))
		switch {
		case title == "":
			page = body
		case more != "" && bareStatus.MatchString(title): // it says no more than the status
			page = title + ": " + more
		default:
			page = title
		}
	}
	return brief.Bytes(strings.Join(strings.Fields(page), " "), 400, "…")
}
