package git_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"docent/forge/forgetest"
	"docent/forge/git"
)

func TestMergeTakesBothSides(t *testing.T) {
	const base = "a\nb\nc\nd\ne\nf\ng\n"
	for _, c := range []struct{ name, ours, theirs, want string }{
		{"nobody", base, base, base},
		{"ours alone", "a\nB\nc\nd\ne\nf\ng\n", base, "a\nB\nc\nd\ne\nf\ng\n"},
		{"theirs alone", base, "a\nb\nc\nd\ne\nF\ng\n", "a\nb\nc\nd\ne\nF\ng\n"},
		{"far apart", "A\nb\nc\nd\ne\nf\ng\n", "a\nb\nc\nd\ne\nf\nG\n", "A\nb\nc\nd\ne\nf\nG\n"},
		{"one line between", "a\nB\nc\nd\ne\nf\ng\n", "a\nb\nc\nD\ne\nf\ng\n", "a\nB\nc\nD\ne\nf\ng\n"},
		{"insert and delete", "a\nb\nc\nnew\nd\ne\nf\ng\n", "a\nc\nd\ne\nf\n", "a\nc\nnew\nd\ne\nf\n"},
		{"both the same", "a\nX\nc\nd\ne\nf\ng\n", "a\nX\nc\nd\ne\nf\ng\n", "a\nX\nc\nd\ne\nf\ng\n"},
		{"the same and more", "a\nX\nc\nd\ne\nf\ng\n", "a\nX\nc\nd\ne\nf\nG\n", "a\nX\nc\nd\ne\nf\nG\n"},
		{"line end at the end", "A\nb\nc\nd\ne\nf\ng\n", "a\nb\nc\nd\ne\nf\ng", "A\nb\nc\nd\ne\nf\ng"},
		{"emptied", "", base, ""},
		{"at both ends", "0\n" + base, base + "z\n", "0\n" + base + "z\n"},
	} {
		for range 2 {
			got, ok := git.Merge([]byte(base), []byte(c.ours), []byte(c.theirs))
			if !ok || string(got) != c.want {
				t.Errorf("%s: %q, %v, want %q", c.name, got, ok, c.want)
			}
			c.ours, c.theirs = c.theirs, c.ours
		}
	}
}

func TestMergeRefusesToGuess(t *testing.T) {
	const base = "a\nb\nc\nd\ne\n"
	for _, c := range []struct{ name, ours, theirs string }{
		{"the same line", "a\nX\nc\nd\ne\n", "a\nY\nc\nd\ne\n"},
		{"neighboring lines", "a\nX\nc\nd\ne\n", "a\nb\nY\nd\ne\n"},
		{"inserted at one place", "a\nx\nb\nc\nd\ne\n", "a\ny\nb\nc\nd\ne\n"},
		{"changed and deleted", "a\nb\nX\nd\ne\n", "a\ne\n"},
		{"emptied and changed", "", "a\nb\nX\nd\ne\n"},
		{"binary", "a\x00b\nc\n", "a\nb\n"},
		{"not UTF-8", "a\xff\nc\n", "a\nb\n"},
	} {
		for range 2 {
			if got, ok := git.Merge([]byte(base), []byte(c.ours), []byte(c.theirs)); ok {
				t.Errorf("%s: merged to %q", c.name, got)
			}
			c.ours, c.theirs = c.theirs, c.ours
		}
	}
}

// mutate changes some lines of a text, over a small alphabet so that lines repeat.
func mutate(r *rand.Rand, text string) string {
	lines := strings.SplitAfter(text, "\n")
	for range r.IntN(4) {
		i := r.IntN(len(lines))
		line := fmt.Sprintf("%c\n", 'a'+r.IntN(12))
		switch r.IntN(3) {
		case 0:
			lines[i] = line
		case 1:
			lines = append(lines[:i], lines[min(i+1+r.IntN(2), len(lines)):]...)
			if len(lines) == 0 {
				lines = []string{line}
			}
		default:
			lines = append(lines[:i], append([]string{line}, lines[i:]...)...)
		}
	}
	return strings.Join(lines, "")
}

