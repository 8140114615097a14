package crawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/temoto/robotstxt"

	"docent/internal/background"
	"docent/internal/cell"
	"docent/search/sources/crawl/article"
	"docent/site"
)

// collected says that a folder's pages were collected; package site owns its file.
type collected = site.Collected

const collectedFile = site.CollectedFile

const (
	believeLastMod = 7 * 24 * time.Hour // after which a page is asked for whatever the sitemap says
	goOn           = 24 * time.Hour     // within which an interrupted crawl resumes rather than starting over
	wrongCanonical = 3                  // pages of different texts that name one canonical address: nobody means that
)

// A run is one crawl. What it knows is changed by one goroutine alone, which has others ask and read.
type run struct {
	crawler  *Crawler
	settings Settings
	scope    *scope
	at       Place
	state    *state
	progress Progress
	max      int // pages
	pause    time.Duration

	robots     *robotstxt.Group
	listedMaps []string // sitemaps that robots.txt names
	follow     bool     // links lead to pages
	starting   bool     // it is not known yet whether they do
	queue      []item
	queued     map[string]bool
	crowded    bool                // more would have been queued than may be asked for
	links      map[string]string   // the addresses that pages lead to, each held once
	queries    map[string]int      // addresses with a query, by their path
	byKey      map[string][]string // pages by what their addresses have in common
	files      map[string]string   // addresses by the file of their page, in lower case
	pages      int                 // of this round
	asked      int                 // addresses in this run
	broken     int                 // pages that broke their parser
	limited    bool                // more was there than may be read
	ended      bool                // the time was over
	notes      []string

	mu  sync.Mutex
	sum Report // what is counted as requests are made
}

// An item is an address to be asked for.
type item struct {
	url    *url.URL
	depth  int
	hops   int // redirects that led to it
	listed listed
}

// A result is what asking for it gave.
type result struct {
	item
	response
	err  error
	text *text
	left string // why it is no page
}

func (r *run) count(resp response) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum.Requests++
	r.sum.Bytes += resp.read
	if resp.code == http.StatusNotModified {
		r.sum.Unchanged++
	}
}

func (r *run) bytes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sum.Bytes
}

func (r *run) complete() bool { return !r.limited && !r.ended }

func (r *run) whole(ctx context.Context) (Report, error) {
	r.pause = r.crawler.o.Pause
	if err := r.begin(); err != nil {
		return Report{}, err
	}
	most := cmp.Or(max(0, r.settings.MaxTime), r.crawler.o.MaxTime)
	timed, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err := r.read(timed)
	if ctx.Err() == nil && timed.Err() != nil {
		r.ended = true
		r.notes = append(r.notes, fmt.Sprintf("reading took longer than %s: the next crawl goes on", most))
		err = nil
	}
	if err != nil {
		return r.report(), err
	}
	return r.finish(ctx)
}

// begin opens a round, or goes on with one that was cut off.
func (r *run) begin() error {
	h := r.state.head
	now := r.crawler.o.Now().UTC()
	if h.Format != format {
		for _, rec := range r.state.records {
			rec.ETag, rec.Modified, rec.LastMod, rec.Round = "", "", "", 0
		}
		h.Done = true
	}
	if h.Round == 0 || h.Done || now.Sub(h.Began) > goOn {
		h.Round, h.Began, h.Done = h.Round+1, now, false
	}
	h.Format = format
	r.links = map[string]string{}
	for _, rec := range r.state.records {
		rec.Links = r.heldOnce(rec.Links)
	}
	r.queued, r.queries, r.byKey, r.files = map[string]bool{}, map[string]int{}, map[string][]string{}, map[string]string{}
	for _, rec := range r.state.records {
		if rec.Kind == isPage {
			r.files[strings.ToLower(rec.File)] = rec.URL
			r.know(rec)
		}
	}
	return r.state.setHead(h)
}

// know notes a page among those whose addresses have something in common.
func (r *run) know(rec *record) {
	if u, err := url.Parse(rec.URL); err == nil {
		if key := sameKey(u); !slices.Contains(r.byKey[key], rec.URL) {
			r.byKey[key] = append(r.byKey[key], rec.URL)
		}
	}
}

