package workspace

import (
	"runtime"
	"sync"
	"time"
	"weak"

	"docent/api"
	"docent/site/markup"
)

// SharedPages are those of repositories as they are, parsed: runs on the same files hold them together, so that many
// jobs on one documentation set need the memory of one. What no run holds is gone, but for some pages that the next
// run is likely to need: jobs come one after the other, and parsing a site is most of what a small change costs.
type SharedPages struct {
	mu    sync.Mutex
	pages map[pageName]weak.Pointer[markup.Page]
	held  map[pageName]*markup.Page
	bytes int // of the sources of those
	until time.Time
	again *time.Timer
}

const (
	heldBytes = 16 << 20         // at most, of sources that are held
	heldFor   = time.Minute      // after the last run that has parsed or read a page
	heldMost  = 10 * time.Minute // after the first one, since what was changed meanwhile is held, too
)

// A pageName names content: the same name, the same bytes.
type pageName struct {
	project api.ProjectID
	path    string
	hash    string
	size    int64
}

func (s *SharedPages) find(name pageName) *markup.Page {
	s.mu.Lock()
	defer s.mu.Unlock()
	page := s.pages[name].Value()
	if page != nil {
		s.hold(name, page)
	}
	return page
}

// hold keeps a page for the next run, if there is room. The caller holds mu.
func (s *SharedPages) hold(name pageName, p *markup.Page) {
	if s.held[name] != nil {
		s.letGo()
		return
	}
	if s.bytes+len(p.Src) > heldBytes {
		return
	}
	if s.held == nil {
		s.held = map[pageName]*markup.Page{}
	}
	if len(s.held) == 0 {
		s.until = time.Now().Add(heldMost)
	}
	s.held[name] = p
	s.bytes += len(p.Src)
	s.letGo()
}

// letGo has what is held let go later. The caller holds mu.
func (s *SharedPages) letGo() {
	wait := min(heldFor, time.Until(s.until))
	if s.again != nil {
		s.again.Reset(wait)
		return
	}
	s.again = time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		clear(s.held)
		s.bytes = 0
	})
}

// keep shares a page, and gives the one that is shared already if another run was faster.
func (s *SharedPages) keep(name pageName, p *markup.Page) *markup.Page {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.pages[name].Value(); other != nil {
		return other
	}
	s.hold(name, p)
	if s.pages == nil {
		s.pages = map[pageName]weak.Pointer[markup.Page]{}
	}
	s.pages[name] = weak.Make(p)
	runtime.AddCleanup(p, s.forget, name)
	return p
}

func (s *SharedPages) forget(name pageName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pages[name].Value() == nil {
		delete(s.pages, name)
	}
}

// named is the name of a file of the base; it is false if the tree does not tell its content by a hash.
func (w *Workspace) named(p string) (pageName, bool) {
	f, ok := w.Base[p]
	return pageName{w.project, p, f.Hash, f.Size}, ok && f.Hash != "" && w.Limits.Shared != nil
}
