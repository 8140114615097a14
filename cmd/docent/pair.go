package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"docent/backup"
	"docent/cluster"
	"docent/datadir"
	"docent/persistence"
	"docent/persistence/catalog"
	"docent/persistence/journal"
)

// catalogDSN names the catalogue of a data directory.
func catalogDSN(dir *datadir.Dir, c Config) string {
	if c.CatalogDSN != "" {
		return c.CatalogDSN
	}
	return "sqlite:" + dir.File(datadir.Catalog)
}

func (c Config) catalogOptions(log *slog.Logger) catalog.Options {
	o := catalog.Options{Log: log, Now: c.now, Nodes: c.shared(), Journal: c.shared()}
	if c.catalog != nil {
		o.DSN = c.catalog.Value
	}
	if id := c.nodeID; id != "" {
		o.Application = cluster.Application(id)
		o.Admit = func(ctx context.Context, conn *pgx.Conn) error { return cluster.Admit(ctx, conn, id) }
	}
	return o
}

// catalogFile is the catalogue's file; empty where it is on PostgreSQL.
func catalogFile(dsn string) string {
	path, ok := strings.CutPrefix(dsn, "sqlite:")
	if !ok {
		return ""
	}
	return strings.TrimPrefix(path, "//")
}

// fileSize is 0 where there is no file.
func fileSize(path string) (int64, error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// whatNow says what to do about stores that do not belong together.
func whatNow(dir *datadir.Dir, err error) error {
	var mismatch *persistence.MismatchError
	if !errors.As(err, &mismatch) {
		return err
	}
	return fmt.Errorf("%w. Put both back from the same backup; or, to go on with what is there, look at what `docent journal adopt --data %s` says", err, dir.Path)
}

// catalogInPlace refuses a journal beside which the catalogue's file is missing or empty, before a new one is made in
// its place.
func catalogInPlace(dir *datadir.Dir, dsn string) error {
	file := catalogFile(dsn)
	if file == "" {
		return nil
	}
	catalog, err := fileSize(file)
	if err != nil {
		return err
	}
	journal, err := fileSize(dir.File(datadir.Journal))
	if err != nil || catalog > 0 || journal == 0 {
		return err
	}
	return whatNow(dir, &persistence.MismatchError{Reason: fmt.Sprintf(
		"there is a journal, and the catalogue's file %s is missing or empty", file)})
}

// journalInPlace refuses a catalogue that has worked with a journal which is not there, before a new one is made in
// its place.
func journalInPlace(ctx context.Context, dir *datadir.Dir, c *catalog.Catalog) error {
	size, err := fileSize(dir.File(datadir.Journal))
	if err != nil || size > 0 {
		return err
	}
	seen, worked, err := c.SeenJournal(ctx)
	if err != nil || !worked {
		return err
	}
	return whatNow(dir, &persistence.MismatchError{Reason: fmt.Sprintf(
		"the journal %s is missing or empty, and %s has seen one up to position %d",
		dir.File(datadir.Journal), c, seen)})
}

// pair makes sure that the journal and the catalogue of a data directory belong together; restored says whether they
// were put back from a backup.
func pair(ctx context.Context, dir *datadir.Dir, j journal.Store, c *catalog.Catalog) (end func(), err error) {
	restored := false
	text, err := os.ReadFile(dir.File(datadir.Backup))
	switch {
	case err == nil:
		restored = true
		var report backup.Report
		if err := json.Unmarshal(text, &report); err != nil {
			return nil, fmt.Errorf("read %s: %w", datadir.Backup, err)
		}
		if at := j.Position(); at < report.Position {
			return nil, whatNow(dir,
				&persistence.MismatchError{Reason: fmt.Sprintf(
					"the backup's journal ends at position %d, and this one at position %d", report.Position, at)})
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	end, err = persistence.Pair(ctx, j, c, restored)
	return end, whatNow(dir, err)
}

// An adoption says what is wrong with two stores, and what is given up when they are used together all the same.
type adoption struct {
	Reason  string `json:"reason,omitempty"`
	Listed  int    `json:"listedOnly"`     // rows of the listings of which the journal knows nothing
	Kept    string `json:"kept,omitempty"` // the file that holds these
	Adopted bool   `json:"adopted"`
}

func newAdoptCommand(o *operator) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "adopt", Short: "Use a journal and a catalogue that do not belong together; the server must be stopped",
		Args: cobra.NoArgs,
		Long: "Use the journal and the catalogue of the data directory as they are, although one of them is missing, an older copy,\n" +
			"or from another data directory. Where there is a backup of both, restore that instead. The server must be stopped.\n\n" +
			"The listings are rebuilt from the journal. Jobs and questions that they list and the journal does not know are first\n" +
			"written to a file in the folder set-aside of the data directory. Without --yes nothing is changed: the command says what\n" +
			"is wrong and what would be given up.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.load(cmd)
			if err != nil {
				return err
			}
			done, err := adopt(cmd.Context(), c, yes)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if o.json {
				err = printJSON(out, done)
			} else {
				err = printAdoption(out, done)
			}
			if err == nil && done.Reason != "" && !done.Adopted {
				return errors.New("nothing was changed; make a copy of the data directory and run this again with --yes")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this flag nothing is changed")
	return cmd
}

func printAdoption(out io.Writer, a adoption) error {
	if a.Reason == "" {
		_, err := fmt.Fprintln(out, "the journal and the catalogue belong together")
		return err
	}
	fmt.Fprintln(out, a.Reason)
	fmt.Fprintf(out, "%d listed jobs and questions are not in the journal\n", a.Listed)
	if a.Adopted {
		fmt.Fprintln(out, "the journal and the catalogue belong together now; the listings are made anew when the server starts")
	}
	if a.Kept != "" {
		fmt.Fprintf(out, "what was listed alone stands in %s, a row a line\n", a.Kept)
	}
	return nil
}

func adopt(ctx context.Context, c Config, yes bool) (done adoption, err error) {
	if _, err := os.Stat(c.Data); err != nil {
		return done, fmt.Errorf("there is no data directory: %w", err)
	}
	dir, err := openStopped(c, "journal adopt")
	if err != nil {
		return done, err
	}
	defer dir.Close()
	if !yes { // what is missing is not made yet
		for _, missing := range []struct {
			path string
			what string
		}{{dir.File(datadir.Journal), "the journal"}, {catalogFile(catalogDSN(dir, c)), "the catalogue"}} {
			if missing.path == "" {
				continue
			}
			size, err := fileSize(missing.path)
			if err != nil {
				return done, err
			}
			if size == 0 {
				done.Reason = fmt.Sprintf("%s %s is missing or empty: a new one would be made", missing.what, missing.path)
			}
		}
		if done.Reason != "" {
			return done, nil
		}
	}
	log := slog.New(slog.DiscardHandler)
	cat, err := catalog.Open(ctx, catalogDSN(dir, c), c.catalogOptions(log))
	if err != nil {
		return done, fmt.Errorf("open the catalogue: %w", err)
	}
	defer func() { err = errors.Join(err, cat.Close()) }()
	j, err := journal.Open(dir.File(datadir.Journal), journal.Options{Log: log})
	if err != nil {
		return done, fmt.Errorf("open the journal: %w; `docent journal check` says more", err)
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if done.Reason, err = persistence.Disagreement(ctx, j, cat); err != nil || done.Reason == "" {
		return done, err
	}
	keep := &keeper{folder: dir.File(datadir.SetAside), name: "listings"}
	known := func(stream string) bool {
		rec, err := j.Load(stream)
		return err != nil || rec.Seq > 0 // a damaged stream is one that the journal knows
	}
	err = cat.ListedOnly(ctx, known, func(table, id string, body json.RawMessage) error {
		done.Listed++
		if !yes {
			return nil
		}
		return keep.line(map[string]any{"table": table, "id": id, "row": body})
	})
	if err != nil || !yes {
		return done, errors.Join(err, keep.discard())
	}
	if err := keep.close(); err != nil {
		return done, err
	}
	done.Kept = keep.path
	if err := persistence.Adopt(ctx, j, cat); err != nil {
		return done, err
	}
	if err := os.Remove(dir.File(datadir.Backup)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return done, err
	}
	done.Adopted = true
	return done, nil
}
