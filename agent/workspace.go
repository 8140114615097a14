package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"docent/api"
	"docent/markup"
)

// A workspace is the base tree with the edits of one run laid over it. It reads through, and it refuses to write
// anything that does not belong to the documentation.
type workspace struct {
	ctx     context.Context // of the run
	tree    Tree
	project api.ProjectID
	docsDir string
	limits  workspaceLimits
	base    map[string]api.File
	over    map[string]overlay
	links   map[string]bool   // symbolic links and submodules
	folded  map[string]string // folded name of each file and folder -> its name
	cache   map[string][]byte
	sorted  []string // what is there now; nil when it must be listed anew
	log     []string // files written and removed, in order
}

// workspaceLimits bound what may be edited, and name the pages that runs share.
type workspaceLimits struct {
	MaxFile   int64 // bytes of one file
	MaxChange int64 // bytes of all changed files together
	MaxFiles  int   // changed files
	Shared    *sharedPages
}

type overlay struct {
	content []byte
	deleted bool
	from    string // where the file was moved from
}

// A refusal is something that the instructions ask for and the workspace does not allow. It is for the user to read.
type refusal struct {
	text string
	idle bool // there is nothing to change
}

func (r *refusal) Error() string { return r.text }

func refuse(format string, args ...any) error { return &refusal{text: fmt.Sprintf(format, args...)} }

// idle is a refusal because there is nothing to change: what is asked for is so already, or occurs nowhere.
func idle(format string, args ...any) error {
	return &refusal{text: fmt.Sprintf(format, args...), idle: true}
}

func openWorkspace(ctx context.Context, tree Tree, project api.ProjectID, docsDir string, limits workspaceLimits) (*workspace, error) {
	files, err := tree.Files(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", tree.Commit(), err)
	}
	w := &workspace{
		ctx: ctx, tree: tree, project: project, docsDir: cleanDir(docsDir), limits: limits,
		base: make(map[string]api.File, len(files)), over: map[string]overlay{}, cache: map[string][]byte{}, folded: map[string]string{},
	}
	for _, f := range files {
		w.base[f.Path] = f
	}
	for _, f := range files {
		w.fold(f.Path)
	}
	if t, ok := tree.(Linked); ok {
		links, err := t.Links(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the links of %s: %w", tree.Commit(), err)
		}
		w.links = make(map[string]bool, len(links))
		for _, p := range links {
			w.links[p] = true
		}
	}
	return w, nil
}

func cleanDir(d string) string {
	d = strings.Trim(path.Clean("/"+strings.ReplaceAll(d, "\\", "/")), "/")
	return d
}

// folded is a name as file systems compare it that do not tell case or the forms of Unicode apart.
func folded(p string) string { return norm.NFC.String(strings.ToLower(norm.NFC.String(p))) }

// twin finds the file that has a name, or has it in another form of Unicode; empty where there is none.
func (w *workspace) twin(p string) string {
	if w.exists(p) {
		return p
	}
	if other, ok := w.folded[folded(p)]; ok && w.exists(other) && norm.NFC.String(other) == norm.NFC.String(p) {
		return other
	}
	return ""
}

// viaLink refuses a name that is a symbolic link or a submodule, or lies below one.
func (w *workspace) viaLink(p string) error {
	for q := p; len(w.links) > 0 && q != "." && q != "/"; q = path.Dir(q) {
		if w.links[q] {
			if q == p {
				return refuse("%s is a symbolic link or a submodule, which is not edited; name the file that it leads to", p)
			}
			return refuse("%s lies below %s, which is a symbolic link or a submodule and is not edited; name the file by its own folder", p, q)
		}
	}
	return nil
}

func (w *workspace) fold(p string) {
	for ; p != "." && p != ""; p = path.Dir(p) {
		low := folded(p)
		if other, ok := w.folded[low]; !ok || other != p && !w.there(other) {
			w.folded[low] = p
		}
	}
}

func (w *workspace) exists(p string) bool {
	if o, ok := w.over[p]; ok {
		return !o.deleted
	}
	_, ok := w.base[p]
	return ok
}

