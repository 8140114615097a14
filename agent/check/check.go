// Package check looks at the result of a run before it is published: what the edits would break, what they would delete
// unasked, what they would have the site's build run, and what the operator's own command says about them.
package check

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"docent/agent/edit"
	"docent/agent/pages"
	"docent/agent/rules"
	"docent/agent/say"
	"docent/agent/workspace"
	"docent/internal/formats"
	"docent/site/links"
	"docent/site/markup"

	"go.yaml.in/yaml/v4"
)

// A Checker looks for what the changes of a run would break. It knows the documentation as it was before.
type Checker struct {
	run    *edit.Run
	prompt string // the instruction
	direct bool   // the project has changes committed to its branch directly
	Review bool   // a person looks at the change before it is on the documentation's branch

	known  *codeBase             // what the documentation runs as it stands, once it was looked for
	broken map[string]faultCount // broken links of the base, once they were counted
	want   *rules.Deletions      // what the instruction says about deleting, once it was read
}

// New makes the checker of a run that carries out an instruction.
func New(r *edit.Run, prompt string, direct bool) *Checker {
	return &Checker{run: r, prompt: prompt, direct: direct}
}

// base is the documentation as it was before the run.
func (c *Checker) base() (*pages.Site, error) { return c.run.Site.At(c.run.Files.Unedited()) }

// Findings are what a check has found, and what it has looked at.
type findings struct{ faults, checked []string }

