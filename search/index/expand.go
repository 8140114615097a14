package index

import (
	"context"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"docent/api"
	"docent/internal/background"
	"docent/internal/brief"
	"docent/search/page"
	"docent/site"
	"docent/site/expand"
)

// expand gives pages the text that the site's generator builds: of those that were read now, and of those whose files or
// settings have changed since. Everything that shows a page shows this text.
func (u *Update) expand(ctx context.Context) error {
	rules := u.where.Rules()
	settings := fnv.New64a()
	fmt.Fprintf(settings, "%+v", *rules) // maps are written in the order of their keys
	var mu sync.Mutex
	read := func(full string) ([]byte, error) {
		if full != path.Clean(full) || !fs.ValidPath(full) {
			return nil, fs.ErrNotExist
		}
		if u.where.Withholds(full) {
			return nil, fs.ErrPermission
		}
		return u.readAny(ctx, full)
	}
	labeled := sync.OnceValue(func() map[string]string { return u.labels(ctx, rules, read) })
	left := make(map[string][]string) // by page
	g, gctx := background.WithContext(ctx)
	g.SetLimit(u.Workers)
	work := u.unexpanded(settings.Sum64())
	for _, i := range slices.Sorted(maps.Keys(work)) {
		r, fresh := u.records[i], work[i]
		g.Go(onPage(r, func() error {
			if err := gctx.Err(); err != nil {
				return err
			}
			full := path.Join(u.project.DocsDir, r.Path)
			mu.Lock()
			raw, err := u.content(r)
			mu.Unlock()
			if !fresh && err == nil {
				raw, err = u.tree.Read(ctx, full)
			}
			if err != nil || fresh && !expand.Concerns(rules, r.Path, raw) {
				return err
			}
			text := expand.Page(rules, full, raw, read, func(label string) string { return labeled()[label] })
			now := *r
			now.Imports, now.Made = text.Files, u.made(settings.Sum64(), text.Files)
			now.Size, now.CRC, now.Sections = int64(len(text.Content)), crc32.Checksum(text.Content, castagnoli), nil
			now.Kind = page.KindPage // until it is decided
			src := page.Read(&now, text.Content)
			if text.Unopened {
				now.Front.Problem = "it does not stand first, between two lines of ---"
			}
			mu.Lock()
			defer mu.Unlock()
			left[r.Path] = text.Left
			held := !fresh || u.sources[r].Held()
			delete(u.sources, r)
			delete(u.fresh, r)
			u.records[i], u.sources[&now], u.fresh[&now] = &now, src, text.Content
			if !held || len(u.fresh) > maxExpanded {
				src.Forget()
				return u.putAway(readPage{&now, text.Content, src})
			}
			return nil
		}))
	}
	if err := g.Wait(); err != nil {
		return err
	}
	u.tellLeft(left)
	return nil
}

// Bounds of the pages that are read for a reference to one of them.
const (
	maxLabeled      = 20_000
	maxLabeledBytes = 64 << 20
)

// labels are the files of a site of Sphinx by the labels in them, which references from other pages name.
func (u *Update) labels(ctx context.Context, rules *expand.Rules, read func(string) ([]byte, error)) map[string]string {
	out := make(map[string]string)
	files, size := 0, 0
	for _, full := range slices.Sorted(maps.Keys(u.files)) {
		ext, in := path.Ext(full), rules.Root == "" || rules.Root == "." || strings.HasPrefix(full, rules.Root+"/")
		if rules.Kind != api.SiteSphinx || !in || ext != ".rst" && ext != ".md" {
			continue
		}
		if files++; files > maxLabeled || size > maxLabeledBytes || ctx.Err() != nil {
			break
		}
		raw, err := read(full)
		if err != nil {
			continue
		}
		size += len(raw)
		for _, label := range expand.Labels(raw) {
			if _, taken := out[label]; !taken {
				out[label] = full
			}
		}
	}
	return out
}

