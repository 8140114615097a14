package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docent/control"
	"docent/datadir"
	"docent/doctor"
	"docent/health"
	"docent/persistence/journal"
)

const (
	opDoctor = "doctor"
	opProbe  = "doctor.probe"
)

type (
	doctorParams struct {
		Offline bool `json:"offline,omitempty"` // reach nothing over a network
	}
	// A probed server is one that answers a probe.
	probed struct {
		Nonce   string   `json:"nonce"`
		URL     string   `json:"url"` // public
		Trusted []string `json:"trustedProxies"`
		Version string   `json:"version"`
		Commit  string   `json:"commit"`
	}
)

// probe makes an address at which the serving process answers for a minute.
func (o *operations) probe(context.Context, struct{}, Progress) (probed, error) {
	if o.app == nil {
		return probed{}, errNoServer
	}
	v := buildVersion()
	return probed{Nonce: o.app.probes.New(), URL: o.app.config.PublicURL, Trusted: o.app.config.TrustedProxies,
		Version: v.Version, Commit: v.Commit}, nil
}

// examine is what the process that has the stores finds: the serving one, with its environment and its limits, or the
// command's own.
func (o *operations) examine(ctx context.Context, p doctorParams, _ Progress) ([]doctor.Finding, error) {
	c := o.stores.config
	limit := memoryLimit(c.MemoryLimit, os.Getenv("GOMEMLIMIT"), os.ReadFile)
	checks := []doctor.Check{
		doctor.One("open files", func(context.Context) doctor.Finding { return doctor.OpenFiles(doctor.FileLimit(), c.MaxStreams) }),
		doctor.One("memory", func(context.Context) doctor.Finding { return doctor.Memory(limit, c.IndexMemory) }),
		{Name: "keys", Run: o.keyFindings},
		{Name: "source", Run: o.sourceFindings},
		doctor.One("backup", func(context.Context) doctor.Finding { return o.backupFinding(time.Now()) }),
		{Name: "catalogue", Run: o.catalogFindings},
		{Name: "nodes", Run: o.nodeFindings},
	}
	if o.app != nil {
		checks = append(checks, doctor.One("quarantine", o.app.quarantineFinding), doctor.One("journal", o.app.journalFinding))
	}
	if p.Offline {
		left := func(context.Context) doctor.Finding { return doctor.Left("--offline") }
		checks = append(checks, doctor.One("code host", left), doctor.One("model", left), doctor.One("embeddings", left))
	} else {
		checks = append(checks, doctor.Check{Name: "code host", Limit: 25 * time.Second, Run: o.hostFindings},
			doctor.Check{Name: "model", Limit: 40 * time.Second, Run: c.modelFindings},
			doctor.Check{Name: "embeddings", Limit: 25 * time.Second, Run: c.embeddingFindings})
	}
	return doctor.Examine(ctx, checks).Findings, nil
}

func newDoctorCommand(prog program) *cobra.Command {
	o := &operator{prog: prog}
	var offline bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Say what is wrong with this installation, and the fix", Args: cobra.NoArgs,
		SuggestFor: []string{"check", "diagnose", "verify"},
		Long: "Look at the configuration, the data directory and its disk, limits, the clock, keys, sources, backups, code hosts, models\n" +
			"and the way that clients take to the server, and say what is wrong with each and what to do. Run it as the server's user,\n" +
			"beside a running server, which is asked for what its environment and its limits are, or without one.\n" +
			"Each language model is sent one short question. The exit status is 1 where there is a problem.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _ := readConfig(o.config, os.LookupEnv, cmd.Flags()) // what is wrong with it is a finding
			ctx := cmd.Context()
			report := doctor.Examine(ctx, outsideChecks(c, o, cmd, offline))
			var err error
			if o.json {
				err = printJSON(cmd.OutOrStdout(), report)
			} else {
				err = report.Print(cmd.OutOrStdout())
				if _, set := os.LookupEnv(envPrefix + "DATA"); !set && report.Problems+report.Warnings > 0 && c.Data != DefaultConfig().Data {
					fmt.Fprintf(cmd.OutOrStdout(), "The commands above act on this data directory after: export %sDATA=%s\n", envPrefix, c.Data)
				}
			}
			if err == nil && !report.OK {
				err = fmt.Errorf("%d of the checks found a problem", report.Problems)
			}
			return err
		},
	}
	operatorFlags(cmd, o)
	cmd.Flags().BoolVar(&offline, "offline", false, "reach nothing over a network")
	return cmd
}

