package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"docent/cmd/docent/config"
	"docent/internal/health"
	"docent/internal/testing/need"
	"docent/tests/harness"
)

// A composeService is a service of a compose file, as Docker Compose reads it.
type composeService struct {
	Environment map[string]string
	Secrets     []struct{ Source, Target string }
	Volumes     []struct{ Type, Source, Target string }
	Networks    map[string]any
	DependsOn   map[string]struct{ Condition string } `json:"depends_on"`
	HealthCheck struct{ Test []string }
	Restart     string
	User        string
	ReadOnly    bool     `json:"read_only"`
	CapDrop     []string `json:"cap_drop"`
	SecurityOpt []string `json:"security_opt"`
	GracePeriod string   `json:"stop_grace_period"`
	Deploy      struct {
		Resources struct {
			Limits struct {
				Memory string
				PIDs   int
			}
		}
	}
}

type composeProject struct {
	Services map[string]composeService
	Networks map[string]struct{ Internal bool }
	Secrets  map[string]struct{ File string }
}

// deployTool is a program of deploy/tools.
func deployTool(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs("../../bin/docent-" + name)
	if err != nil {
		t.Fatal(err)
	}
	return need.Peer(t, "what checks deployments", "scripts/install-deploy-tools", path)
}

// readCompose reads a compose file for a site at localhost, and says what is wrong with it.
func readCompose(t *testing.T, file string) (p composeProject, err error) {
	t.Helper()
	read := exec.CommandContext(t.Context(), deployTool(t, "compose"), file)
	read.Env = append(os.Environ(), "DOCENT_DOMAIN=localhost")
	var problem bytes.Buffer
	read.Stderr = &problem
	text, err := read.Output()
	if err != nil {
		return p, fmt.Errorf("%w: %s", err, problem.String())
	}
	return p, json.Unmarshal(text, &p)
}

// checkConfined has each service of a compose file kept to what it needs, and Docent's settings be known ones.
func checkConfined(t *testing.T, project composeProject, nodes ...string) {
	t.Helper()
	for name, s := range project.Services {
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || s.Restart != "unless-stopped" || len(s.HealthCheck.Test) < 2 ||
			!slices.Contains(s.SecurityOpt, "no-new-privileges:true") || s.Deploy.Resources.Limits.Memory == "" ||
			s.Deploy.Resources.Limits.PIDs == 0 {
			t.Errorf("%s is not confined as it should be: %+v", name, s)
		}
	}
	if !project.Networks["back"].Internal || len(project.Services["postgres"].Networks) != 1 {
		t.Error("PostgreSQL is on a network that leads outside")
	}
	// Settings that do not exist would have no effect.
	known := map[string]bool{config.NodeSecretEnv: true}
	c := config.Default()
	for _, s := range c.Settings() {
		known[s.Env()] = true
	}
	for _, node := range nodes {
		docent := project.Services[node]
		if grace, err := time.ParseDuration(docent.GracePeriod); err != nil || grace <= c.DrainTimeout.Duration {
			t.Errorf("%s is killed after %s, and open streams may take %v", node, docent.GracePeriod, c.DrainTimeout)
		}
		for name := range docent.Environment {
			if !known[strings.TrimSuffix(name, "_FILE")] {
				t.Errorf("docent has no setting %s", name)
			}
		}
	}
}

