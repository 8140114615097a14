package harness

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

	"docent/cmd/docent/config"
	"docent/internal/testing/freeport"
	"docent/internal/testing/need"
)

// A Network is a switch with a host address, and name spaces that are plugged into it: machines, as far as their
// connections can tell.
type Network struct {
	t      testing.TB
	name   string
	number int
	plugs  int
}

// NewNetwork makes one that nobody else has. It needs root; the test is skipped where it may not.
func NewNetwork(t testing.TB) *Network {
	t.Helper()
	need.Installed(t, "machines that can be cut off", "scripts/install-test-needs", "ip", "iptables")
	if os.Getuid() != 0 {
		t.Skip("machines that can be cut off are left out: name spaces of the network need root")
	}
	n := &Network{t: t}
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
	n.run("ip", "address", "add", n.Address(1)+"/24", "dev", n.name)
	n.run("ip", "link", "set", n.name, "up")
	return n
}

func (n *Network) run(args ...string) {
	n.t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		n.t.Errorf("%s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// Address is the one of a host in the network.
func (n *Network) Address(host int) string { return fmt.Sprintf("198.18.%d.%d", n.number, host) }

// A Machine is one name space of the network, with its plug.
type Machine struct {
	*Network
	space, plug, Address string
}

func (n *Network) plugIn() *Machine {
	n.t.Helper()
	n.plugs++
	m := &Machine{Network: n, space: fmt.Sprintf("%s-%d", n.name, n.plugs), Address: n.Address(1 + n.plugs)}
	m.plug = m.space + "h"
	n.run("ip", "netns", "add", m.space)
	n.t.Cleanup(func() { n.run("ip", "netns", "delete", m.space) })
	n.run("ip", "link", "add", m.plug, "type", "veth", "peer", "name", "eth0", "netns", m.space)
	n.run("ip", "link", "set", m.plug, "master", n.name, "up")
	n.run("ip", "-n", m.space, "address", "add", m.Address+"/24", "dev", "eth0")
	n.run("ip", "-n", m.space, "link", "set", "eth0", "up")
	n.run("ip", "-n", m.space, "link", "set", "lo", "up")
	return m
}

// Cut pulls the plug: nothing comes in or goes out, and no connection is closed.
func (m *Machine) Cut() { m.run("ip", "link", "set", m.plug, "down") }

// Mend puts the plug in again.
func (m *Machine) Mend() { m.run("ip", "link", "set", m.plug, "up") }

// Isolate has the machine lose what it says to the database and to its peers, and what they say. Clients reach it.
func (m *Machine) Isolate(ports string, peers []string) {
	for _, rule := range [][]string{{"OUTPUT", "--dports"}, {"INPUT", "--sports"}} {
		m.run("ip", "netns", "exec", m.space, "iptables", "-w", "-A", rule[0], "-p", "tcp", "-m", "multiport", rule[1], ports,
			"-j", "DROP")
	}
	m.Part(peers)
}

// Part has the machine lose what it says to its peers, and what they say.
func (m *Machine) Part(peers []string) {
	for _, peer := range peers {
		m.run("ip", "netns", "exec", m.space, "iptables", "-w", "-A", "OUTPUT", "-d", peer, "-j", "DROP")
		m.run("ip", "netns", "exec", m.space, "iptables", "-w", "-A", "INPUT", "-s", peer, "-j", "DROP")
	}
}

// Join ends Isolate and Part.
func (m *Machine) Join() { m.run("ip", "netns", "exec", m.space, "iptables", "-w", "-F") }

// Show lets the machine reach what listens on this host's loopback under the same address: what is outside the cluster,
// a model or a code host, stays in reach of a machine that is cut off from it.
func (m *Machine) Show(address string) {
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
			go HandOn(conn, address)
		}
	}()
}

