package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"docent/agent"
	"docent/agent/codebase"
	"docent/api"
)

// codes is code in memory, and a pull request of it.
type codes struct {
	files  map[string]string
	pull   string
	opened []api.ProjectID
}

type codeTree struct {
	*memTree
	diff string
}

func (c codeTree) Log(_ context.Context, path string, most int) ([]api.Commit, error) {
	return []api.Commit{{Hash: strings.Repeat("a", 40), Subject: fmt.Sprintf("feat: %d of %s, key AKIAABCDEFGHIJKLMNOP", most, path), Author: "Ann <ann@example.com>",
		Time: time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)}}, nil
}

func (c codeTree) Between(_ context.Context, from, to string) (string, error) {
	if from == "none" {
		return "", fmt.Errorf("no commit %q: %w", from, api.ErrNotFound)
	}
	return c.diff, nil
}

func (c *codes) OpenCode(ctx context.Context, source api.Project) (*codebase.Code, error) {
	c.opened = append(c.opened, source.ID)
	return codebase.Open(ctx, codeTree{tree(c.files), c.pull}, source)
}

func (c *codes) PullDiff(_ context.Context, _ api.Project, number int) (string, error) {
	if number != 7 {
		return "", errors.New("there is no such pull request")
	}
	return c.pull, nil
}

func fileDiff(p, minus, plus string) string {
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@\n-%s\n+%s\n", p, minus, plus)
}

func TestAModelReadsCodeAndNothingThatIsLeftOut(t *testing.T) {
	const key = "AKIAABCDEFGHIJKLMNOP"
	c := &codes{
		files: map[string]string{
			"cmd/serve.go": "package main\n\nconst berths = 20 // key " + key + "\n", "cmd/.env": "BERTHS=5\n", "cmd/prod.env": "BERTHS=6\n",
			"build/out.go": "berths\n", ".gitignore": "build/\n", "legacy/old.go": "berths\n", "tls/server.key": "berths\n", "logo.png": "\x00",
			"keys.go": "var k = `-----BEGIN RSA PRIVATE KEY-----\nberths\n-----END RSA PRIVATE KEY-----`\n// berths\n",
		},
		pull: fileDiff("cmd/serve.go", "const berths = 12", "const berths = 20 // "+key) + fileDiff("cmd/.env", "BERTHS=4", "BERTHS=5") +
			fileDiff("build/out.go", "x", "berths") + fileDiff("docs/cli.md", "x", "y"),
	}
	code := func(name, path string, more ...any) agent.Reply {
		a := args{"path": path}
		for i := 0; i < len(more); i += 2 {
			a[more[i].(string)] = more[i+1]
		}
		return one(name, a)
	}
	j := newLoop(t, map[string]string{"guide.md": "# Guide\n\nThere are 12 berths.\n"},
		code("list_files", "code:api/"), code("read_file", "code:api/cmd/serve.go"), code("grep", "code:api", "pattern", "berths"),
		code("grep", "code:api/**/*.go", "pattern", "package"), code("git_log", "code:api/cmd", "limit", 3),
		code("git_diff", "code:api", "pull", 7), code("git_diff", "code:api/cmd", "from", "aaaaaaa"),
		read("code:api/cmd/.env"), read("code:api/build/out.go"), read("code:other/x.go"), code("git_diff", "code:api", "from", "none"),
		code("git_diff", "code:api", "pull", 8), code("write_file", "code:api/cmd/serve.go", "content", "x"), read("code:api/../x"),
		code("git_log", "code:api/cmd/.env"), code("git_log", "guide.md"),
		read("guide.md"), replace("guide.md", "12", "20"), finish, finish)
	j.opts.Code = c
	j.task.Project = api.Project{ID: "p", Sources: []api.Source{
		{Label: "api", Kind: api.SourceCode, Address: "/code", Exclude: []string{"legacy/"}}, {Label: "blog", Address: "/blog"}}}
	res := j.must()
	if got := content(t, res, "guide.md"); !strings.Contains(got, "20 berths") {
		t.Errorf("%q", got)
	}
	for n, want := range map[int]string{
		1: "code:api/cmd/serve.go (60)\ncode:api/keys.go (", 2: "     3\tconst berths = 20 // key [a secret is left out]",
		3: "2 lines in 2 files:\ncode:api/cmd/serve.go:3: const berths", 4: "code:api/cmd/serve.go:1: package main",
		5: "aaaaaaaaaaaa 2026-03-04 feat: 3 of cmd, key [a secret is left out] (Ann)\n", 6: "+const berths = 20 // [a secret is left out]\n", 7: "-const berths = 12",
		8: "is no file that is shown", 9: "is no file that is shown", 10: "There is no code “other”; there is code:api/.", 11: "git_log lists the commits",
		12: "there is no such pull request", 13: "is code, which is only read", 14: "path", 15: "is not shown",
		16: "does not show its earlier commits",
	} {
		if got := j.model.shown(n); !strings.Contains(got, want) {
			t.Errorf("at call %d the model was shown %s, not %q", n, got, want)
		}
	}
	all := ""
	for n := 1; n <= 16; n++ {
		all += j.model.shown(n)
	}
	for _, not := range []string{key, "BERTHS", "legacy", "server.key", "out.go (", "PRIVATE KEY"} {
		if n := strings.Index(all, not); n >= 0 {
			t.Errorf("%s was shown: %s", not, all[max(0, n-200):n+50])
		}
	}
	if len(c.opened) != 1 || c.opened[0] != "p@api" {
		t.Errorf("opened %q", c.opened)
	}
	told := fmt.Sprint(j.told)
	for _, want := range []string{"Listing code:api", "Reading code:api/cmd/serve.go", "Looking for “berths” in code:api", "Reading the history of code:api/cmd",
		"Reading the change of pull request 7 in code:api"} {
		if !strings.Contains(told, want) {
			t.Errorf("the log does not tell %q", want)
		}
	}
	if s := j.model.asked[0].System; !strings.Contains(s, "its paths begin with code:api/.") || strings.Contains(s, "@api") {
		t.Error(s)
	}
	// What was read is recorded, and is not read again when the run is taken up.
	if !strings.Contains(fmt.Sprint(j.steps[2].Before), "const berths = 20") {
		t.Error("the result is not recorded")
	}
	j.steps, c.opened, j.model.next = j.steps[:len(j.steps)-1], nil, len(j.steps)-1
	if again := j.must(); fmt.Sprint(again) != fmt.Sprint(res) || len(c.opened) != 0 {
		t.Errorf("another result after breaking off, or %q opened", c.opened)
	}
}

