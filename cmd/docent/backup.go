package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"docent/backup"
	"docent/datadir"
	"docent/persistence/journal"
)

const opBackup = "backup"

type backupParams struct {
	Dir string `json:"dir"`
}

func (o *operations) backup(ctx context.Context, p backupParams, progress Progress) (backup.Report, error) {
	from := backup.Source{
		Data: o.stores.config.Data, Version: buildVersion().Version, Repositories: o.stores.hub,
		Journal: func(ctx context.Context, w io.Writer) error {
			return o.withJournal(ctx, func(j journal.Store) error {
				file, err := journalFile(j, "copy it", "back the database up with pg_dump or by your provider's means")
				if err != nil {
					return err
				}
				return file.Backup(w)
			})
		},
	}
	if dsn := o.stores.config.CatalogDSN; dsn == "" || strings.HasPrefix(dsn, "sqlite:") {
		from.Catalog = o.stores.catalog.Backup
	}
	if list, err := o.stores.secretsInUse(ctx); err == nil && len(list) > 0 {
		from.Notes = append(from.Notes, "tokens and webhook secrets that were entered in the console are not in the backup: "+
			"after a restore, enter them again, or copy the folder "+datadir.Secrets+" yourself")
	}
	return backup.Noted(p.Dir, from.Data, func() (backup.Report, error) {
		return backup.Make(ctx, p.Dir, from, progress)
	})
}

// newBackups makes the backups that the console asks for.
func (a *app) newBackups() *backup.Keeper {
	ops := a.stores.operations()
	ops.app = a
	return backup.NewKeeper(backup.KeeperDeps{Data: a.config.Data, Folder: a.config.BackupDir, Now: a.config.now,
		Log: a.log, Make: func(ctx context.Context, dir string, progress func(string, int, int)) (backup.Report, error) {
			return ops.backup(ctx, backupParams{dir}, progress)
		}})
}

// settle completes a data directory that was restored from a backup, before anything works on it. The listings are
// rebuilt: they were copied after the journal and may be ahead of it. Missing indexes are built, since without them
// the questions that wait would find nothing.
func (a *app) settle(ctx context.Context) error {
	restored, err := datadir.Has(a.config.Data, datadir.Backup)
	if err != nil {
		return err
	}
	if restored {
		for _, p := range a.listings {
			if err := p.Rebuild(ctx); err != nil {
				return fmt.Errorf("make the listings of a restored backup anew: %w", err)
			}
		}
	}
	projects, err := a.stores.catalog.Projects(ctx)
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
	var missing sync.WaitGroup
	for _, p := range projects {
		if p.Kind.Collected() || a.stores.library.Commit(p.ID) != "" { // what others hold is asked for once readers are served
			continue
		}
		missing.Go(func() {
			_, err := a.stores.source.Refresh(ctx, p, func(string, int, int) {})
			a.stores.source.Report(p.ID, err) // the others can be served
		})
	}
	if missing.Wait(); !restored {
		return nil
	}
	a.log.Info("a backup was restored", "position", a.journal.Position())
	return os.Remove(a.dir.File(datadir.Backup))
}

func newBackupCommand(prog program) *cobra.Command {
	o := &operator{prog: prog}
	cmd := &cobra.Command{
		Use: "backup DIR", Short: "Copy the data directory to a new directory; the server may run", Args: cobra.ExactArgs(1),
		Long: "Copy the data directory to a new directory, consistent in itself, while the server runs or not. Everything that was\n" +
			"acknowledged before the command began is in the copy. Search indexes are left out: they are built again.\n\n" +
			"To restore, put the copy where the data directory was and start the server.",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			return show(o, cmd, opBackup, backupParams{dir}, func(w io.Writer, r backup.Report) error {
				fmt.Fprintf(w, "%s: journal up to position %d (%d bytes), catalogue (%d bytes), %d repositories (%d files)\n",
					dir, r.Position, r.JournalBytes, r.CatalogBytes, r.Repositories, r.Files)
				_, err := fmt.Fprintln(w, strings.Join(r.Notes, "\n"))
				return err
			})
		},
	}
	operatorFlags(cmd, o)
	return cmd
}