// HandOn hands bytes from a connection to a new one and back, until both ends are closed.
func HandOn(conn net.Conn, address string) {
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

// A Database is a PostgreSQL with a replica that has what was committed before the client hears of it.
type Database struct {
	t          testing.TB
	bin, Dir   string
	host       string
	Ports      [2]string
	Primary    int // of ports
	as         *syscall.Credential
	replicated bool
}

// NewDatabase starts it. fsync says whether commits wait for the disk, as in earnest; tests that kill only processes do
// without.
func NewDatabase(t testing.TB, host string, replicated, fsync bool) *Database {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		t.Skip("PostgreSQL is left out: scripts/install-test-needs installs it")
	}
	d := &Database{t: t, bin: filepath.Dir(found[len(found)-1]), host: host, replicated: replicated}
	dir, err := os.MkdirTemp("", "pg") // a short path that its user may enter
	if err != nil {
		t.Fatal(err)
	}
	d.Dir = dir
	t.Cleanup(func() {
		for n := range d.Ports {
			_ = d.command("pg_ctl", "-D", d.Data(n), "-m", "immediate", "stop").Run()
		}
		os.RemoveAll(dir)
	})
	if os.Getuid() == 0 { // as which PostgreSQL does not run
		u, err := user.Lookup("postgres")
		if err != nil {
			t.Skip("PostgreSQL is left out: it does not run as root, and there is no user postgres")
		}
		d.as = &syscall.Credential{Uid: uint32(Atoi(u.Uid)), Gid: uint32(Atoi(u.Gid))}
		if err := os.Chown(dir, int(d.as.Uid), int(d.as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	d.must("initdb", "-D", d.Data(0), "-U", "docent", "-A", "trust", "--no-sync")
	more := fmt.Sprintf("host all all %[1]s/24 trust\nhost replication all %[1]s/24 trust\n", host)
	d.appendTo("pg_hba.conf", more)
	d.appendTo("postgresql.conf", fmt.Sprintf("listen_addresses = '%s'\nunix_socket_directories = '%s'\nfsync = %t\n"+
		"max_connections = 300\nwal_retrieve_retry_interval = 200ms\nhot_standby = on\nlog_line_prefix = '%%m %%a '\n"+
		"tcp_user_timeout = 0\n", host, dir, fsync))
	for n := range d.Ports {
		d.Ports[n] = strconv.Itoa(freeport.On(t, host))
	}
	d.start(0)
	if !replicated {
		return d
	}
	d.must("pg_basebackup", "-D", d.Data(1), "-R", "-X", "stream", "-c", "fast", "-d",
		fmt.Sprintf("host=%s port=%s user=docent", host, d.Ports[0]))
	d.start(1)
	d.SQL("ALTER SYSTEM SET synchronous_standby_names = '*'")
	d.SQL("SELECT pg_reload_conf()")
	return d
}

// Data is the data directory of one of its servers.
func (d *Database) Data(n int) string { return filepath.Join(d.Dir, strconv.Itoa(n)) }

func (d *Database) appendTo(name, text string) {
	d.t.Helper()
	file, err := os.OpenFile(filepath.Join(d.Data(0), name), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		d.t.Fatal(err)
	}
}

func (d *Database) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(d.bin, name), args...)
	cmd.Dir = d.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.as}
	return cmd
}

func (d *Database) must(name string, args ...string) string {
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

func (d *Database) start(n int) {
	d.t.Helper()
	d.must("pg_ctl", "-D", d.Data(n), "-w", "-l", filepath.Join(d.Dir, fmt.Sprintf("log%d", n)), "-o", "-p "+d.Ports[n], "start")
}

// SQL asks the primary, past Docent.
func (d *Database) SQL(query string) string {
	d.t.Helper()
	return strings.TrimSpace(d.must("psql", "-X", "-A", "-t", "-h", d.host, "-p", d.Ports[d.Primary], "-U", "docent", "-d",
		"postgres", "-c", query))
}

// Restart has the primary come back after a crash.
func (d *Database) Restart() {
	d.t.Helper()
	d.must("pg_ctl", "-D", d.Data(d.Primary), "-m", "immediate", "stop")
	d.start(d.Primary)
}

// FailOver ends the primary permanently, and makes the replica what it was.
func (d *Database) FailOver() {
	d.t.Helper()
	d.must("pg_ctl", "-D", d.Data(0), "-m", "immediate", "stop")
	d.must("pg_ctl", "-D", d.Data(1), "-w", "promote")
	d.Primary = 1
}

// DSN is what nodes are given: both servers, of which one takes writes.
func (d *Database) DSN() string {
	if !d.replicated {
		return fmt.Sprintf("postgres://docent@%s:%s/postgres?sslmode=disable", d.host, d.Ports[0])
	}
	return fmt.Sprintf("postgres://docent@/postgres?host=%[1]s,%[1]s&port=%[2]s,%[3]s&sslmode=disable&connect_timeout=3"+
		"&target_session_attrs=read-write", d.host, d.Ports[0], d.Ports[1])
}

// A Node is one of several servers that share a database. One that ends by itself is started again, as a supervisor does.
type Node struct {
	*Server
	Name    string
	Machine *Machine // nil: it shares the host's addresses

	mu     sync.Mutex
	wanted bool
	again  int // times that it ended by itself and was started again

	healthy atomic.Bool
	lifeMu  sync.Mutex
	life    context.Context // of the connections that the balancer has to it
	endLife context.CancelFunc
}

// Boot starts the node, and has it started again when it ends.
func (n *Node) Boot() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wanted = true
	return n.bootLocked()
}

func (n *Node) bootLocked() error {
	if err := n.Launch(); err != nil {
		return err
	}
	cmd, ended := n.Cmd, n.Server.Ended
	go func() {
		<-ended
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.wanted && n.Cmd == cmd {
			n.again++
			_ = n.bootLocked()
		}
	}()
	return nil
}

