package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"docent/api"
	"docent/api/client"
	"docent/cmd/docent/config"
	"docent/internal/testing/need"
	"docent/tests/harness"
)

// storiesOfNodes are the scripts of TestScripts that are told to several nodes. The others are about one process and its
// files: its start (01), backups (11), the mistakes of operators (13) and the load suite (14).
var storiesOfNodes = []string{"02-project", "03-ask", "04-search", "05-job", "06-followup", "07-keys", "08-automations",
	"09-updates", "10-analytics", "12-restart", "15-people", "16-evaluation"}

// TestStoriesWithThreeNodes tells the stories of TestScripts to three nodes behind nginx, which sends each request to one
// at random. The script starts, stops and kills the first of them; the two others are there before it.
func TestStoriesWithThreeNodes(t *testing.T) {
	harness.SkipShort(t)
	t.Parallel()
	need.Peer(t, "nginx", "scripts/install-proxies", harness.InstalledProxy(harness.NginxProgram))
	db := harness.NewDatabase(t, "127.0.0.1", false, false)
	const secret = "the-secret-that-the-nodes-of-a-test-know-each-other-by"
	harness.Setenv(t, config.NodeSecretEnv, secret)
	// Every node has the secrets that the stories give to the server.
	harness.Setenv(t, "TEA_HOOK", "sesame")
	harness.Setenv(t, "HOOK", "sesame")
	var files []string
	for _, name := range storiesOfNodes {
		files = append(files, "../testdata/script/"+name+".txtar")
	}
	var making sync.Mutex
	harness.Stories(t, config.JournalPostgres, testscript.Params{
		Files: files,
		Setup: func(env *testscript.Env) error {
			making.Lock()
			name := "s" + strings.ToLower(filepath.Base(env.WorkDir))
			name = strings.NewReplacer("-", "_", ".", "_").Replace(name)
			db.SQL(`CREATE DATABASE "` + name + `"`)
			making.Unlock()
			dsn := strings.Replace(db.DSN(), "/postgres?", "/"+name+"?", 1)
			var flags []string
			if _, err := os.Stat(filepath.Join(env.WorkDir, "docent.toml")); err == nil {
				flags = []string{"--config", filepath.Join(env.WorkDir, "docent.toml")}
			}
			upstream := []string{harness.OwnAddress(t), harness.OwnAddress(t), harness.OwnAddress(t)}
			front := nginxBefore(t, true, upstream...)
			env.Setenv("DOCENT_URL", front)
			for i, address := range upstream {
				inner := harness.OwnAddress(t)
				if i == 0 {
					for key, value := range map[string]string{harness.RaceOptions: os.Getenv(harness.RaceOptions),
						"DOCENT_LISTEN":      address,
						"DOCENT_CATALOG_DSN": dsn, "DOCENT_JOURNAL": config.JournalPostgres, config.NodeSecretEnv: secret,
						"DOCENT_NODE_LISTEN": inner, "DOCENT_NODE_NAME": "told", "DOCENT_PUBLIC_URL": front} {
						env.Setenv(key, value)
					}
					continue
				}
				s := &harness.Server{T: t, Data: filepath.Join(env.WorkDir, fmt.Sprintf("other%d", i)), Listen: address,
					URL: "http://" + address, Log: new(harness.LockedBuffer), Flags: append([]string{"--catalog-dsn", dsn, "--journal",
						config.JournalPostgres, "--public-url", front, "--node-name", fmt.Sprintf("other%d", i), "--node-listen", inner},
						flags...)}
				if err := s.TryStart(); err != nil {
					return err
				}
				env.Defer(func() {
					s.Kill()
					if t.Failed() {
						t.Logf("%s, %s:\n%s", name, s.Data, s.Log)
					}
				})
			}
			return nil
		},
	})
}

// TestNodesAreUpgradedUnderOpenStreams stops and starts each of three nodes in turn while hundreds of readers have a stream
// open through a balancer: none of them sees an error. Whose stream is cut reads the answer whole on another node.
func TestNodesAreUpgradedUnderOpenStreams(t *testing.T) {
	need.Everything(t, "nodes are upgraded under load")
	for name, before := range balancers {
		t.Run(name, func(t *testing.T) { upgradeUnderOpenStreams(t, before) })
	}
}

