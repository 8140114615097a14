package operator

import (
	"context"
	"io"
	"strings"

	"docent/cmd/docent/build"
	"docent/cmd/docent/stores"
	"docent/persistence/backup"
	"docent/persistence/datadir"
	"docent/persistence/journal"
)

// BackupParams say where a backup goes.
type BackupParams struct {
	Dir string `json:"dir"`
}

// Backup copies the data directory to a new one, consistent in itself.
func (o *Service) Backup(ctx context.Context, p BackupParams, progress Progress) (backup.Report, error) {
	from := backup.Source{
		Data: o.stores.Config.Data, Version: build.Get().Version, Repositories: o.stores.Hub,
		Journal: func(ctx context.Context, w io.Writer) error {
			return o.withJournal(ctx, func(j journal.Store) error {
				file, err := stores.JournalFile(j, "copy it", "back the database up with pg_dump or by your provider's means")
				if err != nil {
					return err
				}
				return file.Backup(w)
			})
		},
	}
	if dsn := o.stores.Config.CatalogDSN; dsn == "" || strings.HasPrefix(dsn, "sqlite:") {
		from.Catalog = o.stores.Catalog.Backup
	}
	if list, err := o.stores.SecretsInUse(ctx); err == nil && len(list) > 0 {
		from.Notes = append(from.Notes, "tokens and webhook secrets that were entered in the console are not in the backup: "+
			"after a restore, enter them again, or copy the folder "+datadir.Secrets+" yourself")
	}
	return backup.Noted(p.Dir, from.Data, func() (backup.Report, error) {
		return backup.Make(ctx, p.Dir, from, progress)
	})
}