// read finds the pages and reads them.
func (r *run) read(ctx context.Context) error {
	if err := r.readRobots(ctx); err != nil {
		return err
	}
	if err := r.readStart(ctx); err != nil {
		return err
	}
	pages, method, err := r.discover(ctx)
	if err != nil {
		return err
	}
	r.sum.Method, r.follow = method, len(pages) == 0
	for _, p := range pages {
		why := r.scope.outside(p.url)
		if why == "" {
			r.sum.Found++
		}
		r.enqueue(item{url: p.url, listed: p})
	}
	if h := r.state.head; h.Sitemap == r.follow {
		h.Sitemap = !r.follow
		if err := r.state.setHead(h); err != nil {
			return err
		}
	}
	if r.follow {
		r.followFrom(r.state.records[r.scope.start.String()], 0)
	}
	return r.drain(ctx)
}

// readStart asks for the address that reading begins at, which says whether there is a site at all.
func (r *run) readStart(ctx context.Context) error {
	at := r.scope.start
	if !r.allowed(at) {
		if len(r.settings.Sitemap) == 0 && len(r.listedMaps) == 0 {
			return fmt.Errorf("robots.txt of %s forbids %s to read %s", at.Host, Robot, at)
		}
		return nil
	}
	r.follow, r.starting = true, true // its links are needed when nothing lists the pages
	defer func() { r.starting = false }()
	r.enqueue(item{url: at})
	if len(r.queue) == 0 {
		return nil // it was read before this run was cut off
	}
	res := r.ask(ctx, r.take(), r.conditions(at.String()))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if res.err != nil {
		return fmt.Errorf("%s: %w", at, res.err)
	}
	if res.code/100 == 3 && res.location != "" {
		if to, err := at.Parse(res.location); err == nil && !r.scope.below(r.scope.at(to)) {
			return fmt.Errorf("%s leads to %s, which is not read with it: name that address", at, to)
		}
	}
	if res.code >= 400 && res.code != http.StatusNotFound && res.code != http.StatusGone {
		return fmt.Errorf("%s: the server answers %d %s", at, res.code, http.StatusText(res.code))
	}
	if res.text != nil {
		h := r.state.head
		h.Description, h.Language = res.text.Description, res.text.Language
		if h != r.state.head {
			if err := r.state.setHead(h); err != nil {
				return err
			}
		}
	}
	return r.handle(res)
}

// drain asks for what is queued until nothing is left.
func (r *run) drain(ctx context.Context) error {
	results := make(chan result)
	inflight := 0
	var failed error
	for {
		for failed == nil && ctx.Err() == nil && len(r.queue) > 0 && inflight < r.crawler.o.AtOnce && r.more(inflight) {
			it := r.take()
			conditions := r.conditions(it.url.String())
			if rec := r.state.records[it.url.String()]; rec != nil && r.believed(rec, it) {
				failed = r.skip(rec, it)
				continue
			}
			inflight++
			background.Go("search/sources/crawl.drain", func() {
				res := result{item: it}
				if err := background.Guard(func() error {
					res = r.ask(ctx, it, conditions)
					return nil
				}); err != nil {
					r.crawler.o.Log.Error("a web page broke the crawl", "url", it.url.String(), "error", err)
					res.err = errBroke
				}
				results <- res
			})
		}
		if inflight == 0 {
			break
		}
		res := <-results
		inflight--
		if ctx.Err() != nil || failed != nil {
			continue // what was asked for is thrown away: it is asked for again
		}
		if errors.Is(res.err, errSlow) {
			failed = fmt.Errorf("%s: %w", r.scope.start.Host, res.err)
			continue
		}
		if broken(res.err) || errors.Is(res.err, errBroke) {
			r.countBroken()
		}
		failed = r.handle(res)
		r.progress("reading "+r.scope.origin+r.scope.prefix, r.asked, r.asked+inflight+len(r.queue))
	}
	if failed == nil {
		failed = ctx.Err()
	}
	return failed
}

// errBroke is of a page that made the crawl itself panic.
var errBroke = errors.New("it broke the program that reads it")

// countBroken ends the reading of a site many of whose pages break their parser: each costs seconds.
func (r *run) countBroken() {
	if r.broken++; r.broken == maxBroken {
		r.limited = true
		r.notes = append(r.notes, fmt.Sprintf("%d pages broke the program that reads them: reading was ended", r.broken))
		r.queue = nil
	}
}

