package router

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/uptrace/bunrouter"

	"docent/api"
	"docent/forge"
	"docent/stream"
)

// FuzzBodies feeds the decoders of all operations: none may fail in another way than with a list of problems, and what
// the cursor reads must be what the standard library reads.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		`{"prompt":"p","asDraft":true,"model":null}`, `{"prompt":" \u00e9\ud83d\ude00\ud800 "}`, `{"query":"q","pageSize":1e1,"scoreThreshold":0.5}`,
		`{"path":"a","groups":["x","y"]}`, "null", "[]", "{", ` { "a" : [ 1 , { } , [ ] , "x\"]" ] , "b":-0.5e+3}`,
		`{"fp":"a","id":"c","threadId":null,"filter":{"groups":["g"]},"context":[{"type":"code","value":"v"}],"messages":[{"role":"system","content":"s"},{"role":"user","id":"m","parts":[{"type":"text","text":"q"},{"type":"x","y":[[]]}]}]}`,
		`{"fp":"a","messages":[{"role":"user","content":[{"type":"text","text":"q"}]}]}`, `{"a":"\\","b":"\"","\u0061":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		root, err := parse(raw)
		var syntax *syntaxError
		if err != nil {
			if !errors.As(err, &syntax) || syntax.reason == "" {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		var want any
		if err := json.Unmarshal(raw, &want); err != nil {
			if strings.Contains(err.Error(), "cannot unmarshal number") {
				return // a number that no float64 holds; it is JSON
			}
			t.Fatalf("%q was taken, and is no JSON: %v", raw, err)
		}
		if got := tree(root); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q was read as %#v, and is %#v", raw, got, want)
		}
		for name, decode := range map[string]func(node) error{
			"create":    func(n node) error { _, err := decodePrompt(n, true); return err },
			"follow-up": func(n node) error { _, err := decodePrompt(n, false); return err },
			"session":   func(n node) error { _, err := decodeSession(n); return err },
			"v1":        func(n node) error { _, err := decodeQuestion(n, stream.DataStream); return err },
			"v2":        func(n node) error { _, err := decodeQuestion(n, stream.UIMessages); return err },
			"search":    func(n node) error { _, err := decodeSearch(n); return err },
			"page":      func(n node) error { _, err := decodePage(n); return err },
			"feedback":  func(n node) error { _, err := decodeVerdict(n); return err },
		} {
			err := decode(root)
			if err == nil {
				continue
			}
			var invalid *api.InvalidError
			if !errors.As(err, &invalid) || len(invalid.Problems) == 0 || len(invalid.Problems) > maxProblems {
				t.Fatalf("%s: %q: %v", name, raw, err)
			}
			for _, p := range invalid.Problems {
				if p.Field == "" || p.Message == "" {
					t.Fatalf("%s: %q: a problem without a name or words: %+v", name, raw, p)
				}
			}
		}
	})
}

// tree is what a node stands for, as the standard library would say it.
func tree(n node) any {
	switch n.is() {
	case '{':
		m := map[string]any{}
		for name, v := range n.members {
			m[name] = tree(v)
		}
		return m
	case '[':
		list := []any{}
		for _, v := range n.elements {
			list = append(list, tree(v))
		}
		return list
	case '"':
		return n.text()
	}
	var v any
	if err := json.Unmarshal(n, &v); err != nil {
		return err
	}
	return v
}

// FuzzDiffs feeds what is shown of a pull request: whatever a repository holds makes a page, and each line of a hunk is on it.
func FuzzDiffs(f *testing.F) {
	f.Add("@@ -1,2 +1,3 @@ x\n a\n-b\n+c\n\\ No newline at end of file\n")
	f.Add("@@ -0,0 +1 @@\r\n+\r\n")
	f.Add("no hunk\n@@\n@@ -x +y @@\n ")
	f.Fuzz(func(t *testing.T, text string) {
		lines := 0
		for _, h := range hunks(text) {
			lines += 1 + len(h.Lines)
		}
		if most := strings.Count(text, "\n") + 1; lines > most {
			t.Fatalf("%d lines were made of %d", lines, most)
		}
		if q := forge.QuotePath(text); strings.ContainsAny(q, "\n\r\x00") {
			t.Fatalf("%q was quoted as %q", text, q)
		}
	})
}

// FuzzPushes feeds what a code host says of a push: what is taken names a branch, a commit and a repository, and what is
// refused is refused with a list of problems.
func FuzzPushes(f *testing.F) {
	f.Add([]byte(`{"ref":"refs/heads/main","after":"0123456789abcdef0123456789abcdef01234567","repository":{"full_name":"a/b","default_branch":"main"}}`))
	f.Add([]byte(`{"ref":"refs/heads/x","after":"0123456789abcdef0123456789abcdef01234567","project":{"path_with_namespace":"a/b/c","default_branch":"main"}}`))
	f.Add([]byte(`{"ref":"refs/tags/v1"}`))
	f.Add([]byte(`[1]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		push, ok, err := readPush(http.Header{"X-Github-Event": {"push"}}, raw)
		var syntax *syntaxError
		var invalid *api.InvalidError
		switch {
		case err == nil && ok:
			if !api.ValidBranch(push.Branch) || !commitHash(push.Commit) || push.Repository == "" || control(push.Repository, false) {
				t.Fatalf("%q was taken as %+v", raw, push)
			}
		case err != nil && !errors.As(err, &syntax) && (!errors.As(err, &invalid) || len(invalid.Problems) == 0):
			t.Fatalf("%q: %v", raw, err)
		}
	})
}