func (f *findings) fault(format string, args ...any) {
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

// Problems looks for what the changes would break, and says what it looked at. Only new problems count.
func (c *Checker) Problems(changes []workspace.Change) (faults, checked []string, err error) {
	was, err := c.base()
	if err != nil {
		return nil, nil, err
	}
	f := &findings{checked: []string{
		"front matter parses, code blocks are closed, and tags are balanced on every changed page", "",
		"no secrets or hidden characters were added, and nothing outside the documentation changed",
	}}
	for _, change := range changes {
		if change.Delete {
			continue
		}
		if err := c.content(f, was, change); err != nil {
			return nil, nil, err
		}
	}
	if err := c.deleted(f, was, changes); err != nil {
		return nil, nil, err
	}
	links, err := c.links(f, was, changes)
	if err != nil {
		return nil, nil, err
	}
	f.checked[1] = fmt.Sprintf(
		"no working internal link or anchor broke, and no new one is dead (%s checked)",
		say.Count(links, "link"))
	if err := c.navigation(f, was); err != nil {
		return nil, nil, err
	}
	return f.faults, f.checked, nil
}

// content looks at one file: at its form, and for what no change may bring. What an undo brings back was there before.
func (c *Checker) content(f *findings, was *pages.Site, change workspace.Change) error {
	r, name := c.run, c.run.Site.Show(change.Path)
	from := change.Path
	if change.From != "" {
		from = change.From
	}
	var old []byte
	var err error
	if r.Files.Had(from) {
		if old, err = r.Files.Original(from); err != nil {
			return err
		}
	}
	if !r.Undone {
		if what := SecretIn(string(change.Content), string(old)); what != "" {
			f.fault("%s would hold %s", name, what)
		}
		if hiddenIn(string(change.Content)) > hiddenIn(string(old)) {
			f.fault("%s would hold characters that a reader does not see", name)
		}
		if key := steeringChange(change.Path, old, change.Content); key != "" {
			f.fault("%s would change %s, which says what the site's build runs: that is left to people", name, say.Quote(key))
		}
	}
	if !workspace.IsPage(change.Path) {
		if why := Unreadable(change.Path, change.Content); why != "" && (old == nil || Unreadable(from, old) == "") {
			f.fault("%s would not parse: %s", name, why)
		}
		return nil
	}
	now, err := r.Site.Page(change.Path)
	if err != nil || r.Undone {
		return err
	}
	what, err := c.newCode(was, now)
	if err != nil {
		return err
	}
	if what != "" {
		f.fault("%s would hold %s, which runs when the site is built: that is left to people", name, what)
	}
	for _, p := range NewProblems(from, old, now) {
		f.fault("%s, line %d: %s", name, p.Line, p.Message)
	}
	return nil
}

// NewProblems are those of a page that it did not have before.
func NewProblems(from string, old []byte, now *markup.Page) (out []markup.Problem) {
	before := map[string]int{}
	if old != nil {
		for _, p := range markup.Parse(from, old).Problems {
			before[p.Message]++
		}
	}
	for _, p := range now.Problems {
		if before[p.Message]--; before[p.Message] < 0 {
			out = append(out, p)
		}
	}
	return out
}

// newCode tells what code a page would run that the documentation does not run already. Most pages run nothing that
// would have to be there already: only for others is the whole documentation looked at.
func (c *Checker) newCode(was *pages.Site, p *markup.Page) (string, error) {
	if newCode(c.run.Site, p, codeBase{}) == "" {
		return "", nil
	}
	if c.known == nil {
		known, err := readCodeBase(was)
		if err != nil {
			return "", err
		}
		c.known = &known
	}
	return newCode(c.run.Site, p, *c.known), nil
}

// deleted looks whether the instruction asks for what would be deleted.
func (c *Checker) deleted(f *findings, was *pages.Site, changes []workspace.Change) error {
	unasked, asked, err := c.unasked(changes, was)
	if unasked != "" {
		f.faults = append(f.faults, unasked)
	}
	if asked != "" {
		f.checked = append(f.checked, asked)
	}
	return err
}

// links looks at the links of all pages: those that led somewhere must do so still, and new ones must. It gives their
// number.
func (c *Checker) links(f *findings, was *pages.Site, changes []workspace.Change) (int, error) {
	r := c.run
	only, err := c.confined(was, changes)
	if err != nil {
		return 0, err
	}
	before := c.broken
	if before == nil || only != nil {
		if before, _, err = brokenLinks(was, nil, only); err != nil {
			return 0, err
		}
	}
	if only == nil {
		c.broken = before
	}
	now, links, err := brokenLinks(r.Site, r.Origin, only)
	if err != nil {
		return 0, err
	}
	restored := map[string]bool{} // by undo: what such a page links to, it linked to before
	for _, change := range changes {
		restored[change.Path] = r.Undone && !change.Delete
	}
	for _, k := range slices.Sorted(maps.Keys(now)) {
		if now[k].n > before[k].n && !restored[now[k].page] {
			f.fault("%s would link to %s, where nothing is", r.Site.Show(now[k].page), say.Quote(now[k].dest))
		}
	}
	return links, nil
}

// confined are the changed pages if no link of another page can break by the changes: each page stands where it stood,
// is shown where it was, and has the anchors that it had. It is nil if all pages have to be looked at.
func (c *Checker) confined(was *pages.Site, changes []workspace.Change) (only []string, err error) {
	r := c.run
	for _, change := range changes {
		if change.Delete || change.From != "" || !workspace.IsPage(change.Path) || !r.Files.Had(change.Path) {
			return nil, nil
		}
		old, err := was.Page(change.Path)
		if err != nil {
			return nil, err
		}
		now, err := r.Site.Page(change.Path)
		if err != nil {
			return nil, err
		}
		if !reflect.DeepEqual(old.Front.Values, now.Front.Values) {
			return nil, nil
		}
		anchors := r.Site.Anchors(now)
		for a := range was.Anchors(old) {
			if !anchors[a] {
				return nil, nil
			}
		}
		only = append(only, change.Path)
	}
	return only, nil
}

// navigation looks whether the navigation names pages that are there, and all that it named before.
func (c *Checker) navigation(f *findings, was *pages.Site) error {
	before, failed := was.Navigation()
	now, err := c.run.Site.Navigation()
	if err != nil && failed == nil {
		f.fault("%v", err)
	}
	if now == nil {
		return nil
	}
	pages := 0
	if before != nil {
		if pages, err = c.listed(f, was, before, now); err != nil {
			return err
		}
	}
	f.checked = append(f.checked, fmt.Sprintf("the navigation in %s parses and has lost no page (%s)", now.File,
		say.Count(pages, "entry")))
	return nil
}

// listed compares the pages that the navigation names with those that it named before.
func (c *Checker) listed(f *findings, was *pages.Site, before, now *pages.Navigation) (int, error) {
	r := c.run
	named, err := before.Pages()
	if err != nil {
		return 0, err
	}
	names, err := now.Pages()
	if err != nil {
		return 0, err
	}
	for _, p := range names {
		if !r.Files.Exists(p) && !slices.Contains(named, p) {
			f.fault("the navigation would name %s, which is not there", p)
		}
		if !r.Files.Exists(p) && was.Files.Exists(p) {
			f.fault("the navigation would still name %s", r.Site.Show(p))
		}
	}
	moved := map[string]string{} // by a file's former path
	for to, from := range r.Origin {
		moved[from] = to
	}
	for _, p := range named {
		if to, ok := moved[p]; ok {
			p = to
		}
		if r.Files.Exists(p) && !slices.Contains(names, p) && !r.Dropped[p] && !r.Undone {
			f.fault("the navigation would lose %s", r.Site.Show(p))
		}
	}
	return len(names), nil
}

type faultCount struct {
	n          int
	page, dest string
}

// brokenLinks counts the broken links of the site, by where they stand and lead to in terms of the base; of some pages
// only, if they are named.
func brokenLinks(s *pages.Site, origin map[string]string, only []string) (map[string]faultCount, int, error) {
	var all []*markup.Page
	var err error
	if only == nil {
		all, err = s.All()
	}
	for _, f := range only {
		var p *markup.Page
		if p, err = s.Page(f); err != nil {
			break
		}
		all = append(all, p)
	}
	if err != nil {
		return nil, 0, err
	}
	first := func(p string) string {
		if o, ok := origin[p]; ok {
			return workspace.Stem(o)
		}
		for now, from := range origin {
			if workspace.Stem(now) == strings.TrimSuffix(p, "/") {
				return workspace.Stem(from)
			}
		}
		return p
	}
	out := map[string]faultCount{}
	n := 0
	for _, p := range all {
		if err := s.Files.Ended(); err != nil {
			return nil, 0, err
		}
		n += len(p.Links)
		for _, l := range s.Broken(p) {
			t := s.Resolve(p.Path, l)
			to := t.Path
			if t.File != "" {
				to = t.File
			}
			if t.Form == links.SameForm {
				to = p.Path
			}
			if workspace.IsPage(to) {
				if o, ok := origin[to]; ok {
					to = o
				}
				to = workspace.Stem(to)
			} else {
				to = first(to)
			}
			from := p.Path
			if o, ok := origin[from]; ok {
				from = o
			}
			k := from + "\x00" + path.Clean(to) + "\x00" + t.Fragment
			c := out[k]
			out[k] = faultCount{c.n + 1, p.Path, l.Dest}
		}
	}
	return out, n, nil
}

// Unreadable tells why a file of data does not parse.
func Unreadable(name string, content []byte) string {
	var err error
	switch strings.ToLower(path.Ext(name)) {
	case ".json":
		_, err = formats.JSONTree(content)
	case ".yml", ".yaml":
		var v yaml.Node
		err = formats.YAML(content, &v)
	}
	if err == nil {
		return ""
	}
	return say.OneLine(err.Error(), 200)
}

// hiddenIn counts the characters that a reader does not see.
func hiddenIn(s string) (n int) {
	for _, r := range s {
		if say.Hidden(r) {
			n++
		}
	}
	return n
}

var secrets = []struct {
	name string
	re   *regexp.Regexp
}{
	{"a private key", regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`)},
	{"a cloud access key", regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`)},
	{"a code host's token",
		regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,}|glpat-[A-Za-z0-9_-]{20,})\b`)},
	{"a chat service's token", regexp.MustCompile(`\bxox[abprs]-[A-Za-z0-9-]{20,}\b`)},
	{"an API key", regexp.MustCompile(
		`\b(?:sk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,}|AIza[0-9A-Za-z_-]{35}|dct_adm_[0-9A-Za-z]{30,})\b`)},
}

var privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`)

// WithoutSecrets is a text, line for line, without what looks like a secret.
func WithoutSecrets(text string) string {
	left := func(secret string) string {
		return "[a secret is left out]" + strings.Repeat("\n", strings.Count(secret, "\n"))
	}
	text = privateKey.ReplaceAllStringFunc(text, left)
	for _, s := range secrets {
		text = s.re.ReplaceAllStringFunc(text, left)
	}
	return text
}

// SecretIn names what looks like a secret in the new text and was not in the old.
func SecretIn(now, before string) string {
	for _, s := range secrets {
		for _, m := range s.re.FindAllString(now, -1) {
			if !strings.Contains(before, m) {
				return "what looks like " + s.name
			}
		}
	}
	return ""
}