// more reports whether one more address may be asked for, with so many under way.
func (r *run) more(inflight int) bool {
	switch {
	case r.pages+inflight >= r.max:
		if inflight == 0 {
			r.limited = true
			r.notes = append(r.notes, fmt.Sprintf("more than %d pages: the others are not read (--max-pages)", r.max))
		}
		return false
	case r.asked > 4*r.max+1000:
		r.limited = true
		r.notes = append(r.notes, "too many addresses that are no pages: reading was ended")
		r.queue = nil
		return false
	case r.bytes() > r.crawler.o.MaxBytes:
		r.limited = true
		r.notes = append(r.notes, fmt.Sprintf("more than %d MB: reading was ended", r.crawler.o.MaxBytes>>20))
		r.queue = nil
		return false
	}
	return true
}

func (r *run) take() item {
	it := r.queue[0]
	r.queue = r.queue[1:]
	r.asked++
	return it
}

// enqueue queues an address, once.
func (r *run) enqueue(it item) {
	address := it.url.String()
	if r.queued[address] || r.scope.outside(it.url) != "" || it.depth > maxDepth {
		return
	}
	if len(r.queued) >= r.maxListed() {
		r.crowd()
		return
	}
	r.queued[address] = true
	if it.url.RawQuery != "" && it.depth > 0 {
		if r.queries[it.url.Path]++; r.queries[it.url.Path] > maxQueries {
			if r.queries[it.url.Path] == maxQueries+1 {
				r.notes = append(r.notes, fmt.Sprintf("%s%s has more than %d addresses by its query: the others are not read",
					r.scope.origin, it.url.Path, maxQueries))
			}
			return
		}
	}
	if !r.allowed(it.url) || it.listed.fetch != nil && !r.allowed(it.listed.fetch) {
		_ = r.handle(result{item: it, left: "robots.txt forbids it"})
		return
	}
	rec := r.state.records[address]
	if rec != nil && rec.Round == r.state.head.Round { // this round was cut off after it
		if rec.Kind == isPage {
			r.pages++
		}
		r.lead(rec, it)
		return
	}
	r.queue = append(r.queue, it)
}

// lead goes on to where an address leads.
func (r *run) lead(rec *record, it item) {
	if rec.Of != "" && (rec.Kind == isRedirect || rec.Kind == isDuplicate) {
		if to := r.scope.parse(rec.Of); to != nil {
			r.enqueue(item{url: to, depth: it.depth, hops: it.hops + 1})
		}
	}
	r.followFrom(rec, it.depth)
}

func (r *run) followFrom(rec *record, depth int) {
	if !r.follow || r.starting || rec == nil {
		return
	}
	for _, l := range rec.Links {
		if to := r.scope.parse(l); to != nil {
			r.enqueue(item{url: to, depth: depth + 1})
		}
	}
}

// conditions are the headers by which a server says that what we hold is unchanged.
func (r *run) conditions(address string) http.Header {
	rec := r.state.records[address]
	if rec == nil || !r.intact(rec) {
		return nil
	}
	if rec.Same { // its text was another page's
		if of := r.state.records[rec.Of]; of == nil || of.Kind != isPage || of.Text != rec.Text {
			return nil
		}
	}
	return rec.conditions()
}

func (rec *record) conditions() http.Header {
	h := http.Header{}
	if rec.ETag != "" {
		h.Set("If-None-Match", rec.ETag)
	}
	if rec.Modified != "" {
		h.Set("If-Modified-Since", rec.Modified)
	}
	return h
}

// believed reports whether a page need not be asked for, since the sitemap says that it is what we hold.
func (r *run) believed(rec *record, it item) bool {
	if it.listed.held {
		return rec.Kind == isPage && r.intact(rec)
	}
	return it.listed.lastmod != "" && it.listed.lastmod == rec.LastMod && rec.Why == "" && rec.Kind == isPage &&
		!mayChangeAgain(rec.LastMod, rec.Checked) && r.crawler.o.Now().Sub(rec.Checked) < believeLastMod && r.intact(rec)
}

// mayChangeAgain reports whether a page may change and keep its lastmod, which often has only a day: whether it was checked
// before that day had ended everywhere.
func mayChangeAgain(lastmod string, checked time.Time) bool {
	day, err := time.Parse(time.DateOnly, lastmod)
	return err == nil && checked.Before(day.Add(36*time.Hour))
}

func (r *run) skip(rec *record, it item) error {
	next := *rec
	next.Round = r.state.head.Round
	r.pages++
	r.mu.Lock()
	r.sum.Skipped++
	r.mu.Unlock()
	r.lead(&next, it)
	return r.state.put(&next)
}

