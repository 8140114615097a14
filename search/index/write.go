package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/mapping"

	"docent/internal/background"
	"docent/search/analysis"
	"docent/search/page"
)

// Write makes the generation in dir, and lets go of what was read. If it goes on with the old one it is returned, with
// the records that are the same in both; else it is nil, and all of it is read from disk, as every later process reads it.
func (u *Update) Write(ctx context.Context, dir string) (*Generation, error) {
	g, err := u.write(ctx, dir)
	u.records, u.sources, u.todo = nil, nil, nil
	if err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("index %s: %w", u.project.ID, err)
	}
	return g, nil
}

// differences shows the records that are not the same in the old generation and in the new one, in the order of their
// paths: the other is nil if only one has the path.
func (u *Update) differences(do func(old, now *page.Record)) {
	var before []*page.Record
	if u.old != nil {
		before = u.old.Records
	}
	for _, r := range u.records {
		for len(before) > 0 && before[0].Path < r.Path {
			do(before[0], nil)
			before = before[1:]
		}
		var old *page.Record
		if len(before) > 0 && before[0].Path == r.Path {
			old, before = before[0], before[1:]
		}
		if old != r {
			do(old, r)
		}
	}
	for _, r := range before {
		do(r, nil)
	}
}

// sizeOf is how many bytes of text pages have.
func sizeOf(pages []*page.Record) (n int64) {
	for _, r := range pages {
		n += r.Size
	}
	return n
}

func (u *Update) write(ctx context.Context, dir string) (*Generation, error) {
	todo := u.todo
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	m := Manifest{Schema: schemaVersion, Analysis: analysis.Version, Commit: u.report.Commit, DocsDir: u.project.DocsDir,
		SiteURL: u.report.SiteURL, Site: labelOf(&u.where), Language: u.where.Language(), Lost: u.report.Lost,
		About: u.about}
	for _, r := range u.records {
		m.NextUID = max(m.NextUID, r.UID+1)
	}
	if u.old != nil {
		m.NextUID = max(m.NextUID, u.old.Manifest.NextUID)
		m.Dead, m.Stale = u.old.Manifest.Dead, u.old.Manifest.Stale
	}
	var replaced []*page.Record // whose documents the new postings no longer show
	u.differences(func(old, _ *page.Record) {
		if old != nil {
			replaced = append(replaced, old)
			m.Dead += len(old.Sections)
			m.Stale++
		}
	})
	whole := u.afresh(m)
	if whole {
		m.Dead = 0
		for i, r := range u.records {
			if r.Kind == page.KindPage && u.sources[r] == nil {
				clone := *r
				clone.Sections, clone.Derived = nil, 0 // so that derive does not pass it over
				u.records[i] = &clone
			}
		}
		todo = u.derive()
	}
	m.Listed = u.listed
	goesOn := !whole && u.goesOn(m)
	// The text goes first: from here on contents are read back from the file, and need not be held in memory.
	index := filepath.Join(dir, "index")
	text, err := u.writeText(dir, goesOn)
	if err != nil {
		return nil, err
	}
	defer text.close()
	u.written, u.fresh = text.file, nil
	u.Close()
	var pages *logWriter
	if goesOn {
		pages, err = continueLog(u.old, dir, "pages")
	} else {
		m.Stale = 0
		pages, err = createLog(dir, "pages")
	}
	if err != nil {
		return nil, err
	}
	defer pages.close()
	begin := pages.written.Size
	// A record is written as soon as its documents are made, and what it knows of its sections is let go: the words of a
	// large site would fill more memory than everything else.
	made := make(map[*page.Record]bool, len(todo))
	u.report.Sections = 0
	keep := func(r *page.Record) error {
		made[r] = true
		if r.Kind == page.KindPage {
			u.report.Sections += len(r.Sections)
		}
		return pages.add(r)
	}
	if whole {
		err = u.writeWhole(ctx, dir, index, todo, keep)
	} else {
		err = u.writeChanges(ctx, index, todo, replaced, keep)
	}
	if err != nil {
		return nil, err
	}
	if goesOn {
		err = u.keepChanged(pages, made)
	}
	for _, r := range u.records {
		if err == nil && !goesOn && !made[r] {
			err = keep(r)
		}
	}
	if err = cmp.Or(err, pages.finish()); err != nil {
		return nil, fmt.Errorf("write pages: %w", err)
	}
	m.Pages, m.Sections = u.report.Pages, u.report.Sections
	if m, err = writeManifest(dir, m, []ManifestFile{pages.written, text.written}, u.old); err != nil || !goesOn {
		return nil, err
	}
	g := &Generation{Dir: dir, Manifest: m, standing: u.standing}
	return g, g.open(u.old.Records, begin)
}

