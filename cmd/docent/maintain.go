package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docent/backup"
	"docent/datadir"
	"docent/persistence"
	"docent/retention"
)

// The operations that keep a data directory in order, by name.
const (
	opJournalCheck   = "journal.check"
	opJournalShow    = "journal.show"
	opCatalogRebuild = "catalog.rebuild"
	opCatalogCheck   = "catalog.check"
	opCatalogAccept  = "catalog.accept"
	opBackup         = "backup"
	opThreadList     = "thread.list"
	opThreadDelete   = "thread.delete"
	opStatus         = "status"
)

// maintain performs one of them: on the serving process's own journal and actors, or where none serves, on the files.
func (o *operations) maintain(ctx context.Context, name string, params json.RawMessage, progress Progress) (json.RawMessage, error) {
	switch name {
	case opJournalCheck, opJournalShow:
		if o.app == nil {
			return nil, errors.New("no server runs on this data directory")
		}
		j := o.app.journal
		return inspect(name, params, &inspected{path: j.Path(), check: j.Check, JournalInspection: j.Inspect()})
	case opCatalogRebuild:
		return perform(params, func(struct{}) (catalogRebuilt, error) { return o.rebuildCatalog(ctx) })
	case opCatalogCheck:
		return perform(params, func(struct{}) (catalogReport, error) { return o.checkCatalog(ctx) })
	case opCatalogAccept:
		return perform(params, func(p rowParams) (struct{}, error) {
			return struct{}{}, o.stores.catalog.Accept(ctx, p.Table, p.Row)
		})
	case opBackup:
		return perform(params, func(p backupParams) (backup.Report, error) { return o.backup(ctx, p.Dir, progress) })
	case opThreadList:
		return perform(params, func(p threadParams) (threadList, error) { return o.listThreads(ctx, p) })
	case opThreadDelete:
		return perform(params, func(p threadParams) (threadList, error) { return o.deleteThreads(ctx, p, progress) })
	case opStatus:
		return perform(params, func(struct{}) (serverStatus, error) {
			if o.app == nil {
				return serverStatus{}, errors.New("no server runs on this data directory")
			}
			return o.app.status()
		})
	}
	return nil, fmt.Errorf("there is no operation %q; the server may be of another version than this command", name)
}

// withJournal hands over the serving process's journal, or one that is opened for it.
func (o *operations) withJournal(ctx context.Context, use func(*persistence.Journal) error) error {
	if o.app != nil {
		return use(o.app.journal)
	}
	j, err := persistence.OpenJournal(filepath.Join(o.stores.config.Data, datadir.Journal), persistence.JournalOptions{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("open the journal: %w; `docent journal check` says more", err)
	}
	unpair, err := pair(ctx, o.stores.dir, j, o.stores.catalog)
	if err == nil {
		err = use(j)
		unpair()
	}
	return errors.Join(err, j.Close())
}

// upkeep is what a serving process does and knows beside its work.
type upkeep struct {
	metrics *prometheus.Registry
	began   time.Time
	ready   atomic.Int64 // nanoseconds from the beginning until requests were taken
	woken   atomic.Int64 // nanoseconds until all that was pending had been taken up
	pending int          // streams that called for work at the start
}

// begin begins the upkeep once the server takes requests. It ends with ctx.
func (u *upkeep) begin(ctx context.Context, a *app) {
	u.ready.Store(int64(time.Since(u.began)))
	go func() {
		select {
		case <-a.system.Woken():
			u.woken.Store(int64(time.Since(u.began)))
		case <-ctx.Done():
		}
	}()
	if unused := a.config.ThreadRetention.Duration; unused > 0 {
		keeper := retention.Keeper{Threads: a.system.Threads(), Now: clock, Log: a.log,
			Journal: func() retention.Streams { return a.journal.Inspect() }}
		go keeper.Keep(ctx, unused)
	}
}
