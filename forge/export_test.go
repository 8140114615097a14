package forge

import (
	"context"
	"io"

	"docent/api"
)

// Failing makes a hub fail after the steps for which fault returns an error.
func Failing(o Options, fault func(step string) error) Options {
	o.fault = fault
	return o
}

// Waiting is how many wait for the turn of a project's repository.
func Waiting(h *Hub, project api.ProjectID) int {
	r, err := h.repo(project)
	if err != nil {
		panic(err)
	}
	return int(r.waiting.Load())
}

// Packing makes a hub put loose objects into a pack once there are so many.
func Packing(o Options, after int) Options {
	o.packAfter = after
	return o
}

// Packed waits until nothing of a project's repository is being packed.
func Packed(h *Hub, project api.ProjectID) {
	r, err := h.repo(project)
	if err != nil {
		panic(err)
	}
	r.packing.Lock()
	defer r.packing.Unlock()
}

// Pack puts the loose objects of a project's repository into a pack now.
func Pack(ctx context.Context, h *Hub, project api.ProjectID) error {
	Packed(h, project)
	r, err := h.repo(project)
	if err != nil {
		return err
	}
	st, err := h.open(r)
	if err != nil {
		return err
	}
	return st.Pack(ctx, h.step, h.unlessPinned)
}

// OnDisk fails the reading of a hub's own files if fault returns an error: op is "open" or "read".
func OnDisk(o Options, fault func(op, name string) error) Options {
	o.diskFault = fault
	return o
}

// Inflated is how many bytes a hub has inflated to look at them, and how many of those it held in memory.
func Inflated(h *Hub) (all, held int64) { return h.disk.Inflated() }

// ReadPack brings a pack into a project's repository as a fetch does.
func ReadPack(h *Hub, project api.ProjectID, pack io.Reader) error {
	r, err := h.repo(project)
	if err != nil {
		return err
	}
	st, err := h.open(r)
	if err != nil {
		return err
	}
	return st.ReadPack(pack)
}
