package router_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"docent/router/openapi"
)

// A contract holds requests and responses against the OpenAPI document. What a test sends through its transport is
// checked without the test asking for it: the status is one that the document names for the operation, its headers
// and body are as described, and a request that was taken is one that the document allows.
type contract struct {
	doc      map[string]any
	compiler *jsonschema.Compiler
	mu       sync.Mutex
	schemas  map[string]*jsonschema.Schema
	seen     map[string]bool // "GET /path 200"
}

var theContract = sync.OnceValue(func() *contract {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi.JSON()))
	if err != nil {
		panic(err)
	}
	c := &contract{doc: doc.(map[string]any), compiler: jsonschema.NewCompiler(),
		schemas: map[string]*jsonschema.Schema{}, seen: map[string]bool{}}
	c.compiler.AssertFormat()
	if err := c.compiler.AddResource("openapi.json", doc); err != nil {
		panic(err)
	}
	return c
})

// at follows names, and references on the way, to an object of the document and where it stands there.
func (c *contract) at(pointer string, names ...string) (map[string]any, string) {
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

func (c *contract) schema(pointer string) (*jsonschema.Schema, error) {
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
func (c *contract) template(path string) (string, bool) {
	paths, _ := c.at("#", "paths")
	for template := range paths {
		have := strings.Split(path, "/")
		if before, ok := strings.CutSuffix(template, "{file}"); ok && strings.Count(before, "/") < len(have) {
			have = append(have[:strings.Count(before, "/")], "file") // it may have slashes
		}
		if slices.EqualFunc(strings.Split(template, "/"), have,
			func(t, h string) bool { return t == h || strings.HasPrefix(t, "{") && h != "" }) {
			return template, true
		}
	}
	return "", false
}

// check holds one exchange against the document. body is nil for a stream.
func (c *contract) check(req *http.Request, sent []byte, res *http.Response, body []byte) error {
	if res.Header.Get("X-Request-Id") == "" {
		return fmt.Errorf("no X-Request-Id")
	}
	template, ok := c.template(req.URL.EscapedPath())
	if !ok {
		if res.StatusCode != http.StatusNotFound {
			return fmt.Errorf("a path that the document does not know is answered %d", res.StatusCode)
		}
		return c.body("#/components/responses/NotFound/content/application~1json/schema", body)
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
				if err := c.body(in, sent); err != nil {
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
	return c.body(in, body)
}

func (c *contract) body(pointer string, body []byte) error {
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

// checked is a transport that fails the test when an exchange breaks the contract.
type checked struct {
	t    testing.TB
	base http.RoundTripper
}

func (c checked) RoundTrip(req *http.Request) (*http.Response, error) {
	var sent []byte
	if req.Body != nil && req.ContentLength > 0 && req.ContentLength < 4<<20 {
		sent, _ = io.ReadAll(req.Body)
		req.Body.Close()
		req.Body = io.NopCloser(bytes.NewReader(sent))
	}
	res, err := c.base.RoundTrip(req)
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
	}
	if err := theContract().check(req, sent, res, body); err != nil {
		c.t.Errorf("%s %s: %d: %v", req.Method, req.URL, res.StatusCode, err)
	}
	return res, nil
}

// TestMain asks, after a whole run, whether every operation of the document was seen to succeed: what no test calls
// is not known to be as described.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.list").Value.String() == "" &&
		flag.Lookup("test.fuzz").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" {
		for _, missing := range theContract().unseen() {
			fmt.Fprintln(os.Stderr, "no test has seen the success of", missing)
			code = 1
		}
	}
	os.Exit(code)
}

func (c *contract) unseen() []string {
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

// The harness itself must be able to fail.
func TestTheContractCanBeBroken(t *testing.T) {
	req := func(method, path, body string) *http.Request {
		r, _ := http.NewRequest(method, "http://x"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		return r
	}
	res := func(status int, header ...string) *http.Response {
		h := http.Header{"X-Request-Id": {"r"}}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: status, Header: h}
	}
	const missing = `{"error":"e","message":"e","code":"not_found","requestId":"r"}`
	for name, err := range map[string]error{
		"a status that is not named": theContract().check(req("GET", "/healthz", ""), nil, res(418), nil),
		"a header that is missing": theContract().check(req("POST", "/v2/agent/p/job", ""), nil,
			res(401, "Content-Type", "application/json"), []byte(strings.Replace(missing, "not_found", "unauthorized", 1))),
		"a code of another status": theContract().check(req("GET", "/v2/agent/p/jobs", ""), nil,
			res(403, "Content-Type", "application/json"), []byte(missing)),
		"details where none belong": theContract().check(req("GET", "/v2/agent/p/jobs", ""), nil,
			res(404, "Content-Type", "application/json"), []byte(strings.Replace(missing, `"code"`,
				`"details":[{"field":"f","message":"m"}],"code"`, 1))),
		"a body of another type": theContract().check(req("GET", "/healthz", ""), nil,
			res(200, "Content-Type", "text/plain"), []byte("ok")),
		"a field that is not named": theContract().check(req("GET", "/healthz", ""), nil,
			res(200, "Content-Type", "application/json"), []byte(`{"status":"ok","x":1}`)),
		"a path that is not named": theContract().check(req("GET", "/nope", ""), nil, res(200), nil),
		"a request that is not valid": theContract().check(req("POST", "/discovery/v1/page/d", ""), []byte(`{"path":""}`),
			res(200, "Content-Type", "application/json", "Access-Control-Allow-Origin", "*"),
			[]byte(`{"path":"p","content":"c"}`)),
		"a response without a request": theContract().check(req("GET", "/healthz", ""), nil,
			&http.Response{StatusCode: 200, Header: http.Header{}}, nil),
	} {
		if err == nil {
			t.Errorf("%s is not noticed", name)
		}
	}
	if err := theContract().check(req("GET", "/v2/agent/p/jobs", ""), nil, res(404, "Content-Type", "application/json"),
		[]byte(missing)); err != nil {
		t.Error(err)
	}
}

func decodeJSON(t testing.TB, r io.Reader) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.NewDecoder(r).Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
