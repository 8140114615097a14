package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"docent/actors"
	"docent/agent/check/sandbox"
	"docent/api"
	"docent/cmd/docent/config"
	"docent/cmd/docent/stores"
	"docent/forge"
	"docent/internal/background"
	"docent/internal/health"
	"docent/persistence/backup"
	"docent/persistence/catalog"
	"docent/persistence/datadir"
	"docent/persistence/journal"
)

// Inside is what can be examined by the process alone that has the stores.
type Inside struct {
	Stores  *stores.Stores
	Offline bool // make no network connections

	// Of a server that runs.
	Nodes   []health.Node
	System  *actors.System
	Journal journal.Store
	Backups *backup.Keeper
}

// Examine makes all checks of this process.
func (o Inside) Examine(ctx context.Context) []Finding {
	c := o.Stores.Config
	limit := config.MemoryLimit(c.MemoryLimit, os.Getenv("GOMEMLIMIT"), os.ReadFile)
	checks := []Check{
		One("open files", func(context.Context) Finding { return OpenFiles(FileLimit(), c.MaxStreams) }),
		One("memory", func(context.Context) Finding { return Memory(limit, config.Sizes(limit, c.IndexMemory).Index) }),
		{Name: "keys", Run: o.keyFindings},
		{Name: "source", Run: o.sourceFindings},
		{Name: "pull requests", Run: o.pullFindings},
		One("backup", func(context.Context) Finding { return o.backupFinding(time.Now()) }),
		{Name: "catalog", Run: o.catalogFindings},
		{Name: "nodes", Run: o.nodeFindings},
	}
	if len(c.Checks) > 0 {
		checks = append(checks, One("check command", func(context.Context) Finding {
			return sandboxFinding(c, o.Stores.Dir.File(datadir.Checks))
		}))
	}
	if o.System != nil {
		checks = append(checks, One("quarantine", o.quarantineFinding), One("journal", o.journalFinding))
	}
	if o.Offline {
		left := func(context.Context) Finding { return Left("--offline") }
		checks = append(checks, One("code host", left), One("model", left), One("embeddings", left))
	} else {
		checks = append(checks, Check{Name: "code host", Limit: 25 * time.Second, Run: o.hostFindings},
			Check{Name: "model", Limit: 40 * time.Second,
				Run: func(ctx context.Context) []Finding {
					return modelFindings(ctx, c, o.connected(ctx), o.Stores.Secrets.Read)
				}},
			Check{Name: "embeddings", Limit: 25 * time.Second,
				Run: func(ctx context.Context) []Finding {
					return embeddingFindings(ctx, c, o.connected(ctx), o.Stores.Secrets.Read)
				}})
	}
	return Examine(ctx, checks).Findings
}

// connected are the models that were connected in the console; none if the catalog, which has a check of its own, cannot be read.
func (o Inside) connected(ctx context.Context) []api.LanguageModel {
	list, err := o.Stores.Catalog.LanguageModels(ctx)
	if err != nil {
		return nil
	}
	return list
}

// sandboxFinding is what the commands of checks run in, as this process may have it.
func sandboxFinding(c config.Config, folder string) Finding {
	kind, err := c.CheckCommands(folder).Kind()
	switch {
	case err != nil:
		return Wrong(config.SandboxFix, "checks are refused: %v", err)
	case kind == sandbox.None:
		return Doubt(`remove check_sandbox = "none" from the configuration`, "checks run without a sandbox, as the server's own user")
	}
	return Fine("checks run in a sandbox made of %s", kind)
}

func (o Inside) quarantineFinding(context.Context) Finding {
	list := o.System.Stats().Quarantined
	if len(list) == 0 {
		return Fine("no job and no conversation is in quarantine")
	}
	return Wrong("docent status lists them with the reasons; docent actor retry tries them again", "jobs and conversations in quarantine: %d; the first: %s %s: %v",
		len(list), list[0].Kind, list[0].ID, list[0].Err)
}

func (o Inside) journalFinding(context.Context) Finding {
	s := o.Journal.Stats()
	switch {
	case s.Down:
		return Wrong("make room on the disk, or mount it writable", "it cannot be written to: the disk is full, read-only or broken")
	case s.Damaged > 0:
		return Wrong("docent journal check says what; restore a backup, or give them up with docent journal drop and the server stopped", "damaged streams: %d", s.Damaged)
	}
	return Fine("it can be written to, at position %d", s.Position)
}

