package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"docent/bench/lab"
	"docent/cmd/docent/config"
	"docent/internal/backoff"
	"docent/internal/testing/freeport"
	"docent/internal/testing/need"
)

// A network is a switch with a host address, and name spaces that are plugged into it: machines, as far as their
// connections can tell.
type network struct {
	t      testing.TB
	name   string
	number int
	plugs  int
}

// newNetwork makes one that nobody else has. It needs root; the test is skipped where it may not.
func newNetwork(t testing.TB) *network {
	t.Helper()
	need.Installed(t, "machines that can be cut off", "scripts/install-test-needs", "ip", "iptables")
	if os.Getuid() != 0 {
		t.Skip("machines that can be cut off are left out: name spaces of the network need root")
	}
	n := &network{t: t}
	for try := 0; ; try++ {
		n.number = rand.IntN(250)
		n.name = fmt.Sprintf("docent%d", n.number)
		out, err := exec.Command("ip", "link", "add", n.name, "type", "bridge").CombinedOutput()
		if err == nil {
			break
		}
		if try == 20 {
			t.Fatalf("no switch can be made: %v: %s", err, out)
		}
	}
	t.Cleanup(func() { n.run("ip", "link", "delete", n.name) })
	n.run("ip", "address", "add", n.address(1)+"/24", "dev", n.name)
	n.run("ip", "link", "set", n.name, "up")
	return n
}

func (n *network) run(args ...string) {
	n.t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		n.t.Errorf("%s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func (n *network) address(host int) string { return fmt.Sprintf("198.18.%d.%d", n.number, host) }

// A machine is one name space of the network, with its plug.
type machine struct {
	*network
	space, plug, address string
}

func (n *network) plugIn() *machine {
	n.t.Helper()
	n.plugs++
	m := &machine{network: n, space: fmt.Sprintf("%s-%d", n.name, n.plugs), address: n.address(1 + n.plugs)}
	m.plug = m.space + "h"
	n.run("ip", "netns", "add", m.space)
	n.t.Cleanup(func() { n.run("ip", "netns", "delete", m.space) })
	n.run("ip", "link", "add", m.plug, "type", "veth", "peer", "name", "eth0", "netns", m.space)
	n.run("ip", "link", "set", m.plug, "master", n.name, "up")
	n.run("ip", "-n", m.space, "address", "add", m.address+"/24", "dev", "eth0")
	n.run("ip", "-n", m.space, "link", "set", "eth0", "up")
	n.run("ip", "-n", m.space, "link", "set", "lo", "up")
	return m
}

// cut pulls the plug: nothing comes in or goes out, and no connection is closed.
func (m *machine) cut() { m.run("ip", "link", "set", m.plug, "down") }

func (m *machine) mend() { m.run("ip", "link", "set", m.plug, "up") }

// isolate has the machine lose what it says to the database and to its peers, and what they say. Clients reach it.
func (m *machine) isolate(ports string, peers []string) {
	for _, rule := range [][]string{{"OUTPUT", "--dports"}, {"INPUT", "--sports"}} {
		m.run("ip", "netns", "exec", m.space, "iptables", "-w", "-A", rule[0], "-p", "tcp", "-m", "multiport", rule[1], ports,
			"-j", "DROP")
	}
	m.part(peers)
}

// part has the machine lose what it says to its peers, and what they say.
func (m *machine) part(peers []string) {
	for _, peer := range peers {
		m.run("ip", "netns", "exec", m.space, "iptables", "-w", "-A", "OUTPUT", "-d", peer, "-j", "DROP")
		m.run("ip", "netns", "exec", m.space, "iptables", "-w", "-A", "INPUT", "-s", peer, "-j", "DROP")
	}
}

func (m *machine) join() { m.run("ip", "netns", "exec", m.space, "iptables", "-w", "-F") }

// show lets the machine reach what listens on this host's loopback under the same address: what is outside the cluster,
// a model or a code host, stays in reach of a machine that is cut off from it.
func (m *machine) show(address string) {
	m.t.Helper()
	type made struct {
		net.Listener
		error
	}
	result := make(chan made)
	go func() {
		runtime.LockOSThread() // and never unlocks: the thread ends with the goroutine
		space, err := os.Open("/var/run/netns/" + m.space)
		if err != nil {
			result <- made{nil, err}
			return
		}
		defer space.Close()
		if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
			result <- made{nil, err}
			return
		}
		listener, err := net.Listen("tcp", address)
		result <- made{listener, err}
	}()
	got := <-result
	if got.error != nil {
		m.t.Fatal(got.error)
	}
	m.t.Cleanup(func() { got.Close() })
	go func() {
		for {
			conn, err := got.Accept()
			if err != nil {
				return
			}
			go handOn(conn, address)
		}
	}()
}

// handOn hands bytes from a connection to a new one and back, until both ends are closed.
func handOn(conn net.Conn, address string) {
	defer conn.Close()
	there, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer there.Close()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(there, conn)
		_ = there.(*net.TCPConn).CloseWrite()
	})
	_, err = io.Copy(conn, there)
	if err != nil {
		_ = conn.(*net.TCPConn).SetLinger(0) // a connection that broke does not look as if it ended
	}
	conn.Close()
	both.Wait()
}

