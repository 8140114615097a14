package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"docent/forge/failure"
	"docent/forge/git"
)

// Push moves a branch from old to new, and nothing else; the remote checks that it still stands at old. known are
// commits that the remote has. A push whose answer was lost counts when the remote shows our commit.
func (r *Remote) Push(
	ctx context.Context, store *git.Store, branch string, old, new plumbing.Hash, known []plumbing.Hash,
) error {
	err := r.send(ctx, store, branch, old, new, known)
	if err == nil || errors.Is(err, failure.ErrMoved) {
		return err
	}
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.timeout)
	defer cancel()
	heads, listErr := r.branches(look)
	switch {
	case listErr != nil:
		return err
	case heads[branch] == new:
		return nil
	case heads[branch] != old:
		return fmt.Errorf("push %s: %w", branch, failure.ErrMoved)
	}
	return err
}

// MayPush asks for a push, and does not make it.
func (r *Remote) MayPush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	s, _, err := r.receives(ctx)
	if err != nil && !errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return r.failure(ctx, "ask for a push", err)
	}
	if s != nil {
		s.Close()
	}
	return nil
}

// receives begins a push, with what the remote has.
func (r *Remote) receives(ctx context.Context) (transport.ReceivePackSession, *packp.AdvRefs, error) {
	return begin(ctx, r, r.client.NewReceivePackSession)
}

func (r *Remote) send(
	ctx context.Context, store *git.Store, branch string, old, new plumbing.Hash, known []plumbing.Hash,
) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	s, refs, err := r.receives(ctx)
	if err != nil {
		return r.failure(ctx, "push", err)
	}
	defer s.Close()
	name := plumbing.NewBranchReferenceName(branch)
	switch refs.References[name.String()] {
	case new:
		return nil
	case old:
	default:
		return fmt.Errorf("push %s: %w", branch, failure.ErrMoved)
	}
	there := map[plumbing.Hash]bool{}
	for _, h := range refs.References {
		there[h] = true
	}
	for _, h := range known {
		there[h] = true
	}
	pack, err := store.PackFor(new, there)
	if err != nil {
		return err
	}
	req := packp.NewReferenceUpdateRequestFromCapabilities(refs.Capabilities)
	req.Commands = []*packp.Command{{Name: name, Old: old, New: new}}
	req.Packfile = io.NopCloser(bytes.NewReader(pack))
	report, err := s.ReceivePack(ctx, req)
	if report != nil {
		for _, c := range report.CommandStatuses {
			if c.ReferenceName == name && c.Status != "ok" {
				return r.refusal(branch, c.Status)
			}
		}
	}
	if err != nil {
		return r.failure(ctx, "push", err)
	}
	return nil
}

// refusal is the remote's own word on a reference that it did not move.
func (r *Remote) refusal(branch, status string) error {
	text := failure.Quote(status, r.secret)
	if strings.Contains(text, "failed to update ref") || strings.Contains(text, "cannot lock ref") ||
		strings.Contains(text, "failed to lock") {
		return fmt.Errorf("%w: push %s: %s", failure.ErrTemporary, branch, text)
	}
	return &failure.Error{Kind: failure.ErrMisconfigured, Declined: true,
		Say: fmt.Sprintf("The repository refuses the push to %s: %s.", branch, strings.TrimRight(text, "."))}
}
