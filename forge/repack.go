package forge

import (
	"docent/internal/background"
)

// packAfter is how many loose objects are put into a pack.
const packAfter = 2000

// maxSmallPacks is how many small packs, such as each fetch leaves one, are put together into one; as many as git has.
const maxSmallPacks = 50

// packInBackground packs a repository's loose objects and small packs in the background if there are many.
func (h *Hub) packInBackground(r *repo) {
	r.mu.Lock()
	st := r.store
	r.mu.Unlock()
	if st == nil || st.Unpacked() < h.o.packAfter && st.Small() < maxSmallPacks || r.suspect.Load() || !r.packing.TryLock() {
		return
	}
	if !h.inBackground(func() {
		defer r.packing.Unlock()
		before := st.Loose()
		err := background.Guard(func() error { return st.Pack(h.work, h.step, h.unlessPinned) })
		switch {
		case h.work.Err() != nil:
		case err != nil:
			h.o.Log.Error("could not pack loose objects; leaving them", "project", r.project, "error", err)
		default:
			h.o.Log.Debug("objects packed", "project", r.project, "before", before, "after", st.Loose())
		}
	}) {
		r.packing.Unlock()
	}
}

// inBackground runs f, which Shutdown waits for, unless the hub is closed.
func (h *Hub) inBackground(f func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.repos == nil {
		return false
	}
	h.background.Go("forge.inBackground", f)
	return true
}

// Pin keeps every file of an object where it is until release is called, so that it can be copied. Work goes on, and
// adds files.
func (h *Hub) Pin() (release func()) {
	h.pinned.RLock()
	return h.pinned.RUnlock
}

// unlessPinned removes what is no longer needed, unless somebody copies the files: then the next packing does.
func (h *Hub) unlessPinned(remove func() error) error {
	if !h.pinned.TryLock() {
		return nil
	}
	defer h.pinned.Unlock()
	return remove()
}