// A database is a PostgreSQL with a replica that has what was committed before the client hears of it.
type database struct {
	t          testing.TB
	bin, dir   string
	host       string
	ports      [2]string
	primary    int // of ports
	as         *syscall.Credential
	replicated bool
}

// newDatabase starts it. fsync says whether commits wait for the disk, as in earnest; tests that kill only processes do
// without.
func newDatabase(t testing.TB, host string, replicated, fsync bool) *database {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		t.Skip("PostgreSQL is left out: scripts/install-test-needs installs it")
	}
	d := &database{t: t, bin: filepath.Dir(found[len(found)-1]), host: host, replicated: replicated}
	dir, err := os.MkdirTemp("", "pg") // a short path that its user may enter
	if err != nil {
		t.Fatal(err)
	}
	d.dir = dir
	t.Cleanup(func() {
		for n := range d.ports {
			_ = d.command("pg_ctl", "-D", d.data(n), "-m", "immediate", "stop").Run()
		}
		os.RemoveAll(dir)
	})
	if os.Getuid() == 0 { // as which PostgreSQL does not run
		u, err := user.Lookup("postgres")
		if err != nil {
			t.Skip("PostgreSQL is left out: it does not run as root, and there is no user postgres")
		}
		d.as = &syscall.Credential{Uid: uint32(atoi(u.Uid)), Gid: uint32(atoi(u.Gid))}
		if err := os.Chown(dir, int(d.as.Uid), int(d.as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	d.must("initdb", "-D", d.data(0), "-U", "docent", "-A", "trust", "--no-sync")
	more := fmt.Sprintf("host all all %[1]s/24 trust\nhost replication all %[1]s/24 trust\n", host)
	d.appendTo("pg_hba.conf", more)
	d.appendTo("postgresql.conf", fmt.Sprintf("listen_addresses = '%s'\nunix_socket_directories = '%s'\nfsync = %t\n"+
		"max_connections = 300\nwal_retrieve_retry_interval = 200ms\nhot_standby = on\nlog_line_prefix = '%%m %%a '\n"+
		"tcp_user_timeout = 0\n", host, dir, fsync))
	for n := range d.ports {
		d.ports[n] = strconv.Itoa(freeport.On(t, host))
	}
	d.start(0)
	if !replicated {
		return d
	}
	d.must("pg_basebackup", "-D", d.data(1), "-R", "-X", "stream", "-c", "fast", "-d",
		fmt.Sprintf("host=%s port=%s user=docent", host, d.ports[0]))
	d.start(1)
	d.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
	d.sql("SELECT pg_reload_conf()")
	return d
}

func (d *database) data(n int) string { return filepath.Join(d.dir, strconv.Itoa(n)) }

func (d *database) appendTo(name, text string) {
	d.t.Helper()
	file, err := os.OpenFile(filepath.Join(d.data(0), name), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		d.t.Fatal(err)
	}
}

func (d *database) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(d.bin, name), args...)
	cmd.Dir = d.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.as}
	return cmd
}