// AwaitReady waits until the node answers, in whichever process: one that ends by itself is followed by another.
func (n *Node) AwaitReady() error {
	err := untilReady(n.URL)
	if err != nil {
		text := n.Log.String()
		err = fmt.Errorf("the node is not ready (%w):\n%s", err, text[max(0, len(text)-6000):])
	}
	return err
}

// Die ends the node as a loss of power would.
func (n *Node) Die() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wanted = false
	n.Kill()
}

// Signal tells the node's process something.
func (n *Node) Signal(s syscall.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_ = n.Cmd.Process.Signal(s)
}

// Leave ends the node gently, as an upgrade does.
func (n *Node) Leave() {
	n.mu.Lock()
	n.wanted = false
	n.mu.Unlock()
	n.Stop()
}

// A Nodes is several nodes on one database, with a balancer before them that sends each request to one at random.
type Nodes struct {
	*testing.T
	Database *Database // nil: one server on its own files
	network  *Network  // nil: all share the host's addresses
	Nodes    []*Node
	balancer *httptest.Server
	Front    *Server // the balancer, as a client sees it
	random   *rand.Rand
	randomMu sync.Mutex
	gone     sync.WaitGroup
}

// NewNodes makes a cluster. Its settings are the test's, so that commands of the test reach it too.
func NewNodes(t *testing.T, many int, network *Network, database *Database, seed uint64, flags ...string) *Nodes {
	t.Helper()
	SkipShort(t)
	l := &Nodes{T: t, network: network, Database: database, random: rand.New(rand.NewPCG(seed, 7))}
	if database != nil {
		Setenv(t, "DOCENT_CATALOG_DSN", database.DSN())
		Setenv(t, "DOCENT_JOURNAL", config.JournalPostgres)
		Setenv(t, config.NodeSecretEnv, "the-secret-that-the-nodes-of-a-test-know-each-other-by")
	}
	for i := range many {
		n := &Node{Name: fmt.Sprintf("n%d", i+1)}
		n.Server = &Server{T: t, Data: filepath.Join(t.TempDir(), "data"), Log: new(LockedBuffer), Flags: flags}
		inner := ""
		if network != nil {
			n.Machine = network.plugIn()
			n.Via = []string{"ip", "netns", "exec", n.Machine.space}
			n.Listen, inner = n.Machine.Address+":8080", n.Machine.Address+":8081"
		} else {
			n.Listen, inner = OwnAddress(t), OwnAddress(t)
		}
		if database != nil {
			n.Flags = append([]string{"--node-name", n.Name, "--node-listen", inner}, flags...)
		}
		n.URL = "http://" + n.Listen
		n.life, n.endLife = context.WithCancel(context.Background())
		l.Nodes = append(l.Nodes, n)
		t.Cleanup(func() {
			n.Die()
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
	l.Front = &Server{T: t, Data: l.Nodes[0].Data, Listen: at, URL: "http://" + at, Log: l.Nodes[0].Log}
	return l
}

// Open starts the nodes and the balancer.
func (l *Nodes) Open() {
	l.Helper()
	for _, n := range l.Nodes {
		if err := n.Boot(); err != nil {
			l.Fatal(err)
		}
	}
	for _, n := range l.Nodes {
		if err := n.AwaitReady(); err != nil {
			l.Fatal(err)
		}
		n.healthy.Store(true)
	}
	l.balancer.Start()
	ctx, cancel := context.WithCancel(context.Background())
	for _, n := range l.Nodes {
		l.gone.Go(func() { n.watch(ctx) })
	}
	l.Cleanup(func() { cancel(); l.gone.Wait() })
}

// watch asks the node every second how it is, as balancers do. One that fails twice gets no more requests, and its
// connections are cut.
func (n *Node) watch(ctx context.Context) {
	asking := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	failures := 0
	for {
		resp, err := asking.Get(n.URL + "/readyz")
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
func (l *Nodes) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	l.randomMu.Lock()
	order := l.random.Perm(len(l.Nodes))
	l.randomMu.Unlock()
	for _, must := range []bool{true, false} { // those that are well before those that are not
		for _, i := range order {
			n := l.Nodes[i]
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
func (n *Node) carry(req *http.Request, body []byte) (*http.Response, error) {
	n.lifeMu.Lock()
	life := n.life
	n.lifeMu.Unlock()
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(life, cancel)
	out := req.Clone(ctx)
	out.URL.Host, out.Body = n.Listen, io.NopCloser(strings.NewReader(string(body)))
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

// Logs are the ends of what the nodes said.
func (l *Nodes) Logs() string {
	var b strings.Builder
	for _, n := range l.Nodes {
		text := n.Log.String()
		fmt.Fprintf(&b, "== %s\n%s\n", n.Name, text[max(0, len(text)-6000):])
	}
	return b.String()
}
