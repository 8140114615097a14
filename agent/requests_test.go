package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"docent/agent"
	"docent/api"
	"docent/site"
)

// A collected request is a public one in its author's words, with the commit that carried it out.
type collected struct {
	ID, Repo, Commit, Docs, File, Request, Site string
}

// TestRequestsInPeoplesWords carries out the requests of a folder that DOCENT_REQUESTS names: NAME.json lists them, and
// DOCENT_REPOSITORIES has their repositories. docs/measurements says what they are and how they were collected. They are
// no part of the repository, so nothing is asked of them where they are not there.
func TestRequestsInPeoplesWords(t *testing.T) {
	folder, repositories := os.Getenv("DOCENT_REQUESTS"), os.Getenv("DOCENT_REPOSITORIES")
	if folder == "" || repositories == "" {
		t.Skip("DOCENT_REQUESTS and DOCENT_REPOSITORIES name no requests")
	}
	lists, err := filepath.Glob(folder)
	if err != nil || len(lists) == 0 {
		t.Fatalf("%s: %v", folder, err)
	}
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		var requests []collected
		if err := json.Unmarshal(b, &requests); err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for _, r := range requests {
			became, said := r.carryOut(t, filepath.Join(repositories, r.Repo, "repo"))
			count[became]++
			t.Logf("%s %s %s %s\n%s\n=> %s", became, r.ID, r.Repo, r.Commit[:10], r.Request, said)
		}
		t.Logf("%s: %d requests: %v", filepath.Base(list), len(requests), count)
	}
}

func (r collected) carryOut(t *testing.T, repository string) (became, said string) {
	before, after := gitPages(t, repository, r.Commit+"^"), gitPages(t, repository, r.Commit)
	if before[r.File] == "" && r.File != "" {
		return "missing", ""
	}
	tree := tree(before)
	res, err := editor.Edit(context.Background(), agent.Task{Project: api.Project{ID: "p", SiteURL: r.Site}, Job: "job_1", Prompt: r.Request,
		Tree: tree, DocsDir: r.Docs, Now: time.Unix(0, 0)}, nil)
	if err != nil {
		t.Fatalf("%s: %v", r.ID, err)
	}
	if len(res.Changes) == 0 {
		return "asked", res.Message
	}
	now := map[string]string{}
	maps.Copy(now, before)
	for _, c := range res.Changes {
		now[c.Path] = string(c.Content)
	}
	became = "right"
	for f := range now {
		if strings.TrimRight(strip(now[f]), "\n") != strings.TrimRight(strip(after[f]), "\n") && strings.HasPrefix(f, r.Docs) {
			became = "WRONG"
			at := 0
			for at < min(len(now[f]), len(after[f])) && now[f][at] == after[f][at] {
				at++
			}
			t.Logf("%s: %s differs at byte %d: %q, wanted %q", r.ID, f, at, now[f][at:min(at+60, len(now[f]))],
				after[f][at:min(at+60, len(after[f]))])
		}
	}
	return became, res.Message + "\n" + difference(before, now) + "wanted:\n" + difference(before, after)
}

// gitPages reads the pages of a repository at a commit, with what configures their site.
func gitPages(t *testing.T, repository, commit string) map[string]string {
	t.Helper()
	git := func(stdin string, args ...string) []byte {
		cmd := exec.Command("git", append([]string{"-C", repository}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v of %s: %v", args, repository, err)
		}
		return out
	}
	files := map[string]string{}
	if exec.Command("git", "-C", repository, "cat-file", "-e", commit).Run() != nil {
		return files
	}
	for line := range strings.Lines(string(git("", "ls-tree", "-r", commit))) {
		object, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if fields := strings.Fields(object); len(fields) == 3 && fields[1] == "blob" && (site.IsPage(name) || site.Concerns(name)) {
			files[name] = fields[2]
		}
	}
	var names []string
	var asked strings.Builder
	for name, blob := range files {
		names = append(names, name)
		asked.WriteString(blob + "\n")
	}
	out := git(asked.String(), "cat-file", "--batch")
	for _, name := range names {
		head, rest, _ := bytes.Cut(out, []byte("\n"))
		fields := strings.Fields(string(head))
		if len(fields) != 3 { // a snapshot of a repository may lack old objects
			delete(files, name)
			out = rest
			continue
		}
		size, err := strconv.Atoi(fields[2])
		if err != nil {
			t.Fatal(err)
		}
		files[name], out = string(rest[:size]), rest[size+1:]
	}
	return files
}