// outsideChecks are what the command itself looks at, and what it asks the process for that has the data directory.
func outsideChecks(c Config, o *operator, cmd *cobra.Command, offline bool) []doctor.Check {
	service := "docent"
	c = o.prog.configured(c)
	return []doctor.Check{
		{Name: "configuration", Run: func(context.Context) []doctor.Finding {
			return configFindings(checkConfig(o.config, os.Environ(), cmd.Flags()))
		}},
		{Name: "data directory", Run: func(context.Context) []doctor.Finding { return doctor.Folder(c.Data, service) }},
		doctor.One("disk", func(context.Context) doctor.Finding { return doctor.Space(c.Data) }),
		doctor.One("file system", func(context.Context) doctor.Finding { return doctor.FileSystem(c.Data) }),
		doctor.One("sync", func(ctx context.Context) doctor.Finding { return doctor.Syncs(ctx, c.Data) }),
		{Name: "clock", Run: func(ctx context.Context) []doctor.Finding {
			var hosts []string
			if !offline {
				hosts = c.otherClocks()
			}
			return doctor.Clock(ctx, c.now, quickClient, hosts)
		}},
		{Name: "server", Limit: 90 * time.Second, Run: func(ctx context.Context) []doctor.Finding { return insideFindings(ctx, c, offline) }},
		{Name: "public address", Limit: 20 * time.Second, Run: func(ctx context.Context) []doctor.Finding { return wayFindings(ctx, c, offline) }},
	}
}

// quickClient asks for heads of pages.
var quickClient = &http.Client{Timeout: 5 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// otherClocks are web servers that the configuration names anyway: their answers have a Date.
func (c Config) otherClocks() (hosts []string) {
	for _, m := range c.Models {
		switch {
		case m.BaseURL != "":
			hosts = append(hosts, m.BaseURL)
		case m.Provider == "openai":
			hosts = append(hosts, "https://api.openai.com")
		case m.Provider == "anthropic":
			hosts = append(hosts, "https://api.anthropic.com")
		}
	}
	for _, address := range []string{c.OIDC.Issuer, c.Embeddings.BaseURL} {
		if address != "" {
			hosts = append(hosts, address)
		}
	}
	slices.Sort(hosts)
	return slices.DeleteFunc(slices.Compact(hosts), func(address string) bool {
		return strings.Contains(address, "//127.") || strings.Contains(address, "//localhost") || strings.Contains(address, "//[::1]")
	})
}

// configFindings says of the configuration what `docent config check` says.
func configFindings(r configReport) (found []doctor.Finding) {
	for _, p := range r.Problems {
		short := *p
		short.Fix = ""
		f := doctor.Doubt(p.Fix, "%s", short.Error())
		if p.Severity == severityProblem {
			f.Status = doctor.Problem
		}
		found = append(found, f)
	}
	if len(found) == 0 {
		where := r.File
		if where == "" {
			where = "the environment and the flags; there is no file"
		}
		found = append(found, doctor.Fine("%s", where))
	}
	return found
}

// insideFindings are those of the process that has the data directory.
func insideFindings(ctx context.Context, c Config, offline bool) []doctor.Finding {
	var found []doctor.Finding
	params, err := json.Marshal(doctorParams{Offline: offline})
	if err != nil {
		return []doctor.Finding{doctor.Wrong("", "%v", err)}
	}
	answer, err := control.Call(ctx, c.Data, opDoctor, params, func(string, int, int) {})
	switch {
	case errors.Is(err, control.ErrNoServer):
		if ok, _ := datadir.Used(c.Data); !ok {
			return []doctor.Finding{doctor.Left("no server runs, and there is no data directory at %s yet: docent init makes one", c.Data)}
		}
		return examineHere(ctx, c, params)
	case err != nil && strings.Contains(err.Error(), "there is no operation"):
		return []doctor.Finding{doctor.Wrong("sudo systemctl restart docent", "the running server is of an older version than this command")}
	case err != nil:
		return []doctor.Finding{doctor.Wrong("run this as the server's user: sudo -u docent docent doctor --data "+c.Data, "the server cannot be asked: %v", err)}
	}
	if err := json.Unmarshal(answer, &found); err != nil {
		return []doctor.Finding{doctor.Wrong("sudo systemctl restart docent", "the running server answers what this version does not understand: %v", err)}
	}
	return found
}

// checkedJournal is up to which size a journal is read whole for a check.
const checkedJournal = 256 << 20

// examineHere looks at the stores where no server has them.
func examineHere(ctx context.Context, c Config, params []byte) []doctor.Finding {
	found := []doctor.Finding{doctor.Left("no server runs on %s: docent serve --data %s starts one", c.Data, c.Data)}
	if owner, is := doctor.Others(c.Data); is {
		return append(found, inCheck("stores", doctor.Left("%s is %s's, who could not open what another user makes in it: sudo -u %s docent doctor --data %s looks further",
			c.Data, owner, owner, c.Data)))
	}
	dir, err := datadir.OpenUsed(c.Data, "doctor", 5*time.Second)
	var locked *datadir.LockedError
	switch {
	case errors.As(err, &locked) && locked.Holder.Command == datadir.Server:
		return []doctor.Finding{doctor.Wrong(fmt.Sprintf("kill %d, if it stays like this; then start the server again", locked.Holder.PID),
			"process %d has the data directory and does not answer: it is starting, stopping, or stuck", locked.Holder.PID)}
	case err != nil:
		return append(found, doctor.Wrong("", "%v", err))
	}
	defer dir.Close()
	found = append(found, journalFileFinding(dir.File(datadir.Journal)))
	stores, err := openStores(ctx, dir, c, slog.New(slog.DiscardHandler))
	if err != nil {
		return append(found, inCheck("catalogue", doctor.Wrong("docent catalog check and docent journal check say more; docent backup copies can be restored", "the stores cannot be opened: %v", err)))
	}
	defer stores.Close()
	answer, err := stores.operations().run(ctx, opDoctor, params, func(string, int, int) {})
	var inside []doctor.Finding
	if err == nil {
		err = json.Unmarshal(answer, &inside)
	}
	if err != nil {
		return append(found, doctor.Wrong("", "%v", err))
	}
	return append(found, inside...)
}

func inCheck(check string, f doctor.Finding) doctor.Finding {
	f.Check = check
	return f
}

// journalFileFinding checks a journal that no process has open, without changing it.
func journalFileFinding(path string) doctor.Finding {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return inCheck("journal", doctor.Left("there is none yet"))
	case info.Size() > checkedJournal:
		return inCheck("journal", doctor.Left("it is large: docent journal check reads all of it"))
	}
	n, first := 0, ""
	err = journal.Check(path, func(p journal.Problem) bool {
		if n++; first == "" {
			first = p.String()
		}
		return true
	})
	switch {
	case err != nil:
		return inCheck("journal", doctor.Wrong("docent journal check", "it cannot be read: %v", err))
	case n > 0:
		return inCheck("journal", doctor.Wrong("docent journal repair, or restore a backup", "%d records are damaged; the first: %s", n, first))
	}
	return inCheck("journal", doctor.Fine("every record of %s is whole", filepath.Base(path)))
}

