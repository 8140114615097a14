package edit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"docent/agent/workspace"
	"docent/api"
	"docent/site/markup"
)

type plainTree map[string]string

func (plainTree) Commit() string { return "c" }

func (p plainTree) Files(context.Context) (out []api.File, _ error) {
	for f, c := range p {
		out = append(out, api.File{Path: f, Hash: fmt.Sprintf("%x", sha256.Sum256([]byte(c))), Size: int64(len(c))})
	}
	return out, nil
}

func (p plainTree) Read(_ context.Context, f string) ([]byte, error) { return []byte(p[f]), nil }

// A forgetfulOp edits, deletes or makes files whatever its scope is.
type forgetfulOp struct {
	edit, remove, create string
	at                   int
	Located
}

func (forgetfulOp) Todo() string { return "forget" }

func (o *forgetfulOp) Run(r *Run) error {
	if o.remove != "" {
		return r.Files.Remove(o.remove)
	}
	if o.create != "" {
		return r.Files.Write(o.create, []byte("# New\n"))
	}
	p, err := r.Site.Page(o.edit)
	if err != nil {
		return err
	}
	return r.edit(p, []markup.Edit{{Span: markup.Span{Start: o.at, End: o.at + 1}, New: []byte("X")}}, "edits", 1)
}

func TestAnOperationThatForgetsItsScopeIsRefused(t *testing.T) {
	tree := plainTree{"a.md": "# Head\n\nText `code`.\n", "b.md": "# B\n", "dir/c.md": "# C\n"}
	page := Scope{In: [][]Place{{{"a.md", AnyPlace}}}}
	in := func(kind string) Scope { return Scope{In: page.In, Parts: [][]Part{{{Kind: kind}}}} }
	for _, c := range []struct {
		name string
		op   forgetfulOp
		ok   bool
	}{
		{"in its page", forgetfulOp{edit: "a.md", at: 9, Located: Located{page}}, true},
		{"in another page", forgetfulOp{edit: "b.md", at: 2, Located: Located{page}}, false},
		{"in its folder", forgetfulOp{edit: "dir/c.md", at: 2,
			Located: Located{Scope{In: [][]Place{{{"dir", FolderPlace}}}}}}, true},
		{"beside its folder",
			forgetfulOp{edit: "a.md", at: 9, Located: Located{Scope{In: [][]Place{{{"dir", FolderPlace}}}}}}, false},
		{"in a heading", forgetfulOp{edit: "a.md", at: 3, Located: Located{in("headings")}}, true},
		{"beside the headings", forgetfulOp{edit: "a.md", at: 9, Located: Located{in("headings")}}, false},
		{"in code", forgetfulOp{edit: "a.md", at: 15, Located: Located{in("inline code")}}, true},
		{"beside the code", forgetfulOp{edit: "a.md", at: 3, Located: Located{in("inline code")}}, false},
		{"in a part that the page has not", forgetfulOp{edit: "a.md", at: 3, Located: Located{in("tables")}}, false},
		{"deletes another page", forgetfulOp{remove: "b.md", Located: Located{page}}, false},
		{"deletes its page", forgetfulOp{remove: "a.md", Located: Located{page}}, false},
		{"makes a page", forgetfulOp{create: "d.md", Located: Located{page}}, false},
		{"is told nothing of where", forgetfulOp{edit: "b.md", at: 2}, true},
	} {
		ws, err := workspace.Open(t.Context(), tree, "", "", workspace.Limits{MaxFile: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewRun(t.Context(), ws, api.Project{}, nil, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Do(&c.op); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