// ask asks for an address and reads what comes. It changes nothing.
func (r *run) ask(ctx context.Context, it item, conditions http.Header) (res result) {
	res.item = it
	if res.text = it.listed.text; res.text != nil {
		res.code, res.header = http.StatusOK, http.Header{}
		return res
	}
	from := it.url
	if it.listed.fetch != nil {
		from = it.listed.fetch
	}
	res.response, res.err = r.get(ctx, from, conditions, r.crawler.o.MaxPage)
	if res.err != nil || res.code != http.StatusOK {
		return res
	}
	if it.listed.fetch != nil && res.kind != "text/markdown" && res.kind != "text/x-markdown" && res.kind != "text/plain" &&
		res.kind != "" && res.kind != "application/octet-stream" {
		it.listed.fetch = nil // it is no Markdown after all
		return r.ask(ctx, it, nil)
	}
	if res.over {
		res.left = fmt.Sprintf("is larger than %d MB", r.crawler.o.MaxPage>>20)
		return res
	}
	t, left, err := r.readBody(ctx, it, res.response)
	if err != nil {
		res.err = err
		return res
	}
	var page article.Page
	page.Obey(res.header.Values("X-Robots-Tag"), Robot)
	t.NoIndex, t.NoFollow = t.NoIndex || page.NoIndex, t.NoFollow || page.NoFollow
	switch {
	case t.NoIndex:
		left = "says that it is not to be indexed (noindex)"
	case left == "" && t.Words == 0 && t.Refresh == "":
		left = article.ErrNoText.Error()
	case left == "" && t.By != "PDF" && int64(len(t.Markdown)) > r.crawler.o.MaxPage:
		left = "is too large as Markdown"
	}
	res.text, res.left = &t, left
	return res
}

// readBody reads what came by its type, and says why it is no page.
func (r *run) readBody(ctx context.Context, it item, res response) (t text, left string, err error) {
	contentType := res.header.Get("Content-Type")
	switch kind := res.kind; {
	case kind == "application/pdf":
		return text{Title: path.Base(it.url.Path), By: "PDF", Markdown: res.body, Words: 1}, "", nil
	case kind == "text/markdown", kind == "text/x-markdown", it.listed.fetch != nil,
		kind == "text/plain" && isMarkdown(it.url.Path):
		t = readMarkdown(article.Decode(res.body, contentType))
		t.Trail = it.listed.trail
		return t, "", nil
	case kind == "text/plain":
		return readPlain(it.url, article.Decode(res.body, contentType)), "", nil
	case kind == "text/html", kind == "application/xhtml+xml", kind == "":
		out, err := cell.Call[htmlOutput](ctx, r.crawler.o.Cell, kindPage,
			htmlInput{res.body, cmp.Or(contentType, "text/html"), it.url.String(), r.settings})
		return out.Article, out.Left, err
	default:
		return t, "is of the type " + kind + ", which is not read", nil
	}
}

// at is a parsed address as the scope compares them.
func (s *scope) at(u *url.URL) *url.URL {
	if p := s.parse(u.String()); p != nil {
		return p
	}
	return normal(u)
}

// handle takes over what was found at an address.
func (r *run) handle(res result) error {
	address := res.url.String()
	rec := &record{URL: address}
	if old := r.state.records[address]; old != nil {
		copied := *old
		rec = &copied
	}
	rec.Round, rec.Depth, rec.Fetch = r.state.head.Round, res.depth, res.listed.from
	if res.err == nil && res.code != 0 && res.code != http.StatusNotModified {
		rec.Failures, rec.Why, rec.Of, rec.Same = 0, "", "", false
	}
	if res.err == nil {
		rec.Checked = r.crawler.o.Now().UTC()
	}
	var err error
	switch {
	case res.left != "":
		r.leave(rec, res)
	case res.err != nil:
		r.fail(rec, res.err.Error())
	case res.code == http.StatusNotModified:
		rec.Failures = 0
		if rec.Kind == isPage {
			rec.Why = ""
		}
	case res.code/100 == 3:
		r.redirect(rec, res, res.location)
	case res.code == http.StatusNotFound || res.code == http.StatusGone:
		rec.Kind, rec.Why, rec.ETag, rec.Modified, rec.Links = isGone, fmt.Sprint(res.code), "", "", nil
	case res.code != http.StatusOK:
		r.fail(rec, fmt.Sprintf("the server answers %d %s", res.code, http.StatusText(res.code)))
	default:
		err = r.take200(rec, res)
	}
	if err != nil {
		return err
	}
	if res.err == nil {
		rec.LastMod = res.listed.lastmod
	}
	if rec.Kind == isPage {
		r.pages++
		r.know(rec)
	}
	if err := r.state.put(rec); err != nil {
		return err
	}
	r.lead(rec, res.item)
	return nil
}