func (o Inside) backupFinding(now time.Time) Finding {
	if o.Stores.Config.Shared() {
		return Left("the journal is in PostgreSQL: its own backups are the ones that count")
	}
	var b health.Backup
	if o.Backups != nil {
		b = o.Backups.Status()
	} else {
		b = knownBackups(o.Stores.Config)
	}
	return judgeBackup(b, now)
}

func judgeBackup(b health.Backup, now time.Time) Finding {
	const fix = "docent backup DIR, on another disk at best, and a timer for it: docs/operate/backup"
	switch {
	case b.Failed != nil:
		return Wrong("look at the reason, then docent backup DIR", "the last one failed at %s: %s", health.LocalTime(b.Failed.Began), b.Failed.Error)
	case b.Made == nil:
		return Doubt(fix, "none was made yet")
	case now.Sub(b.Made.Began) > 7*24*time.Hour:
		return Doubt(fix, "the last one is of %s, %d days ago", health.LocalTime(b.Made.Began), int(now.Sub(b.Made.Began).Hours()/24))
	}
	return Fine("the last one is of %s, in %s", health.LocalTime(b.Made.Began), b.Made.Dir)
}

// knownBackups is what a data directory says of its backups.
func knownBackups(c config.Config) health.Backup {
	k := backup.NewKeeper(backup.KeeperDeps{Data: c.Data, Folder: c.BackupDir, Log: slog.New(slog.DiscardHandler)})
	defer k.Close()
	return k.Status()
}

func (o Inside) catalogFindings(ctx context.Context) []Finding {
	if err := o.Stores.Catalog.Ping(ctx); err != nil {
		return []Finding{Wrong("start the database, and look at catalog_dsn", "it does not answer: %v", err)}
	}
	kind := "SQLite in the data directory"
	if stores.CatalogFile(stores.CatalogDSN(o.Stores.Dir, o.Stores.Config)) == "" {
		kind = "PostgreSQL"
	}
	return []Finding{Fine("%s answers", kind)}
}

// keyFindings looks for projects that nobody can use, and for keys that end soon or that nobody uses.
func (o Inside) keyFindings(ctx context.Context) []Finding {
	projects, err := o.Stores.Catalog.Projects(ctx)
	if err != nil {
		return []Finding{Wrong("docent catalog check", "%v", err)}
	}
	keys, err := o.Stores.Catalog.Keys(ctx, catalog.KeyQuery{})
	if err != nil {
		return []Finding{Wrong("docent catalog check", "%v", err)}
	}
	if len(projects) == 0 {
		return []Finding{Doubt("docent project add docs --domain docs.example.com --source PATH-or-URL", "no project yet")}
	}
	return judgeKeys(projects, keys, time.Now())
}

func judgeKeys(projects []api.Project, keys []api.Key, now time.Time) (found []Finding) {
	for _, p := range projects {
		active := 0
		for _, k := range keys {
			if k.Project != p.ID || api.KeyState(k, now) != "active" {
				continue
			}
			if k.Reads() {
				active++
			}
			switch {
			case k.ExpiresAt != nil && k.ExpiresAt.Sub(now) < 14*24*time.Hour:
				found = append(found, Doubt(fmt.Sprintf("docent key create --project %s --kind %s", p.ID, k.Kind),
					"the %s key %s (%s) ends on %s", k.Kind, k.ID, k.Hint, k.ExpiresAt.UTC().Format(time.DateOnly)).Of(string(p.ID)))
			case k.LastUsed == nil && now.Sub(k.CreatedAt) > 30*24*time.Hour:
				found = append(found, Doubt("docent key revoke "+string(k.ID), "the %s key %s (%s) was made on %s and never used",
					k.Kind, k.ID, k.Hint, k.CreatedAt.UTC().Format(time.DateOnly)).Of(string(p.ID)))
			}
		}
		if active == 0 && !p.Options.Public {
			found = append(found, Doubt(fmt.Sprintf("docent key create --project %s --kind assistant", p.ID), "no assistant key is active: readers cannot ask").Of(string(p.ID)))
		}
	}
	if len(found) == 0 {
		if len(projects) == 1 {
			return append(found, Fine("the only project has an active one"))
		}
		found = append(found, Fine("each of the %d projects has an active one", len(projects)))
	}
	return found
}

