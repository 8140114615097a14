package workspace

import (
	"runtime"
	"sync"
	"weak"

	"docent/api"
	"docent/site/markup"
)

// SharedPages are those of repositories as they are, parsed: runs on the same files hold them together, so that many
// jobs on one documentation set need the memory of one. What no run holds is gone.
type SharedPages struct {
	mu    sync.Mutex
	pages map[pageName]weak.Pointer[markup.Page]
}

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
	return s.pages[name].Value()
}

// keep shares a page, and gives the one that is shared already if another run was faster.
func (s *SharedPages) keep(name pageName, p *markup.Page) *markup.Page {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.pages[name].Value(); other != nil {
		return other
	}
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