// wayFindings are those of the way that clients take to the running server.
func wayFindings(ctx context.Context, c Config, offline bool) []doctor.Finding {
	if offline {
		return []doctor.Finding{doctor.Left("--offline")}
	}
	answer, err := control.Call(ctx, c.Data, opProbe, []byte("{}"), func(string, int, int) {})
	if err != nil {
		return []doctor.Finding{doctor.Left("no server runs that could be reached")}
	}
	var p probed
	if err := json.Unmarshal(answer, &p); err != nil {
		return []doctor.Finding{doctor.Wrong("", "%v", err)}
	}
	found := doctor.Public(ctx, doctor.Way{URL: p.URL, Nonce: p.Nonce, Trusted: prefixes(p.Trusted)})
	if strings.HasPrefix(p.URL, "https:") {
		found = append(found, inCheck("certificate", doctor.Certificate(ctx, p.URL, c.now())))
	}
	here := buildVersion()
	version := doctor.Fine("the server and this command are %s", here.Version)
	if p.Version != here.Version || p.Commit != here.Commit {
		version = doctor.Doubt("sudo systemctl restart docent", "the server is %s %.12s and this command is %s %.12s", p.Version, p.Commit, here.Version, here.Commit)
	}
	return append(found, inCheck("version", version))
}

func (a *app) quarantineFinding(context.Context) doctor.Finding {
	list := a.system.Stats().Quarantined
	if len(list) == 0 {
		return doctor.Fine("no job and no conversation is in quarantine")
	}
	return doctor.Wrong("docent status lists them with the reasons; docent actor retry tries them again", "%d jobs and conversations are in quarantine; the first: %s %s: %v",
		len(list), list[0].Kind, list[0].ID, list[0].Err)
}

func (a *app) journalFinding(context.Context) doctor.Finding {
	s := a.journal.Stats()
	switch {
	case s.Down:
		return doctor.Wrong("make room on the disk, or mount it writable", "it cannot be written to: the disk is full, read-only or broken")
	case s.Damaged > 0:
		return doctor.Wrong("docent journal check says what; docent journal repair, with the server stopped, takes it out", "%d streams are damaged", s.Damaged)
	}
	return doctor.Fine("it can be written to, at position %d", s.Position)
}

func (o *operations) backupFinding(now time.Time) doctor.Finding {
	if o.stores.config.shared() {
		return doctor.Left("the journal is in PostgreSQL, whose own backups are the ones that count")
	}
	var b health.Backup
	if o.app != nil {
		b = o.app.backups.Status()
	} else {
		b = knownBackups(o.stores.config)
	}
	return judgeBackup(b, now)
}

func judgeBackup(b health.Backup, now time.Time) doctor.Finding {
	const fix = "docent backup DIR, on another disk at best, and a timer for it: docs/operate/backup"
	switch {
	case b.Failed != nil:
		return doctor.Wrong("look at the reason, then docent backup DIR", "the last one failed at %s: %s", shownTime(b.Failed.Began), b.Failed.Error)
	case b.Made == nil:
		return doctor.Doubt(fix, "none was made yet")
	case now.Sub(b.Made.Began) > 7*24*time.Hour:
		return doctor.Doubt(fix, "the last one is of %s, %d days ago", shownTime(b.Made.Began), int(now.Sub(b.Made.Began).Hours()/24))
	}
	return doctor.Fine("the last one is of %s, in %s", shownTime(b.Made.Began), b.Made.Dir)
}