func (d *database) must(name string, args ...string) string {
	d.t.Helper()
	// A server that it starts keeps its output open: it goes to a file.
	file, err := os.CreateTemp("", "said")
	if err != nil {
		d.t.Fatal(err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	cmd := d.command(name, args...)
	cmd.Stdout, cmd.Stderr = file, file
	err = cmd.Run()
	out, _ := os.ReadFile(file.Name())
	if err != nil {
		d.t.Errorf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (d *database) start(n int) {
	d.t.Helper()
	d.must("pg_ctl", "-D", d.data(n), "-w", "-l", filepath.Join(d.dir, fmt.Sprintf("log%d", n)), "-o", "-p "+d.ports[n], "start")
}

// sql asks the primary, past Docent.
func (d *database) sql(query string) string {
	d.t.Helper()
	return strings.TrimSpace(d.must("psql", "-X", "-A", "-t", "-h", d.host, "-p", d.ports[d.primary], "-U", "docent", "-d",
		"postgres", "-c", query))
}

// restart has the primary come back after a crash.
func (d *database) restart() {
	d.t.Helper()
	d.must("pg_ctl", "-D", d.data(d.primary), "-m", "immediate", "stop")
	d.start(d.primary)
}

// failOver ends the primary permanently, and makes the replica what it was.
func (d *database) failOver() {
	d.t.Helper()
	d.must("pg_ctl", "-D", d.data(0), "-m", "immediate", "stop")
	d.must("pg_ctl", "-D", d.data(1), "-w", "promote")
	d.primary = 1
}

// dsn is what nodes are given: both servers, of which one takes writes.
func (d *database) dsn() string {
	if !d.replicated {
		return fmt.Sprintf("postgres://docent@%s:%s/postgres?sslmode=disable", d.host, d.ports[0])
	}
	return fmt.Sprintf("postgres://docent@/postgres?host=%[1]s,%[1]s&port=%[2]s,%[3]s&sslmode=disable&connect_timeout=3"+
		"&target_session_attrs=read-write", d.host, d.ports[0], d.ports[1])
}

// A node is one of several servers that share a database. One that ends by itself is started again, as a supervisor does.
type node struct {
	*testServer
	name    string
	machine *machine // nil: it shares the host's addresses

	mu     sync.Mutex
	wanted bool
	again  int // times that it ended by itself and was started again

	healthy atomic.Bool
	lifeMu  sync.Mutex
	life    context.Context // of the connections that the balancer has to it
	endLife context.CancelFunc
}

// boot starts the node, and has it started again when it ends.
func (n *node) boot() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wanted = true
	return n.bootLocked()
}

func (n *node) bootLocked() error {
	if err := n.launch(); err != nil {
		return err
	}
	cmd, ended := n.cmd, n.testServer.ended
	go func() {
		<-ended
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.wanted && n.cmd == cmd {
			n.again++
			_ = n.bootLocked()
		}
	}()
	return nil
}

// awaitReady waits until the node answers, in whichever process: one that ends by itself is followed by another.
func (n *node) awaitReady() error {
	err := untilReady(n.url)
	if err != nil {
		text := n.log.String()
		err = fmt.Errorf("the node is not ready (%w):\n%s", err, text[max(0, len(text)-6000):])
	}
	return err
}

// untilReady waits, for a minute at most, until a server answers that it is ready.
func untilReady(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		_, err := lab.Get(ctx, url+"/readyz")
		if err == nil || backoff.Sleep(ctx, 10*time.Millisecond) != nil {
			return err
		}
	}
}

// die ends the node as a loss of power would.
func (n *node) die() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wanted = false
	n.kill()
}

// signal tells the node's process something.
func (n *node) signal(s syscall.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_ = n.cmd.Process.Signal(s)
}

// leave ends the node gently, as an upgrade does.
func (n *node) leave() {
	n.mu.Lock()
	n.wanted = false
	n.mu.Unlock()
	n.stop()
}

// A nodesLab is several nodes on one database, with a balancer before them that sends each request to one at random.
type nodesLab struct {
	*testing.T
	database *database // nil: one server on its own files
	network  *network  // nil: all share the host's addresses
	nodes    []*node
	balancer *httptest.Server
	front    *testServer // the balancer, as a client sees it
	random   *rand.Rand
	randomMu sync.Mutex
	gone     sync.WaitGroup
}

// newNodesLab makes a cluster. Its settings are the test's, so that commands of the test reach it too.
func newNodesLab(t *testing.T, many int, network *network, database *database, seed uint64, flags ...string) *nodesLab {
	t.Helper()
	leftOutWhenShort(t)
	l := &nodesLab{T: t, network: network, database: database, random: rand.New(rand.NewPCG(seed, 7))}
	if database != nil {
		setenv(t, "DOCENT_CATALOG_DSN", database.dsn())
		setenv(t, "DOCENT_JOURNAL", config.JournalPostgres)
		setenv(t, config.NodeSecretEnv, "the-secret-that-the-nodes-of-a-test-know-each-other-by")
	}
	for i := range many {
		n := &node{name: fmt.Sprintf("n%d", i+1)}
		n.testServer = &testServer{t: t, data: filepath.Join(t.TempDir(), "data"), log: new(lockedBuffer), flags: flags}
		inner := ""
		if network != nil {
			n.machine = network.plugIn()
			n.via = []string{"ip", "netns", "exec", n.machine.space}
			n.listen, inner = n.machine.address+":8080", n.machine.address+":8081"
		} else {
			n.listen, inner = addressFor(t), addressFor(t)
		}
		if database != nil {
			n.flags = append([]string{"--node-name", n.name, "--node-listen", inner}, flags...)
		}
		n.url = "http://" + n.listen
		n.life, n.endLife = context.WithCancel(context.Background())
		l.nodes = append(l.nodes, n)
		t.Cleanup(func() {
			n.die()
			n.endLife()
		})
	}
	l.balancer = httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.Host = "http", r.In.Host
			r.SetXForwarded()
		},
		Transport: l, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if errors.Is(err, errNobody) {
				w.Header().Set("Retry-After", "1")
				http.Error(w, `{"error":{"code":"no-server","message":"no server"}}`, http.StatusServiceUnavailable)
				return
			}
			panic(http.ErrAbortHandler) // what became of the request is not known
		},
	})
	l.Cleanup(l.balancer.Close)
	at := l.balancer.Listener.Addr().String()
	l.front = &testServer{t: t, data: l.nodes[0].data, listen: at, url: "http://" + at, log: l.nodes[0].log}
	return l
}

