package nodes

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"docent/internal/testing/need"
	"docent/tests/harness"
)

// A balancer is a real one that runs before several servers, with the configuration that Docent's operators are given. It
// gives the URL. Where it is random, each request goes to a server at random.
type balancer func(t *testing.T, random bool, servers ...string) string

// nginxBefore runs nginx with the file of deploy/compose.
func nginxBefore(t *testing.T, random bool, servers ...string) string {
	t.Helper()
	program := need.Peer(t, "nginx", "scripts/install-proxies", harness.InstalledProxy(harness.NginxProgram))
	at := harness.OwnAddress(t)
	text, err := os.ReadFile("../../deploy/compose/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	conf := balancing(t, string(text), random, "least_conn;", "random;", "node%d:8080", servers)
	conf = replaceOnce(t, conf, "listen 8080;", "listen "+at+";")
	dir := balancerDir(t)
	around := fmt.Sprintf("daemon off;\npid %[1]s/pid;\nerror_log stderr;\nuser root;\nworker_processes 1;\nworker_rlimit_nofile 8192;\n"+
		"events { worker_connections 4096; }\nhttp {\naccess_log off;\nclient_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy;\n"+
		"fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;\n%[2]s}\n", dir, conf)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(around), 0o600); err != nil {
		t.Fatal(err)
	}
	runBalancer(t, at, exec.Command(program, "-e", "stderr", "-p", dir, "-c", file))
	return "http://" + at
}

// haproxyBefore runs HAProxy with the file of deploy/proxies.
func haproxyBefore(t *testing.T, random bool, servers ...string) string {
	t.Helper()
	program := need.Peer(t, "HAProxy", "scripts/install-test-needs", "haproxy")
	at := harness.OwnAddress(t)
	text, err := os.ReadFile("../../deploy/proxies/haproxy/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	conf := balancing(t, string(text), random, "balance leastconn", "balance random", "10.0.0.1%d:8080", servers)
	conf = replaceOnce(t, conf, "bind :8080", "bind "+at)
	file := filepath.Join(balancerDir(t), "haproxy.cfg")
	if err := os.WriteFile(file, []byte("global\n    maxconn 4096\n"+conf), 0o600); err != nil {
		t.Fatal(err)
	}
	runBalancer(t, at, exec.Command(program, "-db", "-W", "-f", file))
	return "http://" + at
}

// balancing replaces in a configuration what an operator replaces: the addresses of its three servers.
func balancing(t *testing.T, conf string, random bool, even, atRandom, name string, servers []string) string {
	t.Helper()
	if random {
		conf = replaceOnce(t, conf, even, atRandom)
	}
	if len(servers) != 3 {
		t.Fatalf("the configurations are for three servers, not %d", len(servers))
	}
	for i, server := range servers {
		conf = replaceOnce(t, conf, fmt.Sprintf(name, i+1), server)
	}
	return conf
}

func replaceOnce(t *testing.T, text, from, to string) string {
	t.Helper()
	if n := strings.Count(text, from); n != 1 {
		t.Fatalf("%q is there %d times:\n%s", from, n, text)
	}
	return strings.Replace(text, from, to, 1)
}

func balancerDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "balancer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// runBalancer runs it until the test ends, and waits until it takes connections.
func runBalancer(t *testing.T, at string, cmd *exec.Cmd) {
	t.Helper()
	said := new(harness.LockedBuffer)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", cmd.Path, said)
		}
	})
	for deadline := time.Now().Add(time.Minute); ; {
		conn, err := net.Dial("tcp", at)
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not run: %v\n%s", cmd.Path, err, said)
		}
		time.Sleep(10 * time.Millisecond) // between two looks at another process
	}
}

var balancers = map[string]balancer{"nginx": nginxBefore, "HAProxy": haproxyBefore}

// A machine that is gone does not even refuse connections; a node that is being started again does. Neither costs a reader
// his question, and what a node has to say reaches him.
func TestBalancersAskANodeThatIsThere(t *testing.T) {
	t.Parallel()
	for name, before := range balancers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused := harness.OwnAddress(t)
			node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/busy" {
					w.Header().Set("Retry-After", "7")
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				fmt.Fprintf(w, "%s from %s over %s", r.Host, r.Header.Get("X-Forwarded-For"), r.Header.Get("X-Forwarded-Proto"))
			}))
			t.Cleanup(node.Close)
			front := before(t, false, refused, silentAddress(t), strings.TrimPrefix(node.URL, "http://"))
			for range 8 {
				resp, err := http.Post(front+"/asked", "application/json", strings.NewReader("{}"))
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if want := strings.TrimPrefix(front, "http://") + " from 127.0.0.1 over http"; err != nil || resp.StatusCode != 200 || string(text) != want {
					t.Fatalf("%d %q %v, want %q", resp.StatusCode, text, err, want)
				}
			}
			for range 8 {
				resp, err := http.Get(front + "/busy")
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "7" {
					t.Fatalf("a busy node's answer is %d %v", resp.StatusCode, resp.Header)
				}
			}
		})
	}
}

// silentAddress is where nobody answers, as on a machine without power: its queue of connections is full, and the system
// drops what comes.
func silentAddress(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*unix.SockaddrInet4).Port))
	for range 8 {
		// Of a socket that listens these are how many connections wait in its queue, and how many may. That a connection takes long
		// says nothing of it: this process may have stood still.
		queue, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			t.Fatal(err)
		}
		if queue.Unacked > queue.Sacked {
			return at
		}
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
	}
	t.Fatal("the system takes connections that nobody asked it to keep")
	return ""
}