// files lists what is there now, in order.
func (w *workspace) files() []string {
	if w.sorted != nil {
		return w.sorted
	}
	out := make([]string, 0, len(w.base)+len(w.over))
	for p := range w.base {
		if w.exists(p) {
			out = append(out, p)
		}
	}
	for p, o := range w.over {
		if _, ok := w.base[p]; !ok && !o.deleted {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	w.sorted = out
	return out
}

// read gives a file as it is now.
func (w *workspace) read(p string) ([]byte, error) {
	if o, ok := w.over[p]; ok {
		if o.deleted {
			return nil, fmt.Errorf("read %s: %w", p, fs.ErrNotExist)
		}
		return o.content, nil
	}
	return w.original(p)
}

// original gives a file as the base tree has it.
func (w *workspace) original(p string) ([]byte, error) {
	if b, ok := w.cache[p]; ok {
		return b, nil
	}
	f, ok := w.base[p]
	if !ok {
		return nil, fmt.Errorf("read %s: %w", p, fs.ErrNotExist)
	}
	if f.Size > w.limits.MaxFile {
		return nil, refuse("%s is larger than the %d bytes that are edited", p, w.limits.MaxFile)
	}
	if name, ok := w.named(p); ok && isPage(p) {
		if page := w.limits.Shared.find(name); page != nil {
			w.cache[p] = page.Src
			return page.Src, nil
		}
	}
	b, err := w.tree.Read(w.ctx, p)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p, err)
	}
	w.cache[p] = b
	return b, nil
}

// raw gives a file as it is now, whatever its size.
func (w *workspace) raw(p string) ([]byte, error) {
	if o, ok := w.over[p]; ok {
		return o.content, nil
	}
	return w.tree.Read(w.ctx, p)
}

// parse gives the page that a file's content is. Runs share those of files that are as the repository has them.
func (w *workspace) parse(p string, src []byte) *markup.Page {
	name, shared := w.named(p)
	if _, edited := w.over[p]; edited || !shared {
		return markup.Parse(p, src)
	}
	page := w.limits.Shared.find(name)
	if page == nil {
		page = w.limits.Shared.keep(name, markup.Parse(p, src))
	}
	w.cache[p] = page.Src
	return page
}

// unedited is the same workspace without the edits.
func (w *workspace) unedited() *workspace {
	return &workspace{
		ctx: w.ctx, tree: w.tree, project: w.project, docsDir: w.docsDir, limits: w.limits,
		base: w.base, over: map[string]overlay{}, cache: w.cache, folded: w.folded,
	}
}

// baseFile is a file as the base lists it.
func (w *workspace) baseFile(p string) (api.File, bool) {
	f, ok := w.base[p]
	return f, ok
}

// had tells whether the base has a file.
func (w *workspace) had(p string) bool { _, ok := w.base[p]; return ok }

// first is where a file was in the base.
func (w *workspace) first(p string) string {
	if o := w.over[p]; o.from != "" {
		return o.from
	}
	return p
}

// size is that of a file as it is now.
func (w *workspace) size(p string) int64 {
	if o, ok := w.over[p]; ok {
		return int64(len(o.content))
	}
	return w.base[p].Size
}

// ended tells whether the run has been ended.
func (w *workspace) ended() error { return w.ctx.Err() }

// edited names the files that were written or removed, in order.
func (w *workspace) edited() []string { return slices.Sorted(maps.Keys(w.over)) }

