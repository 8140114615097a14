// Package workspace provides what one run of the agent works on: the files of a repository at one commit, and the edits
// that are laid over them. It reads through to the repository, writes nothing back to it, and refuses every edit that
// does not belong to the documentation.
package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"docent/agent/say"
	"docent/api"
	"docent/site/markup"
)

// A Workspace is the base tree with the edits of one run laid over it. It reads through, and it refuses to write
// anything that does not belong to the documentation.
type Workspace struct {
	ctx     context.Context // of the run
	Tree    Tree
	project api.ProjectID
	DocsDir string
	Limits  Limits
	Base    map[string]api.File
	over    map[string]overlay
	links   map[string]bool   // symbolic links and submodules
	folded  map[string]string // folded name of each file and folder -> its name
	cache   map[string][]byte
	sorted  []string // what is there now; nil when it must be listed again
	Log     []string // files written and removed, in order
}

// Limits bound what may be edited, and name the pages that runs share.
type Limits struct {
	MaxFile   int64 // bytes of one file
	MaxChange int64 // bytes of all changed files together
	MaxFiles  int   // changed files
	Shared    *SharedPages
}

type overlay struct {
	content []byte
	deleted bool
	from    string // the file's former path, if it was moved
}

// Open lays an empty set of edits over a tree.
func Open(ctx context.Context, tree Tree, project api.ProjectID, docsDir string, limits Limits) (*Workspace, error) {
	files, err := tree.Files(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", tree.Commit(), err)
	}
	w := &Workspace{
		ctx: ctx, Tree: tree, project: project, DocsDir: cleanDir(docsDir), Limits: limits,
		Base: make(map[string]api.File, len(files)), over: map[string]overlay{}, cache: map[string][]byte{},
		folded: map[string]string{},
	}
	for _, f := range files {
		w.Base[f.Path] = f
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

// Twin finds the file that has a name, or has it in another form of Unicode; empty if there is none.
func (w *Workspace) Twin(p string) string {
	if w.Exists(p) {
		return p
	}
	if other, ok := w.folded[folded(p)]; ok && w.Exists(other) && norm.NFC.String(other) == norm.NFC.String(p) {
		return other
	}
	return ""
}

// ViaLink refuses a name that is a symbolic link or a submodule, or lies below one.
func (w *Workspace) ViaLink(p string) error {
	for q := p; len(w.links) > 0 && q != "." && q != "/"; q = path.Dir(q) {
		if w.links[q] {
			if q == p {
				return say.Refuse("%s is a symbolic link or a submodule, which is not edited; name the file that it leads to", p)
			}
			return say.Refuse("%s lies below %s, which is a symbolic link or a submodule and is not edited; name the file by its own folder", p, q)
		}
	}
	return nil
}

func (w *Workspace) fold(p string) {
	for ; p != "." && p != ""; p = path.Dir(p) {
		low := folded(p)
		if other, ok := w.folded[low]; !ok || other != p && !w.There(other) {
			w.folded[low] = p
		}
	}
}

// Exists reports whether a file is there now.
func (w *Workspace) Exists(p string) bool {
	if o, ok := w.over[p]; ok {
		return !o.deleted
	}
	_, ok := w.Base[p]
	return ok
}

// List lists what is there now, in order.
func (w *Workspace) List() []string {
	if w.sorted != nil {
		return w.sorted
	}
	out := make([]string, 0, len(w.Base)+len(w.over))
	for p := range w.Base {
		if w.Exists(p) {
			out = append(out, p)
		}
	}
	for p, o := range w.over {
		if _, ok := w.Base[p]; !ok && !o.deleted {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	w.sorted = out
	return out
}

// Read returns a file as it is now.
func (w *Workspace) Read(p string) ([]byte, error) {
	if o, ok := w.over[p]; ok {
		if o.deleted {
			return nil, fmt.Errorf("read %s: %w", p, fs.ErrNotExist)
		}
		return o.content, nil
	}
	return w.Original(p)
}

// Original returns a file as the base tree has it.
func (w *Workspace) Original(p string) ([]byte, error) {
	if b, ok := w.cache[p]; ok {
		return b, nil
	}
	f, ok := w.Base[p]
	if !ok {
		return nil, fmt.Errorf("read %s: %w", p, fs.ErrNotExist)
	}
	if f.Size > w.Limits.MaxFile {
		return nil, say.Refuse("%s is larger than the %d bytes that are edited", p, w.Limits.MaxFile)
	}
	if name, ok := w.named(p); ok && IsPage(p) {
		if page := w.Limits.Shared.find(name); page != nil {
			w.cache[p] = page.Src
			return page.Src, nil
		}
	}
	b, err := w.Tree.Read(w.ctx, p)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p, err)
	}
	w.cache[p] = b
	return b, nil
}

// Raw returns a file as it is now, whatever its size.
func (w *Workspace) Raw(p string) ([]byte, error) {
	if o, ok := w.over[p]; ok {
		return o.content, nil
	}
	return w.Tree.Read(w.ctx, p)
}

// Parse returns the page that a file's content is. Runs share those of files that are as the repository has them.
func (w *Workspace) Parse(p string, src []byte) *markup.Page {
	name, shared := w.named(p)
	if _, edited := w.over[p]; edited || !shared {
		return markup.Parse(p, src)
	}
	page := w.Limits.Shared.find(name)
	if page == nil {
		page = w.Limits.Shared.keep(name, markup.Parse(p, src))
	}
	w.cache[p] = page.Src
	return page
}

// Unedited is the same workspace without the edits.
func (w *Workspace) Unedited() *Workspace {
	return &Workspace{
		ctx: w.ctx, Tree: w.Tree, project: w.project, DocsDir: w.DocsDir, Limits: w.Limits,
		Base: w.Base, over: map[string]overlay{}, cache: w.cache, folded: w.folded,
	}
}

// BaseFile is a file as the base lists it.
func (w *Workspace) BaseFile(p string) (api.File, bool) {
	f, ok := w.Base[p]
	return f, ok
}

// Had reports whether the base has a file.
func (w *Workspace) Had(p string) bool { _, ok := w.Base[p]; return ok }

// First is where a file was in the base.
func (w *Workspace) First(p string) string {
	if o := w.over[p]; o.from != "" {
		return o.from
	}
	return p
}

// Size is that of a file as it is now.
func (w *Workspace) Size(p string) int64 {
	if o, ok := w.over[p]; ok {
		return int64(len(o.content))
	}
	return w.Base[p].Size
}

// Ended tells whether the run has been ended.
func (w *Workspace) Ended() error { return w.ctx.Err() }

// Edited names the files that were written or removed, in order.
func (w *Workspace) Edited() []string { return slices.Sorted(maps.Keys(w.over)) }

// State names the edits as they are: equal for equal edits.
func (w *Workspace) State() string {
	if len(w.over) == 0 {
		return ""
	}
	h := sha256.New()
	for _, p := range w.Edited() {
		o := w.over[p]
		fmt.Fprintf(h, "%d:%s%v%d:%s%d:", len(p), p, o.deleted, len(o.from), o.from, len(o.content))
		h.Write(o.content)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// A Saved is what the edits were at some time.
type Saved map[string]overlay

// Save returns the edits as they are now.
func (w *Workspace) Save() Saved { return maps.Clone(w.over) }

// Restore takes the edits back to what they were.
func (w *Workspace) Restore(s Saved) { w.over, w.sorted = s, nil }

// A Touched file is one whose edit has changed. It had a content before, or has one now, or both.
type Touched struct {
	Path     string
	Old, Now []byte
	Was, Is  bool
}

// Since lists the files that were edited since the edits were saved, in order.
func (w *Workspace) Since(saved Saved) ([]Touched, error) {
	names := maps.Clone(saved)
	maps.Copy(names, w.over)
	var out []Touched
	for _, p := range slices.Sorted(maps.Keys(names)) {
		was, edited := saved[p]
		now, still := w.over[p]
		if edited && still && was.deleted == now.deleted && bytes.Equal(was.content, now.content) {
			continue
		}
		t := Touched{Path: p, Old: was.content, Now: now.content, Was: edited && !was.deleted, Is: still && !now.deleted}
		if !edited && w.Had(p) {
			old, err := w.Original(p)
			if err != nil {
				return nil, err
			}
			t.Old, t.Was = old, true
		}
		out = append(out, t)
	}
	return out, nil
}

// ChangedBytes is how much of the files is different from the base.
func (w *Workspace) ChangedBytes() int64 {
	changed := int64(0)
	moved := w.moved()
	for p, o := range w.over {
		if o.deleted {
			if !moved[p] {
				changed += w.Base[p].Size
			}
			continue
		}
		var old []byte
		if at := w.First(p); w.Had(at) {
			b, err := w.Original(at)
			if err != nil {
				continue
			}
			old = b
		}
		changed += differing(old, o.content)
	}
	return changed
}

// moved are the files of the base that were moved away.
func (w *Workspace) moved() map[string]bool {
	moved := map[string]bool{}
	for _, o := range w.over {
		moved[o.from] = true
	}
	return moved
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

// InDocs reports whether a path lies in the documentation's folder.
func (w *Workspace) InDocs(p string) bool {
	return w.DocsDir == "" || strings.HasPrefix(p, w.DocsDir+"/")
}

// Writable tells whether an agent may write at a path.
func (w *Workspace) Writable(p string) error {
	if err := CleanPath(p); err != nil {
		return err
	}
	if !w.InDocs(p) {
		return say.Refuse("%s lies outside the documentation folder %s", p, w.DocsDir)
	}
	rel := p
	if w.DocsDir != "" {
		rel = strings.TrimPrefix(p, w.DocsDir+"/")
	}
	if why := protected(rel); why != "" {
		return say.Refuse("%s: %s", p, why)
	}
	if w.Exists(p) {
		return nil
	}
	if err := w.ViaLink(p); err != nil {
		return err
	}
	// A new name: none may differ in case or in the form of Unicode alone, and none may need a file to be a folder.
	for q := p; q != "."; q = path.Dir(q) {
		if other, ok := w.folded[folded(q)]; ok && other != q && w.There(other) {
			if norm.NFC.String(q) == norm.NFC.String(other) {
				return say.Refuse("there is %s already: its name is the same, in another form of Unicode", other)
			}
			return say.Refuse("%s and %s differ only in upper and lower case", p, other)
		}
		if q != p && w.Exists(q) {
			return say.Refuse("%s is a file, so %s cannot lie below it", q, p)
		}
	}
	if w.IsDir(p) {
		return say.Refuse("%s is a folder", p)
	}
	return nil
}

// IsDir reports whether a folder is there now: it has files.
func (w *Workspace) IsDir(p string) bool {
	if p == "" {
		return true
	}
	list := w.List()
	i, _ := slices.BinarySearch(list, p+"/")
	return i < len(list) && strings.HasPrefix(list[i], p+"/")
}

// There reports whether a file or a folder is there now.
func (w *Workspace) There(p string) bool { return w.Exists(p) || w.IsDir(p) }

// Write lays new content over a path.
func (w *Workspace) Write(p string, content []byte) error {
	if err := w.Writable(p); err != nil {
		return err
	}
	if int64(len(content)) > w.Limits.MaxFile {
		return say.Refuse("%s would be larger than the %d bytes that are edited", p, w.Limits.MaxFile)
	}
	if !IsText(content) {
		return say.Refuse("%s would not be text", p)
	}
	if !w.Exists(p) {
		w.sorted = nil
		w.fold(p)
	}
	w.over[p] = overlay{content: content, from: w.over[p].from}
	w.Log = append(w.Log, p)
	return nil
}

// Remove removes a file.
func (w *Workspace) Remove(p string) error {
	if !w.Exists(p) {
		return say.Refuse("there is no %s", p)
	}
	if err := w.Writable(p); err != nil {
		return err
	}
	if _, ok := w.Base[p]; ok {
		w.over[p] = overlay{deleted: true}
	} else {
		delete(w.over, p)
	}
	w.sorted = nil
	w.Log = append(w.Log, p)
	return nil
}

// Reset takes a file back to what it is in the base.
func (w *Workspace) Reset(p string) error {
	o, edited := w.over[p]
	if !edited || !w.Had(p) && !w.Exists(p) {
		return say.Refuse("%s has not been edited", p)
	}
	if o.from != "" {
		return say.Refuse("%s was moved; move it back", p)
	}
	for to, other := range w.over {
		if other.from == p {
			return say.Refuse("%s was moved to %s; move it back", p, to)
		}
	}
	if !w.Had(p) {
		return say.Refuse("%s was created; delete it", p)
	}
	delete(w.over, p)
	w.sorted = nil
	w.Log = append(w.Log, p)
	return nil
}

// Move gives a file another path.
func (w *Workspace) Move(from, to string) error {
	content, err := w.Read(from)
	if err != nil {
		return err
	}
	if w.Exists(to) {
		return say.Refuse("%s exists already", to)
	}
	origin := from
	if o := w.over[from]; o.from != "" {
		origin = o.from
	}
	if err := w.Remove(from); err != nil {
		return err
	}
	if err := w.Write(to, content); err != nil {
		return err
	}
	if _, ok := w.Base[origin]; ok && origin != to {
		o := w.over[to]
		o.from = origin
		w.over[to] = o
	}
	return nil
}

// Changes lists what differs from the base, in order.
func (w *Workspace) Changes() ([]Change, error) {
	var out []Change
	var size int64
	moved := w.moved()
	for p, o := range w.over {
		_, had := w.Base[p]
		if o.deleted {
			if had {
				out = append(out, Change{Path: p, Delete: true})
				if !moved[p] {
					size += w.Base[p].Size
				}
			}
			continue
		}
		if had {
			old, err := w.Original(p)
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
	if len(out) > w.Limits.MaxFiles {
		return nil, say.Refuse("the instructions change %d files, more than the %d that one change may", len(out),
			w.Limits.MaxFiles)
	}
	if size > w.Limits.MaxChange {
		return nil, say.Refuse("the changed and deleted files have %d bytes together, more than the %d that one change may",
			size, w.Limits.MaxChange)
	}
	return out, nil
}

// Rewrite writes a program whose texts alone were changed. No tool and no instruction reaches it with content of its
// own.
func (w *Workspace) Rewrite(p string, content []byte) error {
	if !w.InDocs(p) {
		return say.Refuse("it lies outside the documentation folder %s", w.DocsDir)
	}
	if int64(len(content)) > w.Limits.MaxFile {
		return say.Refuse("it would be larger than the %d bytes that are edited", w.Limits.MaxFile)
	}
	w.over[p] = overlay{content: content, from: w.over[p].from}
	w.Log = append(w.Log, p)
	return nil
}

// A Tree is the repository at one commit. Paths are relative to the repository's root.
type Tree interface {
	Commit() string
	Files(ctx context.Context) ([]api.File, error)
	Read(ctx context.Context, path string) ([]byte, error) // fs.ErrNotExist if there is no such file
}

// Moved are the files that changes move away.
func Moved(changes []Change) map[string]bool {
	moved := map[string]bool{}
	for _, c := range changes {
		moved[c.From] = moved[c.From] || c.From != ""
	}
	return moved
}

// A Change is one file as it is to be. Paths are relative to the repository's root.
type Change struct {
	Path    string
	Content []byte
	Delete  bool
	From    string // the file's former path, if it was moved
}

// History is a Tree that also shows other commits of its repository. With it an instruction can be undone.
type History interface {
	Parent(ctx context.Context, commit string) (string, error) // the commit that this one was made on
	FilesAt(ctx context.Context, commit string) ([]api.File, error)
	ReadAt(ctx context.Context, commit, path string) ([]byte, error)
}

// Linked is a Tree that also names what is neither a file nor a folder: symbolic links and submodules. Nothing is
// written to them or below them.
type Linked interface {
	Links(ctx context.Context) ([]string, error)
}