// afresh reports whether all postings are written, since so little of the old ones would hold.
func (u *Update) afresh(m Manifest) bool {
	return u.old == nil || u.old.Segments >= maxSegments || float64(len(u.todo)) > maxTodoShare*float64(len(u.records)) ||
		sizeOf(u.todo) > maxChanged*u.Parsed || float64(m.Dead) > maxDeadShare*float64(u.old.Manifest.Sections)
}

// goesOn reports whether the logs of the old generation are gone on with: else they would hold too much of what is no
// more.
func (u *Update) goesOn(m Manifest) bool {
	text, ok := u.old.Manifest.file("text")
	return ok && float64(m.Stale) <= maxDeadShare*float64(len(u.records)) && text.Size <= maxLog*(sizeOf(u.records)+u.Parsed)
}

// keepChanged adds to the log what has changed and is not in it yet, and what is gone.
func (u *Update) keepChanged(pages *logWriter, made map[*page.Record]bool) (err error) {
	for _, r := range u.records {
		if r.Kind == page.KindPage {
			u.report.Sections += len(r.Sections) // those that were made are counted, and have let go of theirs
		}
	}
	u.differences(func(old, now *page.Record) {
		switch {
		case err != nil || now != nil && made[now]:
		case now != nil:
			err = pages.add(now)
		default:
			err = pages.add(&page.Record{Path: old.Path, Kind: page.KindGone})
		}
	})
	return err
}

// record is the new generation's record of a path; nil if there is none.
func (u *Update) record(p string) *page.Record {
	i, ok := slices.BinarySearchFunc(u.records, p, func(r *page.Record,
		p string) int {
		return strings.Compare(r.Path, p)
	})
	if !ok {
		return nil
	}
	return u.records[i]
}

// documents makes the documents of pages, several at a time, and hands them on one page at a time. A record is kept
// once and without its sections afterwards.
func (u *Update) documents(ctx context.Context, todo []*page.Record, keep func(*page.Record) error,
	use func(*page.Record, []*document.Document) error) error {
	var mu sync.Mutex
	g, gctx := background.WithContext(ctx)
	g.SetLimit(u.Workers)
	for _, r := range todo {
		g.Go(onPage(r, func() error {
			if err := gctx.Err(); err != nil {
				return err
			}
			mu.Lock()
			src := u.sources[r]
			delete(u.sources, r)
			mu.Unlock()
			if !src.Held() {
				content, err := u.content(r)
				if err != nil {
					return fmt.Errorf("content of %s: %w", r.Path, err)
				}
				full := page.Read(r, content)
				full.Place, full.Links = src.Place, src.Links
				src = full
			}
			src.NameAnchors(&u.where)
			docs := page.Describe(r, src)
			mu.Lock()
			defer mu.Unlock()
			if err := use(r, docs); err != nil {
				return err
			}
			if err := keep(r); err != nil {
				return err
			}
			r.Sections = nil
			return nil
		}))
	}
	return g.Wait()
}

// readyMade lets Bleve's builder take documents that have their fields already.
type readyMade struct{ *mapping.IndexMappingImpl }

func (m readyMade) MapDocument(doc *document.Document, data interface{}) error {
	for _, f := range data.(*document.Document).Fields {
		doc.AddField(f)
	}
	return nil
}