// FuzzDoor holds the door's reading of requests against net/http's: what it takes for one plain request is one, with nothing
// left over, that a server answers and keeps the connection for; and nothing less is.
func FuzzDoor(f *testing.F) {
	const head = "POST /v1/search/d HTTP/1.1\r\nHost: d\r\nContent-Length: 2\r\n"
	for _, seed := range []string{
		head + "\r\n{}", head + "Connection: keep-alive\r\nX-Request-Id: a\r\n\r\n{}", head + "X: \t a,\tb \r\n\r\n{}",
		"POST /discovery/v2/assistant/a.b/message HTTP/1.1\r\nhost: [::1]:80\r\n\r\n", head + "Content-Length: 2\r\n\r\n{}", head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		head + "Connection: close\r\n\r\n{}", head + "Host: e\r\n\r\n{}", head + "A b: c\r\n\r\n{}", head + "\n\r\n{}", head + " a\r\n\r\n{}", head + ":\r\n\r\n{}",
		"POST /v1/page/%2e HTTP/1.1\r\nHost:\r\nContent-Length: 00\r\n\r\n", "POST /v1/feedback/.. HTTP/1.1\r\nHost: d:x:y\r\n\r\n", head + "Upgrade: h2c\r\nTrailer: x\r\nExpect: 1\r\n\r\n{}",
	} {
		f.Add([]byte(seed))
	}
	s := &Server{Deps: Deps{Bounds: Bounds{}.withDefaults()}}
	s.routes = s.table()
	d := newDoor(s)
	f.Fuzz(func(t *testing.T, b []byte) {
		q, ok := d.plain(b)
		if !ok {
			return
		}
		for _, n := range []int{len(b) - 1, len(b) / 2} {
			if _, ok := d.plain(b[:n]); ok {
				t.Errorf("%q is whole, and so are its first %d bytes", b, n)
			}
		}
		if _, ok := d.plain(append(bytes.Clone(b), 'P')); ok {
			t.Errorf("%q is whole, and so it is with another byte", b)
		}
		in := bufio.NewReader(bytes.NewReader(b))
		req, err := http.ReadRequest(in)
		if err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil || in.Buffered() > 0 {
			t.Errorf("%q: its body: %v, and %d bytes are left", b, err, in.Buffered())
		}
		path := req.URL.EscapedPath()
		if req.Method != http.MethodPost || !req.ProtoAtLeast(1, 1) || req.Close || len(req.TransferEncoding) > 0 || !matches(q.target.pattern, path) || bunrouter.CleanPath(path) != path ||
			string(q.id) != req.Header.Get("X-Request-Id") {
			t.Errorf("%q was read as %+v for %s with the id %q", b, req, q.target.pattern, q.id)
		}
		// What a server demands beyond that.
		client, server := net.Pipe()
		served := 0
		web := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ })}
		go web.Serve(&one{conn: server})
		defer web.Close()
		go client.Write(append(bytes.Clone(b), "GET / HTTP/1.1\r\nHost: d\r\nConnection: close\r\n\r\n"...))
		answers := bufio.NewReader(client)
		for range 2 {
			if res, err := http.ReadResponse(answers, nil); err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("%q: the server says %v, %v", b, res, err)
			}
		}
		if _, err := answers.ReadByte(); err != io.EOF || served != 2 {
			t.Errorf("%q: %d requests, and then %v", b, served, err)
		}
	})
}

// one is a listener that has one connection.
type one struct{ conn net.Conn }

func (o *one) Accept() (net.Conn, error) {
	if o.conn == nil {
		return nil, net.ErrClosed
	}
	c := o.conn
	o.conn = nil
	return c, nil
}
func (o *one) Close() error   { return nil }
func (o *one) Addr() net.Addr { return &net.TCPAddr{} }
