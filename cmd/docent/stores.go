package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"docent/api"
	"docent/datadir"
	"docent/disk"
	"docent/forge"
	"docent/ingest"
	"docent/ingest/shared"
	"docent/issues"
	"docent/model/remote"
	"docent/persistence/catalog"
	"docent/search"
	"docent/secrets"
	"docent/uploads"
)

// stores are what an operator's command and the server both need: the catalogue, the repositories and the indexes.
type stores struct {
	config  Config
	dir     *datadir.Dir
	catalog *catalog.Catalog
	hub     *forge.Hub
	library *search.Library
	source  *ingest.Reader
	secrets *secrets.Store
	embeds  remote.Set // the endpoint of embeddings, where there is one
	uploads *uploads.Store
	sites   webSites
	shared  *catalog.Shared // with other nodes; nil on a server that is alone
	nodes   *shared.Sources // the same of sources
	turned  chan struct{}   // receives when a pull request of the built-in host was merged or closed
}

func openStores(ctx context.Context, dir *datadir.Dir, c Config, log *slog.Logger) (_ *stores, err error) {
	s := &stores{config: c, dir: dir, secrets: secrets.Open(dir.File(datadir.Secrets)), turned: make(chan struct{}, 1),
		uploads: &uploads.Store{Dir: dir.File(datadir.Sources)}, sites: newWebSites(log, dir.File(datadir.Previews))}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	dsn := catalogDSN(dir, c)
	if err := catalogInPlace(dir, dsn); err != nil {
		return s, err
	}
	if s.catalog, err = catalog.Open(ctx, dsn, c.catalogOptions(log)); err != nil {
		return s, fmt.Errorf("open the catalogue: %w", err)
	}
	// Not before the catalogue's migration: where that fails, the version before can go on.
	if err := datadir.Mark(dir.Path, buildVersion().Version); disk.Full(err) {
		log.Warn("no room to note the format of the data directory: do not start an older version on it", "error", err)
	} else if err != nil {
		return s, datadir.Unwritable(dir.Path, err)
	}
	if !c.shared() {
		if err := journalInPlace(ctx, dir, s.catalog); err != nil {
			return s, err
		}
	}
	if err := s.share(ctx); err != nil {
		return s, err
	}
	embedder, err := s.openEmbedder()
	if err != nil {
		return s, fmt.Errorf("set up the embeddings: %w", err)
	}
	if s.library, err = search.Open(dir.File(datadir.Index), search.Options{Log: log, MaxOpen: c.MaxOpenIndexes,
		Memory: c.IndexMemory, Embedder: embedder, MeaningInBoxes: c.Embeddings.Boxes, PDF: newPDFReader(),
		Sources: s.sources, Missing: func(id api.ProjectID) { s.source.Missing(id) }}); err != nil {
		return s, fmt.Errorf("open the search indexes: %w", err)
	}
	merged := func(project api.ProjectID) { s.source.Merged(project) }
	host, err := s.sharedHost(ctx)
	if err != nil {
		return s, err
	}
	s.hub, err = forge.Open(dir.File(datadir.Repos), s.catalog, forge.Options{Log: log, Now: c.now, Merged: merged,
		Turned: s.pullsTurned, CoAuthor: s.coAuthor, Stored: s.secrets.Read, Shared: host})
	if err != nil {
		return s, fmt.Errorf("open the repositories: %w", err)
	}
	if host != nil {
		if err := s.takeIn(ctx); err != nil {
			return s, err
		}
	}
	guard, err := ingest.OpenGuard(dir.File(datadir.Reading), buildVersion().key(), dir.Crashed, c.now, log)
	if err != nil {
		return s, err
	}
	s.source = ingest.New(ingest.Deps{
		Catalog: s.catalog, Repositories: s.hub, Index: s.library, Guard: guard, Log: log, BeforeIndexing: c.beforeIndexing,
		Collecting: dir.File(datadir.Sources), Collectors: s.collectors(), Nodes: s.others(),
	})
	return s, nil
}

// pullsTurned says that jobs may have to be told what became of their pull requests.
func (s *stores) pullsTurned() {
	select {
	case s.turned <- struct{}{}:
	default:
	}
}

// sources are those that a project's readers are answered from.
func (s *stores) sources(ctx context.Context, project api.ProjectID) ([]search.Source, error) {
	p, err := s.catalog.Project(ctx, project)
	if err != nil {
		return nil, err
	}
	return search.SourcesOf(p), nil
}

// sweep removes what a removal that broke off has left.
func (s *stores) sweep(ctx context.Context, log *slog.Logger) {
	if err := os.RemoveAll(s.dir.File(datadir.Previews)); err != nil {
		log.Warn("what previews of web sites left behind could not be removed", "error", err)
	}
	if err := s.sweepSecrets(ctx); err != nil {
		log.Warn("secrets that no project uses could not be removed", "error", err)
	}
	if err := s.sweepSources(ctx); err != nil {
		log.Warn("what is left of removed sources could not be removed", "error", err)
	}
}

// sweepSources removes what was kept of sources that no project has any more.
func (s *stores) sweepSources(ctx context.Context) error {
	var names []string
	for _, folder := range []string{datadir.Repos, datadir.Sources} {
		entries, err := os.ReadDir(s.dir.File(folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			names = append(names, strings.TrimSuffix(e.Name(), ".git"))
		}
	}
	return s.source.Leftovers(ctx, names)
}

// collectors bring the pages of sources that are neither folders nor repositories.
func (s *stores) collectors() map[api.SourceKind]ingest.Collector {
	return map[api.SourceKind]ingest.Collector{api.SourceZip: uploads.Zips{}, api.SourceWeb: s.sites,
		api.SourceIssues: &issues.Collector{Host: s.hub.Threads(), Now: s.now}}
}

func (s *stores) now() time.Time {
	if s.config.now != nil {
		return s.config.now()
	}
	return time.Now()
}

func (s *stores) operations() *operations { return &operations{stores: s} }

// coAuthor is who stands behind a key: its name, where that is a person's name with an address. Names of keys do not
// change.
func (s *stores) coAuthor(ctx context.Context, id api.KeyID) (string, error) {
	keys, err := s.catalog.Keys(ctx, catalog.KeyQuery{})
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

// checkModel refuses a model that the configuration does not name.
func (s *stores) checkModel(name string) error {
	if _, ok := s.config.Models[name]; ok || name == "" || name == "builtin" {
		return nil
	}
	return &api.InvalidError{Problems: []api.Problem{{Field: "model",
		Message: fmt.Sprintf("there is no model %q: use builtin, or add [models.%s] to the configuration", name, name)}}}
}

// Close closes what is open, in the reverse order.
func (s *stores) Close() error {
	var errs []error
	if s.source != nil {
		s.source.Close()
	}
	if s.hub != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		errs = append(errs, s.hub.Shutdown(ctx))
	}
	if s.library != nil {
		errs = append(errs, s.library.Close())
	}
	if s.catalog != nil {
		errs = append(errs, s.catalog.Close())
	}
	return errors.Join(errs...)
}
