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
	if _, err = h.open(r); err == nil || h.o.Shared == nil {
		return err == nil
	}
	at, err := h.o.Shared.Place(h.work, string(id))
	return err == nil && at.Version > 0
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
	if h.o.Shared != nil {
		if err := h.o.Shared.Remove(ctx, string(id)); err != nil {
			return err
		}
	}
	r.packing.Lock()
	defer r.packing.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.store, r.known, r.listed, r.copied = nil, nil, nil, copied{}
	return h.unlessPinned(func() error {
		if err := os.RemoveAll(h.path(id)); err != nil {
			return fmt.Errorf("remove the repository of %s: %w", id, err)
		}
		return nil
	})
}