// What we merge, git merges too, to the same text; what git cannot merge, neither can we.
func TestMergeAgreesWithGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed: nobody to judge the merges")
	}
	r := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	clean, both := 0, 0
	for range 400 {
		var base strings.Builder
		for range 3 + r.IntN(25) {
			fmt.Fprintf(&base, "%c\n", 'a'+r.IntN(26))
		}
		texts := []string{mutate(r, base.String()), base.String(), mutate(r, base.String())}
		for i, name := range []string{"ours", "base", "theirs"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(texts[i]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("git", "merge-file", "-p", "ours", "base", "theirs")
		cmd.Dir = dir
		want, err := cmd.Output()
		got, ok := git.Merge([]byte(texts[1]), []byte(texts[0]), []byte(texts[2]))
		if err == nil {
			clean++
		}
		if !ok {
			continue
		}
		both++
		if err != nil {
			t.Errorf("git finds a conflict in %q, %q, %q; we merged to %q", texts[0], texts[1], texts[2], got)
		} else if string(got) != string(want) {
			t.Logf("base %q ours %q theirs %q: git %q, we %q", texts[1], texts[0], texts[2], want, got)
		}
	}
	if both < 100 || both*10 < clean*8 {
		t.Errorf("git merged %d of 400, we %d", clean, both)
	}
	t.Logf("git merged %d of 400, we %d", clean, both)
}

// A diff, applied by git to the old text, gives the new one.
func TestDiffAppliesWithGit(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	dir := t.TempDir()
	forgetest.Git(t, dir, "init", "-q")
	for i := range 150 {
		var base strings.Builder
		for range r.IntN(60) {
			fmt.Fprintf(&base, "%c\n", 'a'+r.IntN(20))
		}
		old := base.String()
		new := old
		for range 1 + r.IntN(5) {
			new = mutate(r, new)
		}
		if r.IntN(4) == 0 {
			new = strings.TrimSuffix(new, "\n")
		}
		if old == new {
			continue
		}
		forgetest.Write(t, dir, map[string]string{"f": old})
		text := git.DiffLines([]byte(old), []byte(new))
		if err := os.WriteFile(filepath.Join(dir, "p"), []byte("--- a/f\n+++ b/f\n"+text), 0o644); err != nil {
			t.Fatal(err)
		}
		if old == "" {
			os.WriteFile(filepath.Join(dir, "p"), []byte("--- /dev/null\n+++ b/f\n"+text), 0o644)
			os.Remove(filepath.Join(dir, "f"))
		}
		if new == "" {
			continue
		}
		forgetest.Git(t, dir, "apply", "--unidiff-zero", "p")
		if got, _ := os.ReadFile(filepath.Join(dir, "f")); string(got) != new {
			t.Fatalf("%d: git apply gave %q, want %q, by\n%s", i, got, new, text)
		}
	}
}

// Many small changes stay small: the diff of a renamed term names each line once.
func TestDiffOfManySmallChangesIsSmall(t *testing.T) {
	var old, new strings.Builder
	for i := range 3000 {
		text := fmt.Sprintf("line %d of the page\n", i)
		if i%3 == 0 {
			text = "text that repeats\n"
		}
		old.WriteString(text)
		if i%7 == 1 {
			text = strings.ReplaceAll(text, "page", "site")
		}
		new.WriteString(text)
	}
	want := 0
	a, b := strings.Split(old.String(), "\n"), strings.Split(new.String(), "\n")
	for i := range a {
		if a[i] != b[i] {
			want++
		}
	}
	text := git.DiffLines([]byte(old.String()), []byte(new.String()))
	got := 0
	for line := range strings.Lines(text) {
		if line[0] == '-' {
			got++
		}
	}
	if got != want {
		t.Errorf("the diff deletes %d lines, %d were changed", got, want)
	}
}

func FuzzMerge(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nB\nc\n", "a\nb\nC\n")
	f.Add("", "a", "b")
	f.Add("a\nb", "a\nb\n", "")
	f.Fuzz(func(t *testing.T, base, ours, theirs string) {
		one, ok := git.Merge([]byte(base), []byte(ours), []byte(theirs))
		two, also := git.Merge([]byte(base), []byte(theirs), []byte(ours))
		if ok != also || ok && string(one) != string(two) {
			t.Errorf("ours and theirs swapped: %q, %v and %q, %v", one, ok, two, also)
		}
		if got, ok := git.Merge([]byte(base), []byte(base), []byte(theirs)); !ok || string(got) != theirs {
			t.Errorf("a change of one side alone gave %q, %v", got, ok)
		}
	})
}
