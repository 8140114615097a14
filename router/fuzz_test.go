package router

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

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