// writeWhole writes all postings afresh, as one segment.
func (u *Update) writeWhole(ctx context.Context, dir, index string, todo []*page.Record,
	keep func(*page.Record) error) error {
	empty := true
	b, err := bleve.NewBuilder(index, readyMade{indexMapping().(*mapping.IndexMappingImpl)}, map[string]interface{}{
		"batchSize": u.Batch, "mergeMax": 20, "buildPathPrefix": dir,
	})
	if err != nil {
		return fmt.Errorf("begin index: %w", err)
	}
	err = u.documents(ctx, todo, keep, func(r *page.Record, docs []*document.Document) error {
		for _, d := range docs {
			empty = false
			if err := b.Index(d.ID(), d); err != nil {
				return fmt.Errorf("index %s: %w", r.Path, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if empty { // the builder cannot make an index of nothing
		if err := os.RemoveAll(index); err != nil {
			return err
		}
		idx, err := bleve.NewUsing(index, indexMapping(), bleve.Config.DefaultIndexType, bleve.Config.DefaultKVStore, nil)
		if err != nil {
			return fmt.Errorf("make empty index: %w", err)
		}
		return cmp.Or(idx.Close(), ownersOnly(index))
	}
	if err := b.Close(); err != nil {
		return fmt.Errorf("finish index: %w", err)
	}
	return cmp.Or(ownersOnly(index), removeBuildFolders(dir))
}

// ownersOnly takes the rights of others away from the one file of an index that Bleve gives them.
func ownersOnly(index string) error {
	return os.Chmod(filepath.Join(index, "index_meta.json"), 0o600)
}

// removeBuildFolders takes away what the builder used on its way.
func removeBuildFolders(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != "index" {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeChanges takes over the old postings and applies the changes to them in one batch.
func (u *Update) writeChanges(ctx context.Context, index string, todo, replaced []*page.Record,
	keep func(*page.Record) error) error {
	if err := linkIndex(filepath.Join(u.old.Dir, "index"), index); err != nil {
		return fmt.Errorf("take over the index: %w", err)
	}
	idx, err := bleve.Open(index)
	if err != nil {
		return fmt.Errorf("open the index: %w", err)
	}
	batch := idx.NewBatch()
	made := make(map[string]bool)
	err = u.documents(ctx, todo, keep, func(r *page.Record, docs []*document.Document) error {
		for _, d := range docs {
			made[d.ID()] = true
			if err := batch.IndexAdvanced(d); err != nil {
				return fmt.Errorf("index %s: %w", r.Path, err)
			}
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, idx.Close())
	}
	for _, old := range replaced {
		for n := range old.Sections {
			if id := page.SectionID(old.UID, n); !made[id] {
				batch.Delete(id)
			}
		}
	}
	if err := idx.Batch(batch); err != nil {
		return errors.Join(fmt.Errorf("apply the changes: %w", err), idx.Close())
	}
	return idx.Close()
}

// linkIndex makes a second index of the same segments. Segments never change; everything else is copied.
func linkIndex(from, to string) error {
	return filepath.WalkDir(from, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		if filepath.Ext(p) == ".zap" {
			if os.Link(p, target) == nil {
				return nil // else a file system without links: copy
			}
		}
		return copyFile(p, target)
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := create(to)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err == nil {
		err = out.Sync()
	}
	return cmp.Or(err, out.Close())
}

// writeText writes the contents of files one after the other: of those that were read now, if the log goes on.
func (u *Update) writeText(dir string, goesOn bool) (w *logWriter, err error) {
	if goesOn {
		w, err = continueLog(u.old, dir, "text")
	} else {
		w, err = createLog(dir, "text")
	}
	if err != nil {
		return nil, err
	}
	served := make(map[*page.Record]bool) // queries read these records now: one that moves is cloned
	if u.old != nil && !goesOn {
		for _, r := range u.old.Records {
			served[r] = true
		}
	}
	for i, r := range u.records {
		if _, fresh := u.fresh[r]; goesOn && !fresh {
			continue
		}
		content, err := u.content(r)
		at := w.written.Size
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			return nil, errors.Join(err, w.close())
		}
		if served[r] && r.Offset != at {
			clone := *r
			r = &clone
			u.records[i] = r
		}
		r.Offset = at
	}
	if err := w.finish(); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}
