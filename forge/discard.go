package forge

import (
	"context"
	"fmt"
	"os"

	"docent/api"
)

// Holds reports whether there is a repository of a project, or of one that was removed.
func (h *Hub) Holds(id api.ProjectID) bool {
	r, err := h.repo(id)
	if err != nil {
		return false
	}
	_, err = h.open(r)
	return err == nil
}

// Discard removes a repository that was only looked at: the caller knows that no project is kept in it.
func (h *Hub) Discard(ctx context.Context, id api.ProjectID) error {
	r, err := h.repo(id)
	if err != nil {
		return err
	}
	release, err := r.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	r.packing.Lock()
	defer r.packing.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.store, r.known, r.listed = nil, nil, nil
	return h.unlessPinned(func() error {
		if err := os.RemoveAll(h.path(id)); err != nil {
			return fmt.Errorf("remove the repository of %s: %w", id, err)
		}
		return nil
	})
}
