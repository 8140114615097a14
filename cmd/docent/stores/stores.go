// Package stores opens what a data directory holds, for a server and for commands where none runs: the catalog, the journal, the
// repositories, the indexes, and the secrets.
package stores

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"docent/api"
	"docent/cmd/docent/build"
	"docent/cmd/docent/config"
	"docent/forge"
	"docent/internal/disk"
	"docent/internal/task"
	"docent/model/remote"
	"docent/persistence/catalog"
	"docent/persistence/datadir"
	"docent/persistence/secrets"
	"docent/search"
	"docent/search/sources"
	"docent/search/sources/issues"
	"docent/search/sources/shared"
	"docent/search/sources/uploads"
)

// Stores are what an operator's command and the server both need: the catalog, the repositories and the indexes.
type Stores struct {
	Config  config.Config
	Dir     *datadir.Dir
	Catalog *catalog.Catalog
	Hub     *forge.Hub
	Library *search.Library
	Source  *sources.Reader
	Secrets *secrets.Store
	Embeds  remote.Set // the endpoint of embeddings, where there is one
	Uploads *uploads.Store
	Sites   WebSites
	Cells   Cells
	Shared  *catalog.Shared // with other nodes; nil on a server that is alone
	Nodes   *shared.Sources // the same of sources
	others  sources.Nodes

	embedder *remote.Embedder  // nil if there is none
	embedsBy string            // the revision of its settings
	embedsAt map[string]string // addresses of the models that this process has asked for vectors, by their ids

	Tasks []task.Task // that one of the nodes does for all

	// Turned is called when a pull request of the built-in host was merged or closed, if a server has set it.
	Turned atomic.Pointer[func()]
}

// Open opens the stores of a data directory, and shares between nodes what they share.
func Open(ctx context.Context, dir *datadir.Dir, c config.Config, log *slog.Logger) (_ *Stores, err error) {
	s := &Stores{Config: c, Dir: dir, Secrets: secrets.Open(dir.File(datadir.Secrets)),
		Uploads: &uploads.Store{Dir: dir.File(datadir.Sources)}, Cells: NewCells(log)}
	s.Sites = newWebSites(log, s.Cells.Reading, dir.File(datadir.Previews))
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	dsn := CatalogDSN(dir, c)
	if err := catalogInPlace(dir, dsn); err != nil {
		return s, err
	}
	if s.Catalog, err = catalog.Open(ctx, dsn, CatalogOptions(c, log)); err != nil {
		return s, fmt.Errorf("open the catalog: %w", err)
	}
	// Not before the catalog's migration: where that fails, the version before can go on.
	if err := datadir.Mark(dir.Path, build.Get().Version); disk.Full(err) {
		log.Warn("could not record the data directory's format (disk full): do not start an older version on it", "error", err)
	} else if err != nil {
		return s, datadir.Unwritable(dir.Path, err)
	}
	if !c.Shared() {
		if err := journalInPlace(ctx, dir, s.Catalog); err != nil {
			return s, err
		}
	}
	if err := s.share(ctx); err != nil {
		return s, err
	}
	connected, err := s.Catalog.LanguageModels(ctx)
	if err != nil {
		return s, err
	}
	embeddings, revision := config.EmbeddingsWith(c, connected, s.Secrets.Read)
	embedder, err := s.openEmbedder(embeddings)
	if s.embedsBy = revision; err != nil {
		return s, fmt.Errorf("set up the embeddings: %w", err)
	}
	var written func([]search.SectionKey) (map[search.SectionKey][]string, error)
	if c.Questions.Model != "" {
		written = s.written
	}
	size := c.SearchSizes()
	if s.Library, err = search.Open(dir.File(datadir.Index), search.Options{Log: log, MaxOpen: c.MaxOpenIndexes,
		Memory: size.Index, CacheBytes: size.Terms, TextBytes: size.Texts, ResultBytes: size.Results, Parsed: size.Parsed,
		Batch: size.Batch, Workers: size.Workers, Embedder: embedder, MeaningInBoxes: c.Embeddings.Boxes, Cell: s.Cells.Reading.Do,
		Sources: s.sources, Written: written, Missing: func(id api.ProjectID) { s.Source.Missing(id) }}); err != nil {
		return s, fmt.Errorf("open the search indexes: %w", err)
	}
	merged := func(project api.ProjectID) { s.Source.Merged(project) }
	host, err := s.sharedHost(ctx)
	if err != nil {
		return s, err
	}
	s.Hub, err = forge.Open(dir.File(datadir.Repos), s.Catalog, forge.Options{Log: log, Now: c.Now, Merged: merged,
		Turned: s.PullsTurned, CoAuthor: s.coAuthor, Stored: s.Secrets.Read, Shared: host})
	if err != nil {
		return s, fmt.Errorf("open the repositories: %w", err)
	}
	if host != nil {
		if err := s.takeIn(ctx); err != nil {
			return s, err
		}
	}
	guard, err := sources.OpenGuard(dir.File(datadir.Reading), build.Get().Key(), dir.Crashed, c.Now, log)
	if err != nil {
		return s, err
	}
	s.Source = sources.New(sources.Deps{
		Catalog: s.Catalog, Repositories: s.Hub, Index: s.Library, Guard: guard, Log: log, BeforeIndexing: c.BeforeIndexing,
		Collecting: dir.File(datadir.Sources), Collectors: s.collectors(), Nodes: s.others,
	})
	return s, nil
}

