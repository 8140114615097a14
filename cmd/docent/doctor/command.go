package doctor

import (
	"cmp"
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

	"github.com/spf13/pflag"

	"docent/cmd/docent/build"
	"docent/cmd/docent/config"
	"docent/cmd/docent/control"
	"docent/cmd/docent/stores"
	"docent/persistence/datadir"
	"docent/persistence/journal"
)

// Names of the operations by which the command asks the serving process.
const (
	OpDoctor = "doctor"
	OpProbe  = "doctor.probe"
)

type (
	// DoctorParams say what is examined.
	DoctorParams struct {
		Offline bool `json:"offline,omitempty"` // make no network connections
	}
	// A Probed server is one that answers a probe.
	Probed struct {
		Nonce   string   `json:"nonce"`
		URL     string   `json:"url"` // public
		Trusted []string `json:"trustedProxies"`
		Version string   `json:"version"`
		Commit  string   `json:"commit"`
	}
)

// OutsideChecks are what the command itself looks at, and what it asks the process for that has the data directory.
func OutsideChecks(c config.Config, file string, flags *pflag.FlagSet, offline bool) []Check {
	service := "docent"
	return []Check{
		{Name: "configuration", Run: func(context.Context) []Finding {
			return configFindings(config.Check(file, os.Environ(), flags))
		}},
		{Name: "data directory", Run: func(context.Context) []Finding { return Folder(c.Data, service) }},
		One("disk", func(context.Context) Finding { return Space(c.Data) }),
		One("file system", func(context.Context) Finding { return FileSystem(c.Data) }),
		One("sync", func(ctx context.Context) Finding { return Syncs(ctx, c.Data) }),
		{Name: "clock", Run: func(ctx context.Context) []Finding {
			var hosts []string
			if !offline {
				hosts = otherClocks(c)
			}
			return Clock(ctx, c.Now, quickClient, hosts)
		}},
		{Name: "server", Limit: 90 * time.Second, Run: func(ctx context.Context) []Finding { return insideFindings(ctx, c, offline) }},
		{Name: "public address", Limit: 20 * time.Second, Run: func(ctx context.Context) []Finding { return wayFindings(ctx, c, offline) }},
	}
}

// quickClient asks for heads of pages.
var quickClient = &http.Client{Timeout: 5 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// otherClocks are web servers that the configuration names anyway: their answers have a Date.
func otherClocks(c config.Config) (hosts []string) {
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

// configFindings says what is wrong with the configuration.
func configFindings(r config.Report) (found []Finding) {
	for _, p := range r.Problems {
		short := *p
		short.Fix = ""
		f := Doubt(p.Fix, "%s", short.Error())
		if p.Severity == config.SeverityProblem {
			f.Status = Problem
		}
		found = append(found, f)
	}
	if len(found) == 0 {
		where := cmp.Or(r.File, "the environment and the flags; there is no file")
		found = append(found, Fine("%s", where))
	}
	return found
}

// insideFindings are those of the process that has the data directory.
func insideFindings(ctx context.Context, c config.Config, offline bool) []Finding {
	var found []Finding
	params, err := json.Marshal(DoctorParams{Offline: offline})
	if err != nil {
		return []Finding{Wrong("", "%v", err)}
	}
	answer, err := control.Call(ctx, c.Data, OpDoctor, params, func(string, int, int) {})
	switch {
	case errors.Is(err, control.ErrNoServer):
		if ok, _ := datadir.Used(c.Data); !ok {
			return []Finding{Left("no server runs, and there is no data directory at %s yet: docent init makes one", c.Data)}
		}
		return examineHere(ctx, c, offline)
	case err != nil && strings.Contains(err.Error(), "there is no operation"):
		return []Finding{Wrong("sudo systemctl restart docent", "the running server is of an older version than this command")}
	case err != nil:
		return []Finding{Wrong("run this as the server's user: sudo -u docent docent doctor --data "+c.Data, "the server cannot be asked: %v", err)}
	}
	if err := json.Unmarshal(answer, &found); err != nil {
		return []Finding{Wrong("sudo systemctl restart docent", "the running server answers what this version does not understand: %v", err)}
	}
	return found
}

// checkedJournal is up to which size a journal is read whole for a check.
const checkedJournal = 256 << 20

// examineHere looks at the stores where no server has them.
func examineHere(ctx context.Context, c config.Config, offline bool) []Finding {
	found := []Finding{Left("no server runs on %s: docent serve --data %s starts one", c.Data, c.Data)}
	if owner, is := Others(c.Data); is {
		return append(found, inCheck("stores", Left("%s is %s's, who could not open what another user makes in it: sudo -u %s docent doctor --data %s looks further",
			c.Data, owner, owner, c.Data)))
	}
	dir, err := datadir.OpenUsed(c.Data, "doctor", 5*time.Second)
	var locked *datadir.LockedError
	switch {
	case errors.As(err, &locked) && locked.Holder.Command == datadir.Server:
		return []Finding{Wrong(fmt.Sprintf("kill %d, if it stays like this; then start the server again", locked.Holder.PID),
			"process %d has the data directory and does not answer: it is starting, stopping, or stuck", locked.Holder.PID)}
	case err != nil:
		return append(found, Wrong("", "%v", err))
	}
	defer dir.Close()
	found = append(found, journalFileFinding(dir.File(datadir.Journal)))
	stores, err := stores.Open(ctx, dir, c, slog.New(slog.DiscardHandler))
	if err != nil {
		return append(found, inCheck("catalog", Wrong("docent catalog check and docent journal check say more; docent backup copies can be restored", "the stores cannot be opened: %v", err)))
	}
	defer stores.Close()
	return append(found, Inside{Stores: stores, Offline: offline}.Examine(ctx)...)
}

func inCheck(check string, f Finding) Finding {
	f.Check = check
	return f
}

// journalFileFinding checks a journal that no process has open, without changing it.
func journalFileFinding(path string) Finding {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return inCheck("journal", Left("there is none yet"))
	case info.Size() > checkedJournal:
		return inCheck("journal", Left("it is large: docent journal check reads all of it"))
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
		return inCheck("journal", Wrong("docent journal check", "it cannot be read: %v", err))
	case n > 0:
		return inCheck("journal", Wrong("restore a backup; docent journal check says which jobs and threads it is about", "damaged records: %d; the first: %s", n, first))
	}
	return inCheck("journal", Fine("every record of %s is whole", filepath.Base(path)))
}

// wayFindings are those of the way that clients take to the running server.
func wayFindings(ctx context.Context, c config.Config, offline bool) []Finding {
	if offline {
		return []Finding{Left("--offline")}
	}
	answer, err := control.Call(ctx, c.Data, OpProbe, []byte("{}"), func(string, int, int) {})
	if err != nil {
		return []Finding{Left("no server runs that could be reached")}
	}
	var p Probed
	if err := json.Unmarshal(answer, &p); err != nil {
		return []Finding{Wrong("", "%v", err)}
	}
	found := Public(ctx, Way{URL: p.URL, Nonce: p.Nonce, Trusted: config.Prefixes(p.Trusted)})
	if strings.HasPrefix(p.URL, "https:") {
		found = append(found, inCheck("certificate", Certificate(ctx, p.URL, c.Now())))
	}
	here := build.Get()
	version := Fine("the server and this command are %s", here.Version)
	if p.Version != here.Version || p.Commit != here.Commit {
		version = Doubt("sudo systemctl restart docent", "the server is %s %.12s and this command is %s %.12s", p.Version, p.Commit, here.Version, here.Commit)
	}
	return append(found, inCheck("version", version))
}
