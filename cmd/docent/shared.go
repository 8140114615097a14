package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"docent/api"
	"docent/cluster"
	"docent/datadir"
	"docent/ingest"
	"docent/ingest/shared"
	"docent/persistence/catalog"
	"docent/secrets"
)

// share keeps in the database what all nodes need and a node that is alone has in its data directory: uploads, what was
// collected, and the secrets that were entered on pages. What this node's data directory has of it is taken over.
func (s *stores) share(ctx context.Context) (err error) {
	if !s.config.shared() {
		return nil
	}
	if s.shared, err = s.catalog.Shared(ctx); err != nil {
		return err
	}
	s.nodes = shared.New(s.shared)
	s.uploads.Share = func(ctx context.Context, dir string, zip io.Reader) error {
		return s.nodes.Upload(ctx, api.ProjectID(filepath.Base(dir)), zip)
	}
	projects, err := s.catalog.Projects(ctx)
	if err != nil {
		return err
	}
	var parts []api.Project
	for _, p := range projects {
		parts = append(parts, p.Parts()...)
	}
	if err := s.nodes.TakeOver(ctx, parts, s.dir.File(datadir.Sources)); err != nil {
		return fmt.Errorf("share the sources of this data directory: %w", err)
	}
	nodeSecrets := s.config.nodeSecrets()
	if len(nodeSecrets) == 0 {
		return nil // one node, which has its secrets in files
	}
	used, err := s.secretsInUse(ctx)
	if err != nil {
		return err
	}
	return s.secrets.Share(ctx, sharedSecrets{s.shared}, nodeSecrets, func(name string) bool { return used[name] })
}

// others are the nodes that read the same sources; nil where there can be none.
func (s *stores) others() ingest.Nodes {
	if s.nodes == nil {
		return nil
	}
	return s.nodes
}

// sharedSecrets keep sealed secrets in the nodes' database.
type sharedSecrets struct{ in *catalog.Shared }

var _ secrets.Values = sharedSecrets{}

const secretValues = "secret/"

func (s sharedSecrets) Put(ctx context.Context, name string, sealed []byte) error {
	_, err := s.in.Put(ctx, secretValues+name, bytes.NewReader(sealed), nil)
	return err
}

func (s sharedSecrets) Get(ctx context.Context, name string) ([]byte, error) {
	return s.in.Read(ctx, secretValues+name)
}

func (s sharedSecrets) Remove(ctx context.Context, name string) error {
	return s.in.Remove(ctx, secretValues+name)
}

func (s sharedSecrets) Ages(ctx context.Context) (map[string]time.Duration, error) {
	list, err := s.in.Blobs(ctx, secretValues)
	ages := make(map[string]time.Duration, len(list))
	for _, b := range list {
		ages[strings.TrimPrefix(b.Name, secretValues)] = b.Age
	}
	return ages, err
}

// sourceNodes are the nodes that follow the same sources.
type sourceNodes struct{ *cluster.Members }

func (n sourceNodes) Self() string { return n.Members.Self().ID }

// Others are those that take requests: one that leaves is not waited for.
func (n sourceNodes) Others() map[string]string {
	others := map[string]string{}
	for _, o := range n.Nodes() {
		if o.ID != n.Self() && !o.Leaving {
			others[o.ID] = o.Name
		}
	}
	return others
}

// startCatchUp is how long a node that starts reads what others have read while it was away, before it takes requests.
const startCatchUp = 20 * time.Second

// catchUp brings what this node answers from to what the others do.
func (a *app) catchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, startCatchUp)
	defer cancel()
	if err := a.stores.source.CatchUp(ctx); err != nil && !errors.Is(err, context.Canceled) {
		a.log.Warn("what this node answers from is not as new yet as what others do", "error", err)
	}
}
