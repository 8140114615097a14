// Package openapitest holds requests and responses against the description of the API, for tests.
package openapitest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"docent/api/openapi"
)

// A Contract holds requests and responses against the OpenAPI document. What a test sends through its transport is
// checked without the test asking for it: the status is one that the document names for the operation, its headers
// and body are as described, and a request that was taken is one that the document allows.
type Contract struct {
	doc      map[string]any
	compiler *jsonschema.Compiler
	mu       sync.Mutex
	schemas  map[string]*jsonschema.Schema
	seen     map[string]bool // "GET /path 200"
}

// Document is the contract that openapi.yaml is.
var Document = sync.OnceValue(func() *Contract {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi.JSON()))
	if err != nil {
		panic(err)
	}
	c := &Contract{doc: doc.(map[string]any), compiler: jsonschema.NewCompiler(),
		schemas: map[string]*jsonschema.Schema{}, seen: map[string]bool{}}
	c.compiler.AssertFormat()
	if err := c.compiler.AddResource("openapi.json", doc); err != nil {
		panic(err)
	}
	return c
})

// at follows names, and references on the way, to an object of the document and where it stands there.
func (c *Contract) at(pointer string, names ...string) (map[string]any, string) {
	var v any = c.doc
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "#/"), "/") {
		if pointer == "#" {
			break
		}
		m, _ := v.(map[string]any)
		v = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	for _, name := range names {
		m, _ := v.(map[string]any)
		if m == nil {
			return nil, ""
		}
		v = m[name]
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		if next, ok := v.(map[string]any); ok {
			if ref, ok := next["$ref"].(string); ok {
				v, pointer = c.at(ref)
			}
		}
	}
	m, _ := v.(map[string]any)
	return m, pointer
}

func (c *Contract) schema(pointer string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.schemas[pointer]; ok {
		return s, nil
	}
	s, err := c.compiler.Compile("openapi.json" + (&url.URL{Fragment: strings.TrimPrefix(pointer, "#")}).String())
	if err == nil {
		c.schemas[pointer] = s
	}
	return s, err
}

// template finds the path of the document that a request's path has the form of.
func (c *Contract) template(path string) (string, bool) {
	paths, _ := c.at("#", "paths")
	longer := ""
	for template := range paths {
		have := strings.Split(path, "/")
		same := func(t, h string) bool { return t == h || strings.HasPrefix(t, "{") && h != "" }
		if slices.EqualFunc(strings.Split(template, "/"), have, same) {
			return template, true
		}
		if before, ok := strings.CutSuffix(template, "{file}"); ok && strings.Count(before, "/") < len(have) {
			have = append(have[:strings.Count(before, "/")], "file") // it may have slashes
			if slices.EqualFunc(strings.Split(template, "/"), have, same) {
				longer = template
			}
		}
	}
	return longer, longer != ""
}