func TestToolsForHistoryAreOfferedWhereThereIsSome(t *testing.T) {
	j := newLoop(t, small(), finish)
	j.task.Project = api.Project{ID: "p", Sources: []api.Source{{Label: "blog", Address: "/blog"}}}
	j.opts.Code = &codes{}
	j.must()
	for _, tool := range j.model.asked[0].Tools {
		if strings.HasPrefix(tool.Name, "git_") {
			t.Errorf("%s is offered", tool.Name)
		}
	}
}

func TestALongDiffNamesItsFiles(t *testing.T) {
	c := &codes{files: map[string]string{"a.go": "x\n"}}
	for i := range 40 {
		c.pull += fileDiff(fmt.Sprintf("pkg/f%d.go", i), strings.Repeat("x", 1000), "y")
	}
	j := newLoop(t, small(), one("git_diff", args{"path": "code:api", "pull": 7}), one("git_diff", args{"path": "code:api/pkg/f39.go", "pull": 7}), finish)
	j.opts.Code = c
	j.task.Project = api.Project{ID: "p", Sources: []api.Source{{Label: "api", Kind: api.SourceCode, Address: "/code"}}}
	j.must()
	if got := j.model.shown(1); len(got) > 17_000 || !strings.Contains(got, "code:api/pkg/f39.go\n") || !strings.Contains(got, "name a path") {
		t.Errorf("%d bytes: %.300s", len(got), got)
	}
	if got := j.model.shown(2); !strings.HasPrefix(got, "diff --git a/pkg/f39.go") {
		t.Errorf("%.300s", got)
	}
}

// A model that reads pictures is shown the one that it asks for, also when the run is taken up again; others are told that
// it is left out. At most eight are shown at once, and none that is too large or of another kind.
func TestAModelLooksAtPictures(t *testing.T) {
	const png = "\x89PNG\x0D\x0A\x1A\x0A picture "
	files := map[string]string{"a.md": "# A\n\n![x](x.png)\n", "x.png": png, "large.png": png + strings.Repeat("x", 3_000_000), "film.mp4": "film"}
	var many []agent.Call
	for i := range 9 {
		files[fmt.Sprintf("%d.png", i)] = png + fmt.Sprint(i)
		many = append(many, call("read_file", args{"path": fmt.Sprintf("%d.png", i)}))
	}
	for _, sees := range []bool{true, false} {
		j := newLoop(t, files, read("x.png"), read("large.png"), read("film.mp4"), calls(many...), read("a.md"), replace("a.md", "![x]", "![A harbor]"),
			finish, finish)
		j.model.sees = sees
		j.must()
		shown := func(n int) (data []string, said string) {
			for _, turn := range j.model.asked[n].Turns {
				if turn.Picture != nil {
					data = append(data, turn.Picture.Media+" "+string(turn.Picture.Data))
				}
				said = turn.Text
			}
			return data, said
		}
		data, said := shown(1)
		if sees != (fmt.Sprint(data) == "[image/png "+png+"]") || sees == strings.Contains(said, "this model reads none") {
			t.Errorf("sees %v: %q, %s", sees, data, said)
		}
		for n := 2; n <= 3; n++ {
			if data, said := shown(n); len(data) > 1 || !strings.Contains(said, "left out") {
				t.Errorf("sees %v: %d shown, %s", sees, len(data), said)
			}
		}
		if data, _ := shown(4); sees && (len(data) != 8 || data[7] != "image/png "+png+"8") || !sees && len(data) > 0 {
			t.Errorf("sees %v: at once %q", sees, data)
		}
		if strings.Contains(fmt.Sprint(j.steps[4].Before), "picture 8") {
			t.Error("a picture is recorded whole")
		}
		before := len(j.model.asked)
		j.steps, j.model.next = j.steps[:1], 1
		j.must()
		if data, _ := shown(before); len(data) != len(map[bool]string{true: "x"}[sees]) {
			t.Errorf("sees %v, taken up again: %q", sees, data)
		}
	}
}
