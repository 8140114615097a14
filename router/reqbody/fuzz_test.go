package reqbody

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"docent/api"
	"docent/api/stream"
)

// FuzzBodies feeds the decoders of all operations: none may fail in another way than with a list of problems, and what
// is read must be what the standard library reads.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		`{"prompt":"p","asDraft":true,"model":null}`, `{"prompt":" \u00e9\ud83d\ude00\ud800 "}`,
		`{"query":"q","pageSize":1e1,"scoreThreshold":0.5}`,
		`{"path":"a","groups":["x","y"]}`, "null", "[]", "{", ` { "a" : [ 1 , { } , [ ] , "x\"]" ] , "b":-0.5e+3}`,
		`{"fp":"a","id":"c","threadId":null,"filter":{"groups":["g"]},"context":[{"type":"code","value":"v"}],"messages":[{"role":"system","content":"s"},{"role":"user","id":"m","parts":[{"type":"text","text":"q"},{"type":"x","y":[[]]}]}]}`,
		`{"fp":"a","messages":[{"role":"user","content":[{"type":"text","text":"q"}]}]}`, `{"a":"\\","b":"\"","\u0061":1}`,
		`{"model":"m","previous_response_id":"resp_t.m","instructions":"i","input":[{"type":"reasoning","id":"r"},{"role":"user","content":[{"type":"input_text","text":"q"}]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		root, err := parse(raw)
		var syntax *SyntaxError
		if err != nil {
			if !errors.As(err, &syntax) || syntax.Reason == "" {
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
		for name, decode := range map[string]func([]byte) error{
			"contact":    func(n []byte) error { _, err := DecodeContact(n); return err },
			"create":     func(n []byte) error { _, err := DecodePrompt(n, true); return err },
			"follow-up":  func(n []byte) error { _, err := DecodePrompt(n, false); return err },
			"session":    func(n []byte) error { _, err := DecodeSession(n); return err },
			"v1":         func(n []byte) error { _, err := DecodeQuestion(n, stream.DataStream); return err },
			"v2":         func(n []byte) error { _, err := DecodeQuestion(n, stream.UIMessages); return err },
			"search":     func(n []byte) error { _, err := DecodeSearch(n); return err },
			"page":       func(n []byte) error { _, err := DecodePage(n); return err },
			"feedback":   func(n []byte) error { _, err := DecodeVerdict(n); return err },
			"completion": func(n []byte) error { _, err := DecodeCompletion(n, stream.Completions); return err },
			"response":   func(n []byte) error { _, err := DecodeCompletion(n, stream.Responses); return err },
			"run":        func(n []byte) error { _, err := DecodeRun(n); return err },
		} {
			err := decode(raw)
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

// tree is what a value stands for, as the standard library would say it.
func tree(n value) any {
	switch is(n) {
	case '{':
		m := map[string]any{}
		for _, f := range members(n) {
			m[string(f.name)] = tree(f.value)
		}
		return m
	case '[':
		list := []any{}
		for _, v := range elements(n) {
			list = append(list, tree(v))
		}
		return list
	case '"':
		return word(n)
	}
	var v any
	if err := json.Unmarshal(n, &v); err != nil {
		return err
	}
	return v
}

// FuzzPushes feeds what a code host says of a push: what is taken names a branch, a commit and a repository, and what
// is refused is refused with a list of problems.
func FuzzPushes(f *testing.F) {
	f.Add([]byte(`{"ref":"refs/heads/main","after":"0123456789abcdef0123456789abcdef01234567","repository":{"full_name":"a/b","default_branch":"main"}}`))
	f.Add([]byte(`{"ref":"refs/heads/x","after":"0123456789abcdef0123456789abcdef01234567","project":{"path_with_namespace":"a/b/c","default_branch":"main"}}`))
	f.Add([]byte(`{"ref":"refs/tags/v1"}`))
	f.Add([]byte(`[1]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		push, ok, err := DecodePush(http.Header{"X-Github-Event": {"push"}}, raw)
		var syntax *SyntaxError
		var invalid *api.InvalidError
		switch {
		case err == nil && ok:
			if !api.ValidBranch(push.Branch) || !commitHash(push.Commit) || push.Repository == "" ||
				control(push.Repository, false) {
				t.Fatalf("%q was taken as %+v", raw, push)
			}
		case err != nil && !errors.As(err, &syntax) && (!errors.As(err, &invalid) || len(invalid.Problems) == 0):
			t.Fatalf("%q: %v", raw, err)
		}
	})
}