// state names the edits as they are: equal for equal edits.
func (w *workspace) state() string {
	if len(w.over) == 0 {
		return ""
	}
	h := sha256.New()
	for _, p := range w.edited() {
		o := w.over[p]
		fmt.Fprintf(h, "%d:%s%v%d:%s%d:", len(p), p, o.deleted, len(o.from), o.from, len(o.content))
		h.Write(o.content)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// A savedEdits is what the edits were at some time.
type savedEdits map[string]overlay

func (w *workspace) save() savedEdits { return maps.Clone(w.over) }

// restore takes the edits back to what they were.
func (w *workspace) restore(s savedEdits) { w.over, w.sorted = s, nil }

// A touched file is one whose edit has changed. It had a content before, or has one now, or both.
type touched struct {
	path     string
	old, now []byte
	was, is  bool
}

// since lists the files that were edited since the edits were saved, in order.
func (w *workspace) since(saved savedEdits) ([]touched, error) {
	names := maps.Clone(saved)
	maps.Copy(names, w.over)
	var out []touched
	for _, p := range slices.Sorted(maps.Keys(names)) {
		was, edited := saved[p]
		now, still := w.over[p]
		if edited && still && was.deleted == now.deleted && bytes.Equal(was.content, now.content) {
			continue
		}
		t := touched{path: p, old: was.content, now: now.content, was: edited && !was.deleted, is: still && !now.deleted}
		if !edited && w.had(p) {
			old, err := w.original(p)
			if err != nil {
				return nil, err
			}
			t.old, t.was = old, true
		}
		out = append(out, t)
	}
	return out, nil
}

// changedBytes is how much of the files is different from the base.
func (w *workspace) changedBytes() int64 {
	changed := int64(0)
	moved := map[string]bool{}
	for _, o := range w.over {
		moved[o.from] = true
	}
	for p, o := range w.over {
		if o.deleted {
			if !moved[p] {
				changed += w.base[p].Size
			}
			continue
		}
		var old []byte
		if at := w.first(p); w.had(at) {
			b, err := w.original(at)
			if err != nil {
				continue
			}
			old = b
		}
		changed += differing(old, o.content)
	}
	return changed
}

// differing is how much of a file is different: what lies between the first and the last byte that differ.
func differing(a, b []byte) int64 {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return int64(max(len(a), len(b)))
}

// inDocs tells whether a path lies in the documentation's folder.
func (w *workspace) inDocs(p string) bool {
	return w.docsDir == "" || strings.HasPrefix(p, w.docsDir+"/")
}

var agentFiles = map[string]bool{
	"agents.md": true, "agent.md": true, "claude.md": true, "claude.local.md": true, "gemini.md": true, "codeowners": true, "warp.md": true, "conventions.md": true, "llms.txt": false,
}

var lockFiles = map[string]bool{
	"package-lock.json": true, "npm-shrinkwrap.json": true, "yarn.lock": true, "pnpm-lock.yaml": true, "bun.lockb": true, "go.sum": true, "go.work.sum": true, "packages.lock.json": true,
}

// protected tells why a path may not be edited by an agent, or says nothing.
func protected(p string) string {
	for _, seg := range strings.Split(p, "/") {
		if strings.HasPrefix(seg, ".") {
			return "names that begin with a dot are not edited"
		}
		if strings.EqualFold(seg, "node_modules") {
			return "installed packages are not edited"
		}
	}
	base := strings.ToLower(path.Base(p))
	switch {
	case agentFiles[base]:
		return "files that steer agents or reviews are not edited"
	case lockFiles[base] || strings.HasSuffix(base, ".lock"):
		return "lock files are not edited"
	}
	return ""
}

var gitNames = regexp.MustCompile(`(?i)^(?:\.?git|git~[0-9]+)$`)

var deviceNames = regexp.MustCompile(`(?i)^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)`)

// clean checks the form of a path from outside, relative to the repository's root.
func cleanPath(p string) error {
	if p == "" || p == "." {
		return refuse("a path is empty")
	}
	if len(p) > 512 || !utf8.ValidString(p) {
		return refuse("the path %s is too long or not valid UTF-8", quote(p))
	}
	for _, r := range p {
		if unicode.IsControl(r) || hidden(r) || r == 0xFFFD || strings.ContainsRune(`\:*?"<>|`, r) {
			return refuse("the path %s holds a character that no path of a page may have", quote(p))
		}
	}
	if strings.HasPrefix(p, "/") || path.Clean(p) != p {
		return refuse("the path %s is not a clean relative path", quote(p))
	}
	for _, seg := range strings.Split(p, "/") {
		bare := strings.TrimRight(seg, ". ")
		switch {
		case seg == ".." || bare == "":
			return refuse("the path %s leaves its folder", quote(p))
		case gitNames.MatchString(bare):
			return refuse("the path %s belongs to git", quote(p))
		case bare != seg || strings.TrimLeft(seg, " ") != seg || deviceNames.MatchString(seg) || len(seg) > 200:
			return refuse("the path %s is no path on every system", quote(p))
		}
	}
	return nil
}

// writable tells whether an agent may write at a path.
func (w *workspace) writable(p string) error {
	if err := cleanPath(p); err != nil {
		return err
	}
	if !w.inDocs(p) {
		return refuse("%s lies outside the documentation folder %s", p, w.docsDir)
	}
	rel := p
	if w.docsDir != "" {
		rel = strings.TrimPrefix(p, w.docsDir+"/")
	}
	if why := protected(rel); why != "" {
		return refuse("%s: %s", p, why)
	}
	if w.exists(p) {
		return nil
	}
	if err := w.viaLink(p); err != nil {
		return err
	}
	// A new name: none may differ in case or in the form of Unicode alone, and none may need a file to be a folder.
	for q := p; q != "."; q = path.Dir(q) {
		if other, ok := w.folded[folded(q)]; ok && other != q && w.there(other) {
			if norm.NFC.String(q) == norm.NFC.String(other) {
				return refuse("there is %s already: its name is the same, in another form of Unicode", other)
			}
			return refuse("%s and %s differ only in upper and lower case", p, other)
		}
		if q != p && w.exists(q) {
			return refuse("%s is a file, so %s cannot lie below it", q, p)
		}
	}
	if w.isDir(p) {
		return refuse("%s is a folder", p)
	}
	return nil
}

func (w *workspace) isDir(p string) bool {
	if p == "" {
		return true
	}
	list := w.files()
	i, _ := slices.BinarySearch(list, p+"/")
	return i < len(list) && strings.HasPrefix(list[i], p+"/")
}

func (w *workspace) there(p string) bool { return w.exists(p) || w.isDir(p) }

// write lays new content over a path.
func (w *workspace) write(p string, content []byte) error {
	if err := w.writable(p); err != nil {
		return err
	}
	if int64(len(content)) > w.limits.MaxFile {
		return refuse("%s would be larger than the %d bytes that are edited", p, w.limits.MaxFile)
	}
	if !isText(content) {
		return refuse("%s would not be text", p)
	}
	if !w.exists(p) {
		w.sorted = nil
		w.fold(p)
	}
	w.over[p] = overlay{content: content, from: w.over[p].from}
	w.log = append(w.log, p)
	return nil
}

func (w *workspace) remove(p string) error {
	if !w.exists(p) {
		return refuse("there is no %s", p)
	}
	if err := w.writable(p); err != nil {
		return err
	}
	if _, ok := w.base[p]; ok {
		w.over[p] = overlay{deleted: true}
	} else {
		delete(w.over, p)
	}
	w.sorted = nil
	w.log = append(w.log, p)
	return nil
}

func (w *workspace) move(from, to string) error {
	content, err := w.read(from)
	if err != nil {
		return err
	}
	if w.exists(to) {
		return refuse("%s exists already", to)
	}
	origin := from
	if o := w.over[from]; o.from != "" {
		origin = o.from
	}
	if err := w.remove(from); err != nil {
		return err
	}
	if err := w.write(to, content); err != nil {
		return err
	}
	if _, ok := w.base[origin]; ok && origin != to {
		o := w.over[to]
		o.from = origin
		w.over[to] = o
	}
	return nil
}

func isText(b []byte) bool {
	return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0
}

// changes lists what differs from the base, in order.
func (w *workspace) changes() ([]Change, error) {
	var out []Change
	var size int64
	moved := map[string]bool{}
	for _, o := range w.over {
		moved[o.from] = true
	}
	for p, o := range w.over {
		_, had := w.base[p]
		if o.deleted {
			if had {
				out = append(out, Change{Path: p, Delete: true})
				if !moved[p] {
					size += w.base[p].Size
				}
			}
			continue
		}
		if had {
			old, err := w.original(p)
			if err != nil {
				return nil, err
			}
			if bytes.Equal(old, o.content) {
				continue
			}
		}
		c := Change{Path: p, Content: o.content}
		if !had {
			c.From = o.from
		}
		size += int64(len(o.content))
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	if len(out) > w.limits.MaxFiles {
		return nil, refuse("the instructions change %d files, more than the %d that one change may", len(out), w.limits.MaxFiles)
	}
	if size > w.limits.MaxChange {
		return nil, refuse("the changed and deleted files have %d bytes together, more than the %d that one change may", size, w.limits.MaxChange)
	}
	return out, nil
}

// hidden tells characters that a reader does not see and that can change what a text seems to say.
func hidden(r rune) bool {
	switch {
	case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069, r >= 0xE0000 && r <= 0xE007F, r == 0x200B, r == 0x2060, r == 0x180E, r == 0x200E, r == 0x200F:
		return true
	}
	return false
}

func notExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// quote shows text of others within a sentence: on one line, bounded, without control characters.
func quote(s string) string {
	return "“" + oneLine(s, 80) + "”"
}

func oneLine(s string, limit int) string {
	var b strings.Builder
	n := 0
	space := false
	for _, r := range s {
		if unicode.IsSpace(r) || unicode.IsControl(r) || hidden(r) || r == 0xFFFD {
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			n++
			space = false
		}
		if n >= limit {
			b.WriteString("…")
			break
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}

// rewrite writes a program whose texts alone were changed. No tool and no instruction reaches it with content of its own.
func (w *workspace) rewrite(p string, content []byte) error {
	if !w.inDocs(p) {
		return refuse("it lies outside the documentation folder %s", w.docsDir)
	}
	if int64(len(content)) > w.limits.MaxFile {
		return refuse("it would be larger than the %d bytes that are edited", w.limits.MaxFile)
	}
	w.over[p] = overlay{content: content, from: w.over[p].from}
	w.log = append(w.log, p)
	return nil
}