// leave takes over that an address is no page.
func (r *run) leave(rec *record, res result) {
	rec.Kind, rec.Why = isLeftOut, res.left
	if res.header != nil {
		rec.ETag, rec.Modified = res.header.Get("ETag"), res.header.Get("Last-Modified")
	}
	rec.Links = nil
	if res.text != nil && !res.text.NoFollow {
		rec.Links = r.linksOf(res.text.Page)
	}
}

// fail takes over that an address could not be asked for: what it was it is still.
func (r *run) fail(rec *record, why string) {
	rec.Failures++
	rec.Why = why
	if rec.Kind == "" || rec.Kind == isGone {
		rec.Kind = isFailed
	}
}

func (r *run) redirect(rec *record, res result, location string) {
	rec.Kind, rec.ETag, rec.Modified, rec.Links = isLeftOut, "", "", nil
	to, err := res.url.Parse(location)
	if err != nil || location == "" {
		rec.Why = "is redirected to nowhere"
		return
	}
	at := r.scope.at(to)
	switch why := r.scope.outside(at); {
	case at.String() == rec.URL:
		rec.Why = "is redirected to " + to.String() + ", which is the same address here: name that one as the start"
	case why != "":
		rec.Why = "leads to " + to.String() + ", which " + why
	case res.hops >= maxHops:
		rec.Why = "is redirected too often"
	default:
		rec.Kind, rec.Of = isRedirect, at.String()
	}
}

// linksOf are the addresses within the scope that a page leads to.
func (r *run) linksOf(p article.Page) (out []string) {
	if !r.follow {
		return nil
	}
	seen := map[string]bool{}
	for _, l := range p.Links {
		if to := r.scope.parse(l); to != nil && r.scope.outside(to) == "" && !seen[to.String()] && len(out) < 3000 {
			seen[to.String()] = true
			out = append(out, to.String())
		}
	}
	return r.heldOnce(out)
}

// heldOnce are links whose texts are in memory once for all pages, without those that are more than may be asked for.
func (r *run) heldOnce(links []string) (out []string) {
	for _, l := range links {
		held, ok := r.links[l]
		if !ok {
			if len(r.links) >= r.maxListed() {
				r.crowd()
				continue
			}
			held = strings.Clone(l)
			r.links[held] = held
		}
		out = append(out, held)
	}
	return out
}

// crowd notes that pages lead to more addresses than may be asked for.
func (r *run) crowd() {
	if !r.crowded {
		r.notes = append(r.notes, fmt.Sprintf("the site leads to more than %d addresses: the others are not read", r.maxListed()))
	}
	r.crowded, r.limited = true, true
}

// take200 takes over a page.
func (r *run) take200(rec *record, res result) error {
	t := res.text
	rec.ETag, rec.Modified = res.header.Get("ETag"), res.header.Get("Last-Modified")
	rec.Links = nil
	if !t.NoFollow {
		rec.Links = r.linksOf(t.Page)
	}
	if t.Refresh != "" && t.Words < 50 {
		r.redirect(rec, res, t.Refresh)
		return nil
	}
	rec.Text = hashOf(append([]byte(t.Title+"\n"), t.Markdown...))
	if to := r.canonical(rec, t.Canonical); to != "" {
		rec.Kind, rec.Of = isDuplicate, to
		return nil
	}
	for _, other := range r.byKey[sameKey(res.url)] {
		o := r.state.records[other]
		if o != nil && o.URL != rec.URL && o.Kind == isPage && o.Text == rec.Text && o.Round == rec.Round {
			rec.Kind, rec.Of, rec.Same = isDuplicate, o.URL, true
			return nil
		}
	}
	if t.Description == r.state.head.Description && rec.URL != r.scope.start.String() {
		t.Description = "" // of the site, not of the page
	}
	if rec.Kind != isPage {
		rec.Since = rec.Round
	}
	rec.Kind, rec.Title, rec.Words, rec.Trail, rec.By, rec.Edit = isPage, t.Title, t.Words, t.Trail, t.By, t.Edit
	ext, content := ".md", []byte(nil)
	if t.By == "PDF" {
		ext, content = ".pdf", t.Markdown
	} else {
		content = fileText(t, res.url)
	}
	if rec.File == "" || path.Ext(rec.File) != ext {
		r.remove(rec.File)
		rec.File = r.fileFor(res.url, ext)
	}
	hash := hashOf(content)
	if hash == rec.Hash && r.intact(rec) {
		return nil
	}
	rec.Hash, rec.Changed = hash, rec.Round
	return r.write(rec.File, content)
}