// unexpanded are the pages whose text has to be made, and whether they were read now.
func (u *Update) unexpanded(settings uint64) map[int]bool {
	work := make(map[int]bool)
	for i, r := range u.records {
		_, fresh := u.fresh[r]
		if !fresh && r.Made == 0 || r.File != "" || r.Kind == page.KindNavigation || r.Kind == page.KindIgnored || site.IsPDF(r.Path) || page.IsData(r.Path) ||
			page.IsHTML(r.Path) || !fresh && r.Made == u.made(settings, r.Imports) {
			continue
		}
		work[i] = fresh
	}
	return work
}

// maxExpanded is how many pages are held in memory whose text was made.
const maxExpanded = 1000

// made is the digest of what gives to a page's text.
func (u *Update) made(settings uint64, files []string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d", settings)
	for _, name := range files {
		fmt.Fprintf(h, " %s:%s:%t", name, u.files[name].Hash, u.where.Withholds(name))
	}
	return max(1, h.Sum64())
}

// tellLeft warns of what pages take in that could not be expanded.
func (u *Update) tellLeft(left map[string][]string) {
	n, pages, example := 0, 0, ""
	for _, p := range slices.Sorted(maps.Keys(left)) {
		if of := left[p]; len(of) > 0 {
			if n += len(of); pages == 0 {
				first, _, _ := strings.Cut(of[0], "\n")
				example = fmt.Sprintf("%s, as %.80q", path.Join(u.project.DocsDir, p), first)
			}
			pages++
		}
	}
	if n > 0 {
		u.broken = append(u.broken, site.Warning{File: strings.SplitN(example, ",", 2)[0],
			Text: fmt.Sprintf("%s on %s can't be expanded from the repository, such as in %s", brief.Count(n, "placeholder"), brief.Count(pages, "page"), example)})
	}
}

// unread are the endings of files that look like pages, and that are not read.
var unread = []string{".docx", ".textile", ".wiki", ".mediawiki", ".rtf", ".odt", ".tex", ".pod", ".creole", ".typ", ".djot", ".dj", ".epub", ".pptx",
	".doc", ".marko", ".ditamap", ".dita"}

// nameUnread warns of files that look like pages and are not read, and of a generator whose rules are not known.
func (u *Update) nameUnread() {
	counts := make(map[string]int)
	var all []string
	for name := range u.files {
		rel, ok := site.Relative(u.project.DocsDir, name)
		if !ok {
			continue
		}
		all = append(all, rel)
		if ext := strings.ToLower(path.Ext(name)); slices.Contains(unread, ext) {
			counts[ext]++
		}
	}
	slices.Sort(all)
	pages := 0
	for _, r := range u.records {
		if r.Kind != page.KindNavigation && r.Kind != page.KindIgnored && r.File == "" {
			pages++
		}
	}
	u.where.NameUnsupported(all, pages)
	if len(counts) == 0 {
		return
	}
	var parts []string
	for _, ext := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[ext], ext))
	}
	u.broken = append(u.broken, site.Warning{File: u.project.DocsDir, Text: "files that look like pages are not read: " + strings.Join(parts, ", ")})
}

// nameFront warns of front matter that does not parse: the site's build may fail on it.
func (u *Update) nameFront() {
	for _, r := range u.records {
		if r.Front.Problem != "" && r.File == "" && (r.Kind == page.KindPage || r.Kind == page.KindPart) {
			u.broken = append(u.broken, site.Warning{File: path.Join(u.project.DocsDir, r.Path),
				Text: "the front matter cannot be read, which may stop the site's build: " + r.Front.Problem})
		}
		if slices.Contains(r.Groups, "") {
			u.broken = append(u.broken, site.Warning{File: path.Join(u.project.DocsDir, r.Path),
				Text: "nobody is shown this page: its groups cannot be read"})
		}
	}
}
