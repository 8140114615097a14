package agent

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"docent/agent/say"
	"docent/agent/workspace"
	"docent/api"
	"docent/internal/brief"
)

// published lists what the job had published when this instruction came, by whether it is in the same pull request.
func (r *work) published(body *strings.Builder) {
	for _, group := range []struct {
		state api.PullState
		title string
	}{
		{api.PullOpen, "Before that, in this pull request:"},
		{api.PullMerged, "Before that, in the same job, and merged already:"},
		{api.PullClosed, "Not in this pull request, since the one that held it was closed without being merged:"},
	} {
		const most = 20
		var earlier []Instruction
		for _, e := range r.task.Earlier {
			if e.Commit != "" && e.Pull == group.state {
				earlier = append(earlier, e)
			}
		}
		if len(earlier) == 0 {
			continue
		}
		body.WriteString(group.title + "\n\n")
		if left := len(earlier) - most; left > 0 {
			fmt.Fprintf(body, "- %s\n", say.Count(left, "older instruction"))
			earlier = earlier[left:]
		}
		for _, e := range earlier {
			fmt.Fprintf(body, "- %s: %s\n", codeText(say.OneLine(e.Prompt, 200)), plainText(say.OneLine(e.Message, 300)))
		}
		body.WriteString("\n")
	}
}

// A pulledFile is one file of a pull request, compared with where its branch began.
type pulledFile struct {
	path    string
	from    string // former path if it was moved
	status  string // added, deleted; empty for a change
	added   int    // lines
	removed int
	counted bool // the lines are known
}

// compare finds out what the pull request changes as a whole, if the job's branch held something before this
// instruction.
func (r *work) compare(changes []Change) error {
	if r.task.Fork == nil {
		return nil
	}
	fork, err := r.task.Fork(r.Context)
	if err != nil {
		return err
	}
	list, err := fork.Files(r.Context)
	if err != nil {
		return fmt.Errorf("list the files of %s: %w", fork.Commit(), err)
	}
	c := &comparison{work: r, fork: fork, before: make(map[string]api.File, len(list)), changes: map[string]Change{}}
	for _, f := range list {
		c.before[f.Path] = f
	}
	for _, change := range changes {
		c.changes[change.Path] = change
	}
	r.whole = []pulledFile{}
	gone, fresh := map[string][]byte{}, map[string][]byte{}
	for _, p := range c.mayDiffer() {
		old, was, err := c.old(p)
		if err != nil {
			return err
		}
		now, is, err := c.now(p)
		if err != nil {
			return err
		}
		switch {
		case was && is && !bytes.Equal(old, now):
			r.pulled(pulledFile{path: p}, old, now)
		case was && !is:
			gone[p] = old
		case is && !was:
			fresh[p] = now
		}
	}
	for _, p := range slices.Sorted(maps.Keys(fresh)) {
		if from := r.movedFrom(p, fresh[p], gone); from != "" {
			r.pulled(pulledFile{path: p, from: from}, gone[from], fresh[p])
			delete(gone, from)
		} else {
			r.pulled(pulledFile{path: p, status: "added"}, nil, fresh[p])
		}
	}
	for p, old := range gone {
		r.pulled(pulledFile{path: p, status: "deleted"}, old, nil)
	}
	slices.SortFunc(r.whole, func(a, b pulledFile) int { return strings.Compare(a.path, b.path) })
	return nil
}

// pulled notes a file of the pull request.
func (r *work) pulled(f pulledFile, old, now []byte) {
	f.count(old, now)
	r.whole = append(r.whole, f)
}

// movedFrom finds where a new file was before: moved by this instruction, or by an earlier one, when the text is the
// same but for its links.
func (r *work) movedFrom(p string, content []byte, gone map[string][]byte) string {
	if _, ok := gone[r.Origin[p]]; ok {
		return r.Origin[p]
	}
	for _, g := range slices.Sorted(maps.Keys(gone)) {
		if mostlySame(gone[g], content) {
			return g
		}
	}
	return ""
}

// A comparison is that of the files at the end with those where the pull request's branch began.
type comparison struct {
	*work
	fork    Tree
	before  map[string]api.File
	changes map[string]Change
}

