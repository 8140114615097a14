package affected

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A past is one commit of a public repository that changed code and documentation.
type past struct{ half, repo, commit, docs string }

func history(t *testing.T) (dir string, list []past) {
	t.Helper()
	if dir = os.Getenv("DOCENT_HISTORY"); dir == "" {
		t.Skip("DOCENT_HISTORY names no folder of repositories: scripts/fetch-history makes one")
	}
	data, err := os.ReadFile("testdata/history.txt")
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(data)) {
		if f := strings.Fields(l); len(f) == 4 && f[0] != "#" {
			list = append(list, past{f[0], f[1], f[2], f[3]})
		}
	}
	return dir, list
}

// repo is a repository in the folder: OWNER+NAME, OWNER+NAME/repo or OWNER+NAME.git.
type repo struct {
	t   *testing.T
	dir string
}

func openRepo(t *testing.T, dir, name string) repo {
	t.Helper()
	base := filepath.Join(dir, strings.ReplaceAll(name, "/", "+"))
	for _, d := range []string{base + "/repo", base + ".git", base} {
		if _, err := os.Stat(d); err == nil {
			return repo{t, d}
		}
	}
	t.Fatalf("there is no %s", base)
	return repo{}
}

func (r repo) git(args ...string) string {
	r.t.Helper()
	out, err := exec.CommandContext(r.t.Context(), "git", append([]string{"-C", r.dir}, args...)...).Output()
	if err != nil {
		r.t.Fatalf("git %q in %s: %v", args, r.dir, err)
	}
	return string(out)
}

// docsAt reads the documentation as it was at a commit.
func (r repo) docsAt(commit, docs string) Docs {
	r.t.Helper()
	var files []string
	var asked bytes.Buffer
	for _, l := range strings.Split(r.git("ls-tree", "-r", "-z", commit, "--", docs+"/"), "\x00") {
		about, file, ok := strings.Cut(l, "\t")
		if kind := strings.Fields(about); ok && kind[1] == "blob" && regexp.MustCompile(`\.mdx?$`).MatchString(file) && kind[0] != "120000" {
			files = append(files, file)
			fmt.Fprintln(&asked, kind[2])
		}
	}
	cmd := exec.CommandContext(r.t.Context(), "git", "-C", r.dir, "cat-file", "--batch")
	cmd.Stdin = &asked
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatal(err)
	}
	texts := map[string][]byte{}
	in := bufio.NewReader(bytes.NewReader(out))
	for _, file := range files {
		head, err := in.ReadString('\n')
		if err != nil {
			r.t.Fatal(err)
		}
		var hash, kind string
		var size int
		if _, err := fmt.Sscan(head, &hash, &kind, &size); err != nil {
			r.t.Fatal(err)
		}
		text := make([]byte, size+1)
		if _, err := io.ReadFull(in, text); err != nil {
			r.t.Fatal(err)
		}
		texts[file] = text[:size]
	}
	return Docs{Files: files, Read: func(p string) ([]byte, error) { return texts[p], nil }}
}

// The pages that a commit really changed are looked for among those that are named for its code alone: the first MOST, or as many as by default.
func TestHistory(t *testing.T) {
	dir, list := history(t)
	type sum struct{ commits, hit, all, pages, first, named, wrong, outdated, outdatedWrong, quiet int }
	sums := map[string]*sum{}
	for _, c := range list {
		r := openRepo(t, dir, c.repo)
		parent := c.commit + "^1"
		changed := strings.Fields(r.git("diff", "--name-only", "--no-renames", "--diff-filter=M", parent, c.commit, "--", c.docs+"/*.md", c.docs+"/*.mdx"))
		x, err := NewIndex(t.Context(), r.docsAt(parent, c.docs))
		if err != nil {
			t.Fatal(err)
		}
		changed = slices.DeleteFunc(changed, func(p string) bool {
			i := slices.IndexFunc(x.pages, func(q page) bool { return q.path == p })
			return i < 0 || x.pages[i].generated
		})
		code := r.git("diff", "-M", parent, c.commit, "--", ".", ":(exclude)"+c.docs, ":(exclude)*.md")
		o := Options{Docs: c.docs}
		o.Most, _ = strconv.Atoi(os.Getenv("MOST"))
		if os.Getenv("MESSAGE") != "" {
			o.Message = r.git("log", "-1", "--format=%B", c.commit)
		}
		o.Alive = func(name string) bool {
			out, _ := exec.CommandContext(t.Context(), "git", "-C", r.dir, "grep", "-l", "-F", "-w", "-e", name, c.commit, "--", ".", ":(exclude)"+c.docs).Output()
			for l := range strings.Lines(string(out)) {
				if _, p, _ := strings.Cut(strings.TrimSpace(l), ":"); IsCode(p) {
					return true
				}
			}
			return false
		}
		res := x.Find(Parse(code), o)
		for _, half := range []string{c.half, c.half + " " + c.repo} {
			s := sums[half]
			if s == nil {
				s = &sum{}
				sums[half] = s
			}
			s.commits++
			s.pages += len(changed)
			got := 0
			for i, f := range res.Findings {
				right := slices.Contains(changed, f.Page)
				if right {
					got++
				}
				if right && i == 0 {
					s.first++
				}
				if f.Level == Outdated {
					s.outdated++
					if !right {
						s.outdatedWrong++
					}
				}
				s.named++
				if !right {
					s.wrong++
				}
			}
			s.hit += got
			if len(res.Findings) == 0 {
				s.quiet++
			}
			if got == len(changed) {
				s.all++
			}
		}
		if os.Getenv("DETAIL") != "" {
			var names []string
			for _, f := range res.Findings {
				mark := " "
				if slices.Contains(changed, f.Page) {
					mark = "*"
				}
				names = append(names, fmt.Sprintf("%s%s %.1f %s", mark, strings.TrimPrefix(f.Page, c.docs+"/"), f.Score, f.Level))
			}
			t.Logf("%s %.10s %s\n  want %v\n  got  %s", c.repo, c.commit, strings.TrimSpace(r.git("log", "-1", "--format=%s", c.commit)), changed, strings.Join(names, "\n       "))
		}
	}
	for _, k := range slices.Sorted(func(yield func(string) bool) {
		for k := range sums {
			if !yield(k) {
				return
			}
		}
	}) {
		s := sums[k]
		t.Logf("%-40s commits %d, pages %d, found %d (%.0f %%), all of a commit's %d, first right %d; named %d, false %d; as outdated %d, false %d; nothing named for %d", k, s.commits, s.pages, s.hit, 100*float64(s.hit)/float64(max(s.pages, 1)), s.all, s.first, s.named, s.wrong, s.outdated, s.outdatedWrong, s.quiet)
	}
}