// Check holds one exchange against the document. body is nil for a stream.
func (c *Contract) Check(req *http.Request, sent []byte, res *http.Response, body []byte) error {
	if res.Header.Get("X-Request-Id") == "" {
		return fmt.Errorf("no X-Request-Id")
	}
	template, ok := c.template(req.URL.EscapedPath())
	if !ok {
		if res.StatusCode != http.StatusNotFound {
			return fmt.Errorf("a path that the document does not know is answered %d", res.StatusCode)
		}
		return c.Body("#/components/responses/NotFound/content/application~1json/schema", body)
	}
	method := strings.ToLower(req.Method)
	operation, at := c.at("#", "paths", template, method)
	if operation == nil {
		if res.StatusCode != http.StatusMethodNotAllowed {
			return fmt.Errorf("a method that the document does not know for %s is answered %d", template, res.StatusCode)
		}
		return nil
	}
	status := fmt.Sprint(res.StatusCode)
	response, where := c.at(at, "responses", status)
	if response == nil {
		return fmt.Errorf("status %s is not in the document for %s %s", status, req.Method, template)
	}
	c.mu.Lock()
	c.seen[req.Method+" "+template+" "+status] = true
	c.mu.Unlock()

	headers, _ := response["headers"].(map[string]any)
	for name := range headers {
		h, in := c.at(where, "headers", name)
		v := res.Header.Get(name)
		if v == "" {
			if h["required"] == true {
				return fmt.Errorf("no header %s", name)
			}
			continue
		}
		s, err := c.schema(in + "/schema")
		if err != nil {
			return err
		}
		if err := s.Validate(v); err != nil {
			return fmt.Errorf("header %s: %q: %w", name, v, err)
		}
	}
	if res.StatusCode < 400 && len(sent) > 0 {
		kind, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type"))
		if strings.HasSuffix(kind, "json") {
			if _, in := c.at(at, "requestBody", "content", "application/json", "schema"); in != "" {
				if err := c.Body(in, sent); err != nil {
					return fmt.Errorf("a request was taken that the document does not allow: %w", err)
				}
			}
		}
	}
	content, _ := response["content"].(map[string]any)
	if len(content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("a body where the document has none: %.100q", body)
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil || content[kind] == nil {
		return fmt.Errorf("content type %q is not in the document", res.Header.Get("Content-Type"))
	}
	if kind != "application/json" || req.Method == http.MethodHead {
		return nil
	}
	_, in := c.at(where, "content", kind, "schema")
	return c.Body(in, body)
}

// Body holds a body against the schema that stands at a place of the document.
func (c *Contract) Body(pointer string, body []byte) error {
	s, err := c.schema(pointer)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the body is not JSON: %w: %.200q", err, body)
	}
	if err := s.Validate(v); err != nil {
		return fmt.Errorf("%.300s: %w", body, err)
	}
	return nil
}

// A Checked transport fails the test when an exchange breaks the contract.
type Checked struct {
	T    testing.TB
	Base http.RoundTripper
}

func (c Checked) RoundTrip(req *http.Request) (*http.Response, error) {
	var sent []byte
	if req.Body != nil && req.ContentLength > 0 && req.ContentLength < 4<<20 {
		sent, _ = io.ReadAll(req.Body)
		req.Body.Close()
		req.Body = io.NopCloser(bytes.NewReader(sent))
	}
	res, err := c.Base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	var body []byte
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		body, err = io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			return nil, err
		}
		res.Body = io.NopCloser(bytes.NewReader(body))
		if res.Header.Get("Content-Encoding") == "gzip" && req.Method != http.MethodHead {
			z, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				return nil, err
			}
			if body, err = io.ReadAll(z); err != nil {
				return nil, err
			}
		}
	}
	if err := Document().Check(req, sent, res, body); err != nil {
		c.T.Errorf("%s %s: %d: %v", req.Method, req.URL, res.StatusCode, err)
	}
	return res, nil
}

// Unseen are the operations that nobody was seen to succeed with.
func (c *Contract) Unseen() []string {
	var missing []string
	paths, _ := c.at("#", "paths")
	for path := range paths {
		for _, method := range []string{"get", "head", "post", "options"} {
			op, at := c.at("#", "paths", path, method)
			if op == nil {
				continue
			}
			responses, _ := c.at(at, "responses")
			ok := false
			for status := range responses {
				ok = ok || status < "400" && c.seen[strings.ToUpper(method)+" "+path+" "+status]
			}
			if !ok {
				missing = append(missing, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// Events holds a stream against the schema of its events, which stands at a place of the document, and counts them.
func (c *Contract) Events(schema, text string) (events int, err error) {
	name := ""
	for line := range strings.SplitSeq(text, "\n") {
		kind, rest, _ := strings.Cut(line, ":")
		rest = strings.TrimPrefix(rest, " ")
		of := schema
		switch {
		case line == "":
			name = ""
			continue
		case kind == "", kind == "id", kind == "retry", rest == "[DONE]":
			continue
		case kind == "event":
			name = rest
			continue
		case kind == "data" && name != "" && schema != "#/components/schemas/ResponseEvent": // whose data name their kind themselves
			of += "/properties/" + name
		case kind == "data":
		case schema == "#/components/schemas/DataStreamParts":
			of += "/properties/" + kind
		default:
			return events, fmt.Errorf("a line of no form: %s", line)
		}
		if err := c.Body(of, []byte(rest)); err != nil {
			return events, fmt.Errorf("%s: %w", line, err)
		}
		events++
	}
	return events, nil
}