// PullsTurned says that jobs may have to be told what became of their pull requests.
func (s *Stores) PullsTurned() {
	if f := s.Turned.Load(); f != nil {
		(*f)()
	}
}

// sources are those that a project's readers are answered from.
func (s *Stores) sources(ctx context.Context, project api.ProjectID) ([]search.Source, error) {
	p, err := s.Catalog.Project(ctx, project)
	if err != nil {
		return nil, err
	}
	return s.Source.Answering(p), nil
}

// Sweep removes what a removal that broke off has left.
func (s *Stores) Sweep(ctx context.Context, log *slog.Logger) {
	if err := os.RemoveAll(s.Dir.File(datadir.Previews)); err != nil {
		log.Warn("what previews of web sites left behind could not be removed", "error", err)
	}
	if err := os.RemoveAll(s.Dir.File(datadir.Manual)); err != nil {
		log.Warn("what the documentation's assistant left behind could not be removed", "error", err)
	}
	if err := s.sweepSecrets(ctx); err != nil {
		log.Warn("could not remove unused secrets", "error", err)
	}
	if err := s.sweepSources(ctx); err != nil {
		log.Warn("what is left of removed sources could not be removed", "error", err)
	}
}

// sweepSources removes what was kept of sources that no project has any more.
func (s *Stores) sweepSources(ctx context.Context) error {
	var names []string
	for _, folder := range []string{datadir.Repos, datadir.Sources} {
		entries, err := os.ReadDir(s.Dir.File(folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			names = append(names, strings.TrimSuffix(e.Name(), ".git"))
		}
	}
	return s.Source.Leftovers(ctx, names)
}

// collectors bring the pages of sources that are neither folders nor repositories.
func (s *Stores) collectors() map[api.SourceKind]sources.Collector {
	return map[api.SourceKind]sources.Collector{api.SourceZip: uploads.Zips{}, api.SourceWeb: s.Sites,
		api.SourceIssues: &issues.Collector{Host: s.Hub.Threads(), Now: s.now}}
}

func (s *Stores) now() time.Time {
	if s.Config.Now != nil {
		return s.Config.Now()
	}
	return time.Now()
}

// coAuthor is who stands behind a key: its name, where that is a person's name with an address. Names of keys do not
// change.
func (s *Stores) coAuthor(ctx context.Context, id api.KeyID) (string, error) {
	keys, err := s.Catalog.Keys(ctx, catalog.KeyQuery{})
	if err != nil {
		return "", err
	}
	for _, k := range keys {
		if k.ID == id {
			return k.Name, nil
		}
	}
	return "", nil
}

// Close closes what is open, in the reverse order.
func (s *Stores) Close() error {
	var errs []error
	if s.Source != nil {
		s.Source.Close()
	}
	if s.Hub != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		errs = append(errs, s.Hub.Shutdown(ctx))
	}
	if s.Library != nil {
		errs = append(errs, s.Library.Close())
	}
	s.Cells.Close()
	if s.Catalog != nil {
		errs = append(errs, s.Catalog.Close())
	}
	return errors.Join(errs...)
}

// SecretsInUse are the names of the stored secrets that projects, their webhooks, and connected models refer to.
func (s *Stores) SecretsInUse(ctx context.Context) (map[string]bool, error) {
	projects, err := s.Catalog.Projects(ctx)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, p := range projects {
		for _, part := range p.Parts() {
			for _, name := range part.SecretFiles() {
				used[name] = true
			}
		}
	}
	connected, err := s.Catalog.LanguageModels(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range connected {
		used[m.KeyFile] = true
	}
	outgoing, err := s.Catalog.Webhooks(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, w := range outgoing {
		used[w.Secret], used[w.OldSecret] = true, true
	}
	return used, nil
}

// sweepSecrets removes the stored secrets that no project refers to.
func (s *Stores) sweepSecrets(ctx context.Context) error {
	used, err := s.SecretsInUse(ctx)
	if err != nil {
		return err
	}
	return s.Secrets.Sweep(func(name string) bool { return used[name] })
}
