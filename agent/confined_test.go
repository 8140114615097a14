package agent

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"docent/api"
	"docent/markup"
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
	located
}

func (forgetfulOp) todo() string { return "forget" }

func (o *forgetfulOp) run(r *run) error {
	if o.remove != "" {
		return r.ws.remove(o.remove)
	}
	if o.create != "" {
		return r.ws.write(o.create, []byte("# New\n"))
	}
	p, err := r.site.page(o.edit)
	if err != nil {
		return err
	}
	return r.edit(p, []markup.Edit{{Span: markup.Span{Start: o.at, End: o.at + 1}, New: []byte("X")}}, "edits", 1)
}

func TestAnOperationThatForgetsItsScopeIsRefused(t *testing.T) {
	tree := plainTree{"a.md": "# Head\n\nText `code`.\n", "b.md": "# B\n", "dir/c.md": "# C\n"}
	page := scope{in: [][]place{{{"a.md", anyPlace}}}}
	in := func(kind string) scope { return scope{in: page.in, parts: [][]part{{{kind: kind}}}} }
	for _, c := range []struct {
		name string
		op   forgetfulOp
		ok   bool
	}{
		{"in its page", forgetfulOp{edit: "a.md", at: 9, located: located{page}}, true},
		{"in another page", forgetfulOp{edit: "b.md", at: 2, located: located{page}}, false},
		{"in its folder", forgetfulOp{edit: "dir/c.md", at: 2, located: located{scope{in: [][]place{{{"dir", folderPlace}}}}}}, true},
		{"beside its folder", forgetfulOp{edit: "a.md", at: 9, located: located{scope{in: [][]place{{{"dir", folderPlace}}}}}}, false},
		{"in a heading", forgetfulOp{edit: "a.md", at: 3, located: located{in("headings")}}, true},
		{"beside the headings", forgetfulOp{edit: "a.md", at: 9, located: located{in("headings")}}, false},
		{"in code", forgetfulOp{edit: "a.md", at: 15, located: located{in("inline code")}}, true},
		{"beside the code", forgetfulOp{edit: "a.md", at: 3, located: located{in("inline code")}}, false},
		{"in a part that the page has not", forgetfulOp{edit: "a.md", at: 3, located: located{in("tables")}}, false},
		{"deletes another page", forgetfulOp{remove: "b.md", located: located{page}}, false},
		{"deletes its page", forgetfulOp{remove: "a.md", located: located{page}}, false},
		{"makes a page", forgetfulOp{create: "d.md", located: located{page}}, false},
		{"is told nothing of where", forgetfulOp{edit: "b.md", at: 2}, true},
	} {
		ws, err := openWorkspace(t.Context(), tree, "", "", workspaceLimits{MaxFile: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		r, err := newRun(t.Context(), ws, api.Project{}, nil, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.confined(&c.op); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