// open starts the nodes and the balancer.
func (l *nodesLab) open() {
	l.Helper()
	for _, n := range l.nodes {
		if err := n.boot(); err != nil {
			l.Fatal(err)
		}
	}
	for _, n := range l.nodes {
		if err := n.awaitReady(); err != nil {
			l.Fatal(err)
		}
		n.healthy.Store(true)
	}
	l.balancer.Start()
	ctx, cancel := context.WithCancel(context.Background())
	for _, n := range l.nodes {
		l.gone.Go(func() { n.watch(ctx) })
	}
	l.Cleanup(func() { cancel(); l.gone.Wait() })
}

// watch asks the node every second how it is, as balancers do. One that fails twice gets no more requests, and its
// connections are cut.
func (n *node) watch(ctx context.Context) {
	asking := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	failures := 0
	for {
		resp, err := asking.Get(n.url + "/readyz")
		if err == nil {
			resp.Body.Close()
		}
		if err == nil && resp.StatusCode == http.StatusOK {
			failures = 0
			n.healthy.Store(true)
		} else if failures++; failures == 2 {
			n.healthy.Store(false)
			n.lifeMu.Lock()
			n.endLife()
			n.life, n.endLife = context.WithCancel(context.Background())
			n.lifeMu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

var errNobody = errors.New("no node can be reached")

// toNodes are the balancer's connections.
var toNodes = &http.Transport{MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute,
	DialContext: (&net.Dialer{Timeout: 2 * time.Second}).DialContext, DisableCompression: true}

// RoundTrip sends a request to a node at random. It goes to another one only where the first took no connection: what a
// node may have accepted is not sent a second time.
func (l *nodesLab) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	l.randomMu.Lock()
	order := l.random.Perm(len(l.nodes))
	l.randomMu.Unlock()
	for _, must := range []bool{true, false} { // those that are well before those that are not
		for _, i := range order {
			n := l.nodes[i]
			if n.healthy.Load() != must {
				continue
			}
			resp, err := n.carry(req, body)
			var op *net.OpError
			if err == nil || !errors.As(err, &op) || op.Op != "dial" {
				return resp, err
			}
		}
	}
	return nil, errNobody
}

// carry sends a request to this node.
func (n *node) carry(req *http.Request, body []byte) (*http.Response, error) {
	n.lifeMu.Lock()
	life := n.life
	n.lifeMu.Unlock()
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(life, cancel)
	out := req.Clone(ctx)
	out.URL.Host, out.Body = n.listen, io.NopCloser(strings.NewReader(string(body)))
	resp, err := toNodes.RoundTrip(out)
	if err != nil {
		stop()
		cancel()
		return nil, err
	}
	resp.Body = &carried{resp.Body, func() { stop(); cancel() }}
	return resp, nil
}

type carried struct {
	io.ReadCloser
	closed func()
}

func (c *carried) Close() error {
	defer c.closed()
	return c.ReadCloser.Close()
}

// logs are the ends of what the nodes said.
func (l *nodesLab) logs() string {
	var b strings.Builder
	for _, n := range l.nodes {
		text := n.log.String()
		fmt.Fprintf(&b, "== %s\n%s\n", n.name, text[max(0, len(text)-6000):])
	}
	return b.String()
}
