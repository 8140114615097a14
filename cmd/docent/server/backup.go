package server

import (
	"context"
	"fmt"
	"os"

	"docent/cmd/docent/operator"
	"docent/internal/background"
	"docent/persistence/backup"
	"docent/persistence/datadir"
)

// newBackups makes the backups that the console asks for.
func (a *Server) newBackups() *backup.Keeper {
	return backup.NewKeeper(backup.KeeperDeps{Data: a.config.Data, Folder: a.config.BackupDir, Now: a.config.Now,
		Log: a.Log, Make: func(ctx context.Context, dir string, progress func(string, int, int)) (backup.Report, error) {
			return a.Operator.Backup(ctx, operator.BackupParams{Dir: dir}, progress)
		}})
}

// settle completes a data directory that was restored from a backup, before anything works on it. The listings are
// rebuilt: they were copied after the journal and may be ahead of it. Missing indexes are built, since without them
// the questions that wait would find nothing.
func (a *Server) settle(ctx context.Context) error {
	restored, err := datadir.Has(a.config.Data, datadir.Backup)
	if err != nil {
		return err
	}
	if restored {
		for _, p := range a.listings {
			if err := p.Rebuild(ctx); err != nil {
				return fmt.Errorf("rebuild the listings of a restored backup: %w", err)
			}
		}
	}
	projects, err := a.Stores.Catalog.Projects(ctx)
	if err != nil {
		return err
	}
	folders, err := os.ReadDir(a.dir.File(datadir.Index))
	if err != nil {
		return err
	}
	parts := 0
	for _, p := range projects {
		parts += len(p.Parts())
	}
	if !restored && len(folders) >= parts {
		return nil // without opening all of them
	}
	var missing background.Work
	for _, p := range projects {
		if p.Kind.Collected() || a.Stores.Library.Commit(p.ID) != "" { // what others hold is asked for once readers are served
			continue
		}
		missing.Go("cmd/docent/server.settle", func() {
			_, err := a.Stores.Source.Refresh(ctx, p, func(string, int, int) {})
			a.Stores.Source.Report(p.ID, err) // the others can be served
		})
	}
	if missing.Wait(); !restored {
		return nil
	}
	a.Log.Info("backup restored", "position", a.Journal.Position())
	return os.Remove(a.dir.File(datadir.Backup))
}