// canonical is the page that this one is another name of; empty if it is itself.
func (r *run) canonical(rec *record, address string) string {
	if address == "" || rec.Own {
		return ""
	}
	to := r.scope.parse(address)
	if to == nil || to.String() == rec.URL || r.scope.outside(to) != "" || !r.allowed(to) {
		return ""
	}
	if known := r.state.records[to.String()]; known != nil && known.Kind == isRedirect && known.Of == rec.URL {
		return "" // it leads back here
	}
	return to.String()
}

// finish takes out what is no more, once all is known.
func (r *run) finish(ctx context.Context) (Report, error) {
	if r.complete() {
		again := r.wrongNames()
		for len(again) > 0 {
			for _, rec := range again {
				rec.Own, rec.ETag, rec.Modified, rec.Round = true, "", "", 0
				delete(r.queued, rec.URL)
				if u := r.scope.parse(rec.URL); u != nil {
					r.enqueue(item{url: u, depth: rec.Depth})
				}
			}
			if err := r.drain(ctx); err != nil {
				return r.report(), err
			}
			again = r.wrongNames()
		}
	}
	round := r.state.head.Round
	pages := 0
	for _, rec := range r.state.records {
		if rec.Kind == isPage && rec.Round == round {
			pages++
		}
	}
	if pages == 0 {
		return r.report(), r.nothing()
	}
	if err := r.clear(round); err != nil {
		return r.report(), err
	}
	if err := r.writeCollected(); err != nil {
		return r.report(), err
	}
	h := r.state.head
	h.Done = !r.ended
	if err := r.state.setHead(h); err != nil {
		return r.report(), err
	}
	out := r.report()
	return out, errors.Join(r.state.compact(), r.keepReport(out))
}

// clear removes the files of pages that are none any more, and forgets addresses that nothing leads to.
func (r *run) clear(round int) error {
	for _, rec := range r.state.all() {
		u, err := url.Parse(rec.URL)
		unlisted := rec.Round != round && r.complete()
		if err != nil || unlisted || r.scope.outside(u) != "" {
			if rec.Kind == isPage {
				r.sum.Gone++
			}
			r.remove(rec.File)
			if err := r.state.forget(rec.URL); err != nil {
				return err
			}
			continue
		}
		if rec.Kind != isPage && rec.File != "" {
			r.sum.Gone++
			r.remove(rec.File)
			next := *rec
			next.File, next.Hash = "", ""
			if err := r.state.put(&next); err != nil {
				return err
			}
		}
	}
	return nil
}

// wrongNames are pages that were taken for other names of pages which there are not, or which nobody can mean: when
// many pages of different texts name one canonical address.
func (r *run) wrongNames() (out []*record) {
	texts := map[string]map[string]bool{}
	for _, rec := range r.state.records {
		if rec.Kind == isDuplicate && !rec.Same {
			if texts[rec.Of] == nil {
				texts[rec.Of] = map[string]bool{}
			}
			texts[rec.Of][rec.Text] = true
		}
	}
	for _, rec := range r.state.all() {
		if rec.Kind != isDuplicate || rec.Own || rec.Round != r.state.head.Round {
			continue
		}
		if !r.leadsToPage(rec.Of) || len(texts[rec.Of]) > wrongCanonical {
			out = append(out, rec)
		}
	}
	return out
}

func (r *run) leadsToPage(address string) bool {
	for range maxHops {
		rec := r.state.records[address]
		if rec == nil {
			return false
		}
		if rec.Kind == isPage {
			return true
		}
		address = rec.Of
	}
	return false
}

// nothing says why no page was found.
func (r *run) nothing() error {
	why := map[string]int{}
	for _, rec := range r.state.records {
		if rec.Why != "" {
			why[rec.Why]++
		}
	}
	most := ""
	for w, n := range why {
		if n > why[most] || n == why[most] && w < most {
			most = w
		}
	}
	if most == "" {
		return fmt.Errorf("there is no page at %s%s", r.scope.origin, r.scope.prefix)
	}
	return fmt.Errorf("no page of %s%s could be read: it %s", r.scope.origin, r.scope.prefix, most)
}