// Each node of the cluster has a name, an address and a volume of its own, and all else in common.
func TestTheComposeFileOfAClusterIsSound(t *testing.T) {
	t.Parallel()
	project, err := readCompose(t, "../../deploy/compose/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	nodes := []string{"node1", "node2", "node3"}
	if names := slices.Sorted(maps.Keys(project.Services)); !slices.Equal(names, append([]string{"nginx"}, append(nodes, "postgres")...)) {
		t.Errorf("its services are %v", names)
	}
	checkConfined(t, project, nodes...)
	proxy, err := os.ReadFile("../../deploy/compose/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	volumes := map[string]bool{}
	for _, node := range nodes {
		s := project.Services[node]
		if e := s.Environment; e["DOCENT_NODE_NAME"] != node || e["DOCENT_NODE_ADDRESS"] != node+e["DOCENT_NODE_LISTEN"] ||
			e["DOCENT_JOURNAL"] != config.JournalPostgres || len(s.Volumes) != 1 || len(s.Secrets) != 2 {
			t.Errorf("%s is %+v", node, s)
		} else {
			volumes[s.Volumes[0].Source] = true
		}
		if !strings.Contains(string(proxy), "server "+node+":8080 ") {
			t.Errorf("nginx does not know %s", node)
		}
	}
	if len(volumes) != len(nodes) {
		t.Errorf("%d nodes share the volumes %v", len(nodes), volumes)
	}
}

func TestTheComposeFileIsSound(t *testing.T) {
	t.Parallel()
	const file = "../../deploy/compose/compose.yaml"
	project, err := readCompose(t, file)
	if err != nil {
		t.Fatal(err)
	}
	if names := slices.Sorted(maps.Keys(project.Services)); !slices.Equal(names, []string{"caddy", "docent", "postgres"}) {
		t.Errorf("its services are %v", names)
	}
	checkConfined(t, project, "docent")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for planted, into := range map[string]string{"read_only: true": "read_onyl: true", "pids: 256": "pids: many",
		"condition: service_healthy": "condition: service_wealthy", "networks: [back]": "networks: [front, beck]",
		"- postgres_password\n": "- postgres_pasword\n"} {
		broken := filepath.Join(t.TempDir(), "compose.yaml")
		if err := os.WriteFile(broken, []byte(strings.Replace(string(text), planted, into, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readCompose(t, broken); err == nil {
			t.Errorf("%q instead of %q is taken", into, planted)
		}
	}
}

// A composed is the compose file at work without an engine: each service's environment, secrets and checks as the file has
// them, on a network of its own on which the services have their names and ports.
type composed struct {
	t       *testing.T
	project composeProject
	dir     string
	network string // a network namespace
	docent  *container
	secrets map[string]string // files, by the paths that the services see
	pg      string            // folder of PostgreSQL's programs
}

// on has a command run on the network of the services.
func (c *composed) on(args ...string) []string {
	return append([]string{"nsenter", "--net=" + c.network}, args...)
}

func (c *composed) command(args ...string) *exec.Cmd {
	line := c.on(args...)
	return exec.CommandContext(c.t.Context(), line[0], line[1:]...)
}

// must has a command end well.
func (c *composed) must(cmd *exec.Cmd) string {
	c.t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("%v: %v: %s", cmd.Args, err, out)
	}
	return string(out)
}

// startNetwork makes a network namespace that lasts as long as the test.
func (c *composed) startNetwork() {
	told, tell, err := os.Pipe()
	if err != nil {
		c.t.Fatal(err)
	}
	defer told.Close()
	hold := exec.Command("bwrap", "--unshare-net", "--json-status-fd", "3", "--dev-bind", "/", "/", "cat")
	hold.ExtraFiles = []*os.File{tell}
	stdin, err := hold.StdinPipe()
	if err == nil {
		err = hold.Start()
	}
	tell.Close()
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { stdin.Close(); _ = hold.Wait() })
	var status struct {
		PID int `json:"child-pid"`
	}
	if err := json.NewDecoder(told).Decode(&status); err != nil {
		c.t.Fatal(err)
	}
	c.network = fmt.Sprintf("/proc/%d/ns/net", status.PID)
}

// asUser is a command as another user of the machine.
func asUser(user string, args ...string) []string {
	return append([]string{"runuser", "-u", user, "--"}, args...)
}

// startPostgres does what PostgreSQL's image does: it makes a cluster with the user, the database and the password that
// its environment names.
func (c *composed) startPostgres() {
	c.t.Helper()
	service := c.project.Services["postgres"]
	data := filepath.Join(c.dir, "pg")
	if _, err := os.Stat(data); err != nil {
		for _, step := range [][]string{
			{"install", "-d", "-o", "postgres", "-m", "700", data},
			asUser("postgres", filepath.Join(c.pg, "initdb"), "-D", filepath.Join(data, "data"), "-U",
				service.Environment["POSTGRES_USER"], "--pwfile", c.secrets[service.Environment["POSTGRES_PASSWORD_FILE"]],
				"--auth", "scram-sha-256"),
		} {
			c.must(c.command(step...))
		}
	}
	start := c.command(asUser("postgres", filepath.Join(c.pg, "pg_ctl"), "-D", filepath.Join(data, "data"), "-w", "-l",
		filepath.Join(data, "log"), "-o", "-p 5432 -c listen_addresses=* -c fsync=off -c unix_socket_directories="+data, "start")...)
	start.Stdout, start.Stderr = nil, nil
	if err := start.Run(); err != nil {
		log, _ := os.ReadFile(filepath.Join(data, "log"))
		c.t.Fatalf("%v: %s", err, log)
	}
	c.must(c.command(append([]string{filepath.Join(c.pg, service.HealthCheck.Test[1])}, service.HealthCheck.Test[2:]...)...))
}

func (c *composed) stopPostgres() {
	_ = exec.Command("runuser", "-u", "postgres", "--", filepath.Join(c.pg, "pg_ctl"), "-D", filepath.Join(c.dir, "pg", "data"), "-m",
		"immediate", "stop").Run()
}

// makeDatabase is the other half of what PostgreSQL's image does at its first start.
func (c *composed) makeDatabase() {
	env := c.project.Services["postgres"].Environment
	password, err := os.ReadFile(c.secrets[env["POSTGRES_PASSWORD_FILE"]])
	if err != nil {
		c.t.Fatal(err)
	}
	make := c.command(filepath.Join(c.pg, "createdb"), "-h", "127.0.0.1", "-U", env["POSTGRES_USER"], env["POSTGRES_DB"])
	make.Env = append(os.Environ(), "PGPASSWORD="+string(password))
	c.must(make)
}

// startCaddy runs the Caddyfile, and waits until its own authority is there.
func (c *composed) startCaddy() (authority string) {
	c.t.Helper()
	service := c.project.Services["caddy"]
	var file string
	for _, v := range service.Volumes {
		if v.Target == "/etc/caddy/Caddyfile" {
			file = v.Source
		}
	}
	hosts := filepath.Join(c.dir, "hosts")
	// unshare: the services' names are this process's alone.
	caddy := c.command("unshare", "--mount", "sh", "-c", `mount --bind "$0" /etc/hosts && exec caddy run --config "$1" --adapter caddyfile`,
		hosts, file)
	caddy.Env = append(os.Environ(), "XDG_DATA_HOME="+filepath.Join(c.dir, "caddy"), "XDG_CONFIG_HOME="+filepath.Join(c.dir, "caddy"))
	for name, value := range service.Environment {
		caddy.Env = append(caddy.Env, name+"="+value)
	}
	log := new(harness.LockedBuffer)
	caddy.Stdout, caddy.Stderr = log, log
	caddy.Cancel = func() error { return caddy.Process.Signal(syscall.SIGTERM) }
	if err := caddy.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = caddy.Process.Kill(); _ = caddy.Wait() })
	authority = filepath.Join(c.dir, "caddy", "caddy", "pki", "authorities", "local", "root.crt")
	harness.Until(c.t, "Caddy answers", func() bool {
		err := c.command("curl", "--silent", "--fail", "--cacert", authority, "https://localhost/healthz").Run()
		if caddy.ProcessState != nil {
			c.t.Fatal(log)
		}
		return err == nil
	})
	return authority
}

// checkComposed has the services of compose.yaml work together: readers are answered through the proxy over TLS, the
// catalog is in PostgreSQL with a password that stands in files only, and the health check tells when the database is
// gone.
func checkComposed(t *testing.T, image *containerImage) {
	project, err := readCompose(t, "../../deploy/compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	bins, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(bins) == 0 {
		t.Fatal("PostgreSQL is not installed: scripts/install-test-needs installs it")
	}
	need.Peer(t, "the services of compose.yaml", "scripts/install-test-needs", "caddy")
	c := &composed{t: t, project: project, dir: openFolder(t), pg: bins[len(bins)-1]}
	c.makeSecrets()
	c.startNetwork()
	t.Cleanup(c.stopPostgres)
	c.startPostgres()
	c.makeDatabase()

	hosts := filepath.Join(c.dir, "hosts")
	if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost docent postgres\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	docs := filepath.Join(c.dir, "docs")
	if err := harness.Tidepool(docs); err != nil {
		t.Fatal(err)
	}
	c.docent = image.container(t)
	c.docent.under = c.on("setpriv", "--reuid=65532", "--regid=65532", "--clear-groups")
	c.docent.env = project.Services["docent"].Environment
	c.docent.mount("--ro-bind", hosts, "/etc/hosts")
	c.docent.mount("--ro-bind", docs, "/docs")
	for _, s := range project.Services["docent"].Secrets {
		c.docent.mount("--ro-bind", c.secrets[s.Target], s.Target)
	}
	c.docent.start()
	c.docent.confined()
	authority := c.startCaddy()

	c.docent.docent("project", "add", "docs", "--domain", "docs.example.com", "--source", "/docs")
	key := strings.TrimSpace(c.docent.docent("key", "create", "--project", "docs", "--kind", "assistant"))
	ask := func() string {
		return c.must(c.command("curl", "--silent", "--show-error", "--fail-with-body", "--no-buffer", "--cacert", authority, "-H",
			"Authorization: Bearer "+key, "-H", "Content-Type: application/json", "--data",
			`{"fp":"anonymous","messages":[{"role":"user","content":"How do I restore a backup?"}]}`,
			"https://localhost/discovery/v2/assistant/docs.example.com/message"))
	}
	if said := ask(); !strings.Contains(said, "restore") || !strings.Contains(said, `"type":"finish"`) {
		t.Errorf("through the proxy it is answered %q", said)
	}
	var status health.Status
	if err := json.Unmarshal([]byte(c.docent.docent("status", "--json")), &status); err != nil || !status.Catalog.Postgres {
		t.Errorf("the catalog is not in PostgreSQL: %v %+v", err, status.Catalog)
	}
	c.stopPostgres()
	// A check gives up after some seconds, even if the machine stood still for them: the next one tells.
	harness.Until(t, "without its database the container says so", func() bool {
		err := c.docent.health()
		if err == nil {
			t.Error("without its database the container is healthy")
		}
		return err == nil || strings.Contains(err.Error(), "503")
	})
	if _, err := c.docent.run("health", "--live", "--timeout", "1m"); err != nil {
		t.Errorf("it lives all the same: %v", err)
	}
	c.startPostgres()
	harness.Until(t, "it is healthy again", func() bool { return c.docent.health() == nil })
	ask()
	c.docent.stop()
	for _, file := range c.secrets {
		secret, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(c.docent.log.String(), string(secret)) {
			t.Errorf("the log holds a secret")
		}
	}
}

// makeSecrets does what the documentation says to do before the first start.
func (c *composed) makeSecrets() {
	c.secrets = map[string]string{}
	var first harness.Fence
	for _, f := range harness.ReadFences(c.t, "docs/deploy/containers.mdx") {
		if first.Text == "" && strings.Contains(f.Text, "secrets/postgres_password") {
			first = f
		}
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	write := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", first.Text)
	write.Dir = c.dir
	if out, err := write.CombinedOutput(); err != nil || first.Text == "" {
		c.t.Fatalf("%s: %v: %s", first, err, out)
	}
	for _, s := range c.project.Services {
		for _, secret := range s.Secrets {
			file := filepath.Join(c.dir, "secrets", filepath.Base(c.project.Secrets[secret.Source].File))
			info, err := os.Stat(file)
			if err != nil || info.Size() == 0 {
				c.t.Fatal(errors.Join(err, errors.New("the page does not say how to make "+secret.Source)))
			}
			c.secrets[secret.Target] = file
		}
	}
	// Another user's folder hides them from everybody on the machine; an engine mounts the files themselves.
	if err := os.Chmod(filepath.Join(c.dir, "secrets"), 0o755); err != nil {
		c.t.Fatal(err)
	}
}