// mayDiffer lists the files that are to be compared, in order.
func (c *comparison) mayDiffer() []string {
	differ := slices.Collect(maps.Keys(c.changes))
	for p, f := range c.Files.Base {
		if c.before[p].Hash == "" || c.before[p].Hash != f.Hash {
			differ = append(differ, p)
		}
	}
	for p := range c.before {
		if !c.Files.Had(p) {
			differ = append(differ, p)
		}
	}
	slices.Sort(differ)
	return slices.Compact(differ)
}

// old is a file where the branch began.
func (c *comparison) old(p string) ([]byte, bool, error) {
	if _, was := c.before[p]; !was {
		return nil, false, nil
	}
	content, err := c.read(c.fork, p)
	return content, true, err
}

// now is a file as it is at the end.
func (c *comparison) now(p string) ([]byte, bool, error) {
	if change, changed := c.changes[p]; changed {
		return change.Content, !change.Delete, nil
	}
	if !c.Files.Had(p) {
		return nil, false, nil
	}
	content, err := c.read(c.task.Tree, p)
	return content, true, err
}

// read reads a file unless it is too large to be compared.
func (c *comparison) read(t Tree, p string) ([]byte, error) {
	if now, _ := c.Files.BaseFile(p); max(c.before[p].Size, now.Size) > c.Files.Limits.MaxFile {
		return nil, nil
	}
	b, err := t.Read(c.Context, p)
	if err != nil {
		return nil, fmt.Errorf("read %s of %s: %w", p, t.Commit(), err)
	}
	return b, nil
}

// mostlySame reports whether most lines of two texts are the same.
func mostlySame(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 || len(a) > 2*len(b) || len(b) > 2*len(a) {
		return false
	}
	lines := map[string]int{}
	n := 0
	for line := range bytes.Lines(a) {
		lines[string(line)]++
		n++
	}
	same, m := 0, 0
	for line := range bytes.Lines(b) {
		if m++; lines[string(line)] > 0 {
			lines[string(line)]--
			same++
		}
	}
	return 2*same > max(n, m)
}

func (f *pulledFile) count(old, now []byte) {
	const most = 1 << 20
	if len(old)+len(now) > most || !workspace.IsText(old) || !workspace.IsText(now) {
		return
	}
	f.counted = true
	body := false
	for line := range strings.Lines(udiff.Unified("a", "b", string(old), string(now))) {
		switch {
		case strings.HasPrefix(line, "@@"):
			body = true
		case body && line[0] == '+':
			f.added++
		case body && line[0] == '-':
			f.removed++
		}
	}
}

// bullets writes a list, up to a number of entries.
func bullets[T any](body *strings.Builder, list []T, most int, text func(x T) string) {
	for i, x := range list {
		if i == most {
			fmt.Fprintf(body, "- and %d more\n", len(list)-most)
			return
		}
		body.WriteString("- " + text(x) + "\n")
	}
}

const maxListed = 200

// listWhole writes the files of the whole pull request.
func (r *work) listWhole(body *strings.Builder) {
	fmt.Fprintf(body, "\nThe pull request as a whole, with its earlier instructions, changes %s:\n\n",
		say.Count(len(r.whole), "file"))
	bullets(body, r.whole, maxListed, func(f pulledFile) string {
		line := codeText(f.path)
		switch {
		case f.from != "":
			line += " (moved from " + codeText(f.from) + ")"
		case f.status != "":
			line += " (" + f.status + ")"
		}
		if f.counted {
			line += fmt.Sprintf(": %s added, %d removed", say.Count(f.added, "line"), f.removed)
		}
		return line
	})
}

// listChanges writes the files that this instruction changes, with what it did in each.
func (r *work) listChanges(body *strings.Builder, changes []Change) {
	moved := workspace.Moved(changes)
	changes = slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return c.Delete && moved[c.Path] })
	fmt.Fprintf(body, "\n%s:\n\n", say.Count(len(changes), "file"))
	bullets(body, changes, maxListed, func(c Change) string {
		line := codeText(c.Path)
		switch {
		case c.Delete:
			line += " (deleted)"
		case c.From != "":
			line += " (moved from " + codeText(c.From) + ")"
		}
		var parts []string
		for _, what := range slices.Sorted(maps.Keys(r.Counts[c.Path])) {
			if !strings.HasPrefix(what, "page ") && what != "file restored" {
				what = fmt.Sprintf("%s: %d", what, r.Counts[c.Path][what])
			}
			parts = append(parts, what)
		}
		if len(parts) > 0 {
			line += ": " + strings.Join(parts, ", ")
		}
		return line
	})
}