func upgradeUnderOpenStreams(t *testing.T, before balancer) {
	const streams = 500
	const parts = 100
	config := harness.SettingsFile(t, fmt.Sprintf("[models.slow]\nprovider = \"scripted\"\nrate = 5\nparts = %d\n", parts))
	db := harness.NewDatabase(t, "127.0.0.1", false, false)
	// No limit of the single address that all readers come from.
	l := harness.NewNodes(t, 3, nil, db, 1, "--config", config)
	l.Open()
	var at []string
	for _, n := range l.Nodes {
		at = append(at, n.Listen)
	}
	front := before(t, false, at...)
	p := harness.NewProject(t, l.Nodes[0].Data, "slow", harness.WriteFiles(t, harness.Harbour), "--model", "slow",
		"--limit-key-month", harness.Plentiful, "--limit-org-hour", harness.Plentiful, "--limit-ip-day", harness.Plentiful)
	checkNodeMetrics(t, l.Nodes[0].URL)
	readers := &client.Client{Base: front, Key: p.Assistant, HTTP: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: streams}, Timeout: 3 * time.Minute}}

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	done := make(chan struct{}) // the upgrade
	u := &upgradeReaders{answers: map[string]int{}}
	var reading sync.WaitGroup
	open := make(chan struct{}, 100*streams)
	for n := range streams {
		reading.Go(func() {
			for round := 0; ; round++ { // until all nodes have been replaced there is always a stream open
				if err := u.read(ctx, readers, p, fmt.Sprintf("Tell me all. (%d.%d)", n, round), open); err != nil {
					t.Errorf("reader %d: %v", n, err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for range streams {
		select {
		case <-open:
		case <-ctx.Done():
			t.Fatalf("not all streams have begun:\n%s", l.Logs())
		}
	}
	for _, n := range l.Nodes {
		n.Leave()
		if err := n.Boot(); err != nil {
			t.Error(err)
		} else if err := n.AwaitReady(); err != nil {
			t.Error(err)
		}
	}
	close(done)
	reading.Wait()
	if len(u.answers) != 1 {
		for text, n := range u.answers {
			t.Errorf("%d readers saw %.300q", n, text)
		}
	}
	for text, n := range u.answers {
		if got := strings.Count(text, "part-"); got != parts {
			t.Errorf("an answer has %d parts, want %d", got, parts)
		}
		t.Logf("%d answers were read whole over the upgrade of three nodes, %d of them on another node than they had begun, after %d resumes",
			n, u.cut, u.resumes)
	}
	if u.cut == 0 {
		t.Error("no stream was cut: the nodes were not upgraded under streams")
	}
	if t.Failed() {
		t.Log(l.Logs())
	}
}

// upgradeReaders are what readers saw.
type upgradeReaders struct {
	mu           sync.Mutex
	answers      map[string]int // by text
	cut, resumes int
}

// read asks, and reads the answer to its end, over as many streams as it takes.
func (u *upgradeReaders) read(ctx context.Context, c *client.Client, p harness.Project, question string, open chan<- struct{}) error {
	resp, err := c.Do(ctx, http.MethodPost, "/discovery/v2/assistant/"+p.Domain+"/message", map[string]any{"fp": "anonymous",
		"messages": []any{map[string]any{"role": "user", "content": question}}})
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	thread := api.ThreadID(resp.Header.Get("X-Thread-Id"))
	open <- struct{}{}
	text, err := harness.ReadAnswer(resp)
	cut := 0
	for ; err != nil && ctx.Err() == nil; cut++ {
		if cut == 5 {
			return fmt.Errorf("resumed %d times: %w", cut, err)
		}
		resp, failed := c.Do(ctx, http.MethodGet, "/discovery/v2/assistant/"+p.Domain+"/message/"+string(thread)+"/stream", nil)
		if failed != nil {
			return fmt.Errorf("resume after %w: %w", err, failed)
		}
		if resp.StatusCode == http.StatusNoContent {
			resp.Body.Close()
			return errors.New("there is nothing to resume")
		}
		text, err = harness.ReadAnswer(resp)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answers[text]++
	u.resumes += cut
	if cut > 0 {
		u.cut++
	}
	return errors.Join(err, ctx.Err())
}

// checkNodeMetrics fails unless a node shows what the dashboard's row for several nodes asks for, with its documentation.
func checkNodeMetrics(t *testing.T, url string) {
	t.Helper()
	status, text := harness.Served(t, http.DefaultClient, url+"/metrics")
	if status != http.StatusOK {
		t.Fatalf("%d %.300s", status, text)
	}
	harness.CheckDocumented(t, text)
	file, err := os.ReadFile("../../deploy/grafana/docent.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title, Type string
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(file, &dashboard); err != nil {
		t.Fatal(err)
	}
	row, names := "", 0
	for _, p := range dashboard.Panels {
		if p.Type == "row" {
			row = p.Title
		}
		for _, target := range p.Targets {
			if row != "Several nodes" {
				continue
			}
			for _, name := range regexp.MustCompile(`docent_\w+`).FindAllString(target.Expr, -1) {
				names++
				if !regexp.MustCompile(`(?m)^` + name + `[{ ]`).MatchString(text) {
					t.Errorf("%s: a node does not show %s", p.Title, name)
				}
			}
		}
	}
	if names == 0 {
		t.Error("the dashboard asks for nothing about several nodes")
	}
}
