package stores

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"docent/api"
	"docent/internal/task"
	"docent/persistence/catalog"
	"docent/persistence/datadir"
	"docent/persistence/secrets"
	"docent/search/sources"
	"docent/search/sources/shared"
)

// share keeps in the database what all nodes need and a node that is alone has in its data directory: uploads, what was
// collected, and the secrets that were entered on pages. What this node's data directory has of it is taken over.
func (s *Stores) share(ctx context.Context) (err error) {
	s.others = sources.Single{}
	if !s.Config.Shared() {
		return nil
	}
	if s.Shared, err = s.Catalog.Shared(ctx); err != nil {
		return err
	}
	s.Nodes, s.Tasks = shared.New(s.Shared), []task.Task{s.sweepShared()}
	s.others = s.Nodes
	s.Uploads.Share = func(ctx context.Context, dir string, zip io.Reader) error {
		return s.Nodes.Upload(ctx, api.ProjectID(filepath.Base(dir)), zip)
	}
	projects, err := s.Catalog.Projects(ctx)
	if err != nil {
		return err
	}
	var parts []api.Project
	for _, p := range projects {
		parts = append(parts, p.Parts()...)
	}
	if err := s.Nodes.TakeOver(ctx, parts, s.Dir.File(datadir.Sources)); err != nil {
		return fmt.Errorf("share the sources of this data directory: %w", err)
	}
	nodeSecrets := s.Config.NodeSecrets()
	if len(nodeSecrets) == 0 {
		return nil // one node, which has its secrets in files
	}
	used, err := s.SecretsInUse(ctx)
	if err != nil {
		return err
	}
	return s.Secrets.Share(ctx, sharedSecrets{s.Shared}, nodeSecrets, func(name string) bool { return used[name] })
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