// sourceFindings looks for sources that are not read, or whose last reading failed.
func (o Inside) sourceFindings(ctx context.Context) (found []Finding) {
	projects, err := o.Stores.Catalog.Projects(ctx)
	if err != nil {
		return []Finding{Wrong("docent catalog check", "%v", err)}
	}
	for _, reason := range o.Stores.Source.LeftOut() {
		found = append(found, Wrong("docent index PROJECT reads it again", "%s", reason))
	}
	n := 0
	for _, p := range projects {
		sources, err := o.Stores.Source.Sources(ctx, p.ID)
		if err != nil {
			found = append(found, Wrong("docent project check "+string(p.ID), "%v", err).Of(string(p.ID)))
			continue
		}
		for _, s := range sources {
			n++
			about := string(p.ID)
			if !s.First {
				about += "/" + s.Label
			}
			failed := s.Error
			if s.Collection != nil && s.Collection.Error != "" {
				failed = s.Collection.Error
			}
			switch {
			case failed != "":
				found = append(found, Wrong("docent index "+string(p.ID)+" reads it again and says more", "the last reading failed: %s; what was read before still answers", strings.TrimPrefix(failed, "failed: ")).Of(about))
			case s.Pages == 0:
				found = append(found, Wrong("docent project check "+string(p.ID), "it has no public page: no question can be answered").Of(about))
			case s.Lost != "":
				found = append(found, Doubt("docent project check "+string(p.ID), "%s", s.Lost).Of(about))
			case s.Collection != nil && !s.Next.IsZero() && time.Since(s.Next) > time.Hour:
				found = append(found, Doubt("docent index "+string(p.ID), "it was to be read again at %s and was not", health.LocalTime(s.Next)).Of(about))
			}
		}
	}
	if len(found) == 0 {
		found = append(found, Fine("all %d are read, with public pages", n))
	}
	return found
}

// hostFindings asks the code host of each project what its credentials may do, as `project add` does.
func (o Inside) hostFindings(ctx context.Context) []Finding {
	projects, err := o.Stores.Catalog.Projects(ctx)
	if err != nil {
		return []Finding{Wrong("docent catalog check", "%v", err)}
	}
	projects = slices.DeleteFunc(projects, func(p api.Project) bool { return p.Host == api.HostBuiltin || p.Kind.Collected() })
	if len(projects) == 0 {
		return []Finding{Left("every project is on the built-in one")}
	}
	return together(projects, func(p api.Project) Finding {
		return o.hostFinding(ctx, p).Of(string(p.ID))
	})
}

// together makes a finding of each, all at the same time.
func together[T any](list []T, f func(T) Finding) []Finding {
	found := make([]Finding, len(list))
	var all background.Work
	for i, one := range list {
		all.Go("cmd/docent/doctor.together", func() { found[i] = f(one) })
	}
	all.Wait()
	return found
}

func (o Inside) hostFinding(ctx context.Context, p api.Project) Finding {
	open, err := o.Stores.Hub.Rights(ctx, p)
	switch {
	case errors.Is(err, forge.ErrMisconfigured):
		return Wrong("docent project token "+string(p.ID)+" stores another token; docs/deploy/code-hosts says which rights it needs", "%v", err)
	case err != nil:
		return Doubt("look whether this machine reaches the host: curl -v its address", "%v", err)
	case open != "":
		return Fine("%s may be written to. %s", p.Repository, open)
	}
	return Fine("%s: branches and pull requests may be made", p.Repository)
}

// pullFindings looks whether each open pull request has its branch.
func (o Inside) pullFindings(ctx context.Context) (found []Finding) {
	projects, err := o.Stores.Catalog.Projects(ctx)
	if err != nil {
		return []Finding{Wrong("docent catalog check", "%v", err)}
	}
	for _, p := range projects {
		if p.Kind.Collected() {
			continue
		}
		broken, err := o.Stores.Hub.Broken(ctx, p)
		if err != nil {
			found = append(found, Wrong("docent index "+string(p.ID)+" reads the repository again and says more", "%v", err).
				Of(string(p.ID)))
		}
		for _, pull := range broken {
			found = append(found, Wrong("restart the server, which restores it from the journal, or restore a backup",
				"pull request #%d is open, and its branch %s is not there", pull.Number, pull.Head).Of(string(p.ID)))
		}
	}
	if len(found) == 0 {
		found = append(found, Fine("each open one has its branch"))
	}
	return found
}