// report writes the result: titles, the pull request's text and the word to the user, all from the same counts.
func (r *work) report(changes []Change, checked []string, todos []api.Todo) Result {
	r.notices(changes)
	title := r.Titles[0]
	if n := len(r.Titles); n > 1 {
		title += fmt.Sprintf(" and %d more", n-1)
	}
	title = say.OneLine(r.task.Project.Pulls.Titled(title, scopeOf(changes, r.task.DocsDir)), 100)
	subject := say.OneLine(title, 71)

	var body strings.Builder
	body.WriteString("## What was asked\n\n" + quoteBlock(r.task.Prompt) + "\n")
	r.published(&body)
	body.WriteString("## What changed\n\n")
	bullets(&body, r.Done, len(r.Done), plainText)
	if r.whole != nil {
		r.listWhole(&body)
	} else {
		r.listChanges(&body, changes)
	}
	body.WriteString("\n## What was checked\n\n")
	bullets(&body, checked, len(checked), plainText)
	if len(r.Left) > 0 {
		body.WriteString("\n## What was left\n\n")
		bullets(&body, r.Left, 100, plainText)
	}
	if r.model == Rules {
		body.WriteString("\n---\n\nMade by Docent's built-in agent (" + codeText(Rules) +
			"), which follows instructions of fixed forms and uses no language model.")
	} else {
		body.WriteString("\n---\n\nMade by Docent's agent with the language model " + codeText(r.model) +
			". Read it as you would a stranger's contribution.")
	}
	if r.task.Job != "" {
		body.WriteString(" Job " + codeText(string(r.task.Job)) + ".")
	}
	body.WriteString("\n")

	var commit strings.Builder
	commit.WriteString(subject + "\n\n")
	bullets(&commit, r.Done, len(r.Done), func(d string) string { return say.OneLine(d, 300) })
	if r.task.Job != "" {
		commit.WriteString("\nJob: " + say.OneLine(string(r.task.Job), 100) + "\n")
	}
	message := strings.Join(r.Done, ". ") + "."
	if len(r.Left) > 0 {
		shown := r.Left
		if len(shown) > 5 {
			shown = append(slices.Clone(shown[:5]), fmt.Sprintf("and %d more, see the pull request", len(r.Left)-5))
		}
		message += " " + strings.Join(shown, ". ") + "."
	}
	return Result{
		Model: r.model, Changes: changes, Title: title, Commit: commit.String(), Body: body.String(), Message: message,
		Todos:  todos,
		Review: r.check.Review || r.Mass, Draft: r.Mass, Outcome: api.OutcomeChanged,
	}
}

// scopeOf is the folder of the documentation that all changes are in; empty if there is none.
func scopeOf(changes []Change, docs string) (scope string) {
	for i, c := range changes {
		first, _, inside := strings.Cut(strings.TrimPrefix(c.Path, docs+"/"), "/")
		if !inside || i > 0 && first != scope {
			return ""
		}
		scope = first
	}
	return say.OneLine(scope, 30)
}

// quoteBlock shows the words of others as text that is nothing but text, whatever is in it.
func quoteBlock(s string) string {
	s = strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' {
			return c
		}
		if c < ' ' || c == 0x7f || say.Hidden(c) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, ""))
	const most = 4000
	s = brief.Bytes(s, most, "\n…")
	return say.Fenced(s)
}

// codeText shows a name as code.
func codeText(s string) string {
	s = say.OneLine(s, 300)
	if strings.Contains(s, "`") {
		return "`` " + s + " ``"
	}
	return "`" + s + "`"
}

var markdownSpecial = regexp.MustCompile("[\\\\`*_\\[\\]<>#|~@!]")

// plainText keeps the words of others from acting as Markdown, mentions or references.
func plainText(s string) string {
	s = markdownSpecial.ReplaceAllStringFunc(say.OneLine(s, 600), func(m string) string {
		if m == "@" || m == "#" {
			return m + "<!-- -->" // no mention and no reference
		}
		return "\\" + m
	})
	return s
}
