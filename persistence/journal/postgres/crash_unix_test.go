//go:build unix

package postgres

import (
	"crypto/rand"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"docent/internal/testing/freeport"
	"docent/internal/testing/need"
)

func TestNothingIsLostOrDoneTwiceWhenTheDatabaseCrashes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	b := newBase(t, s.dsn())
	o := Options{Patience: patience}
	journals := []*Journal{open(t, b.dsn, o), open(t, b.dsn, o), open(t, b.dsn, o)}
	faults(t, b, journals, 2, s.crash)
}

// A server is a PostgreSQL of the test's own, which can crash.
type server struct {
	t    *testing.T
	bin  string
	dir  string
	port int
}

func newServer(t *testing.T) *server {
	t.Helper()
	if os.Getenv("DOCENT_TEST_POSTGRES") == "" {
		t.Skip("PostgreSQL is left out: DOCENT_TEST_POSTGRES holds no DSN")
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		if need.All {
			t.Fatal("PostgreSQL is not installed here")
		}
		t.Skip("PostgreSQL is not installed here: a test's own server cannot be started")
	}
	s := &server{t: t, bin: filepath.Dir(found[len(found)-1]), port: freeport.On(t, "127.0.0.1")}
	var err error
	s.dir, err = os.MkdirTemp("", "journal-"+rand.Text())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(s.dir) })
	if os.Getuid() == 0 {
		uid, gid := s.owner()
		if err := os.Chown(s.dir, int(uid), int(gid)); err != nil {
			t.Fatal(err)
		}
	}
	s.run("initdb", "-D", s.dir+"/data", "-U", "docent", "-A", "trust", "--no-sync")
	s.start()
	t.Cleanup(func() { s.run("pg_ctl", "-D", s.dir+"/data", "-m", "immediate", "stop") })
	return s
}

// owner is who the server runs as: it refuses to be root.
func (s *server) owner() (uid, gid uint32) {
	s.t.Helper()
	who, err := user.Lookup("postgres")
	if err != nil {
		s.t.Fatal(err)
	}
	u, err := strconv.ParseUint(who.Uid, 10, 32)
	if err != nil {
		s.t.Fatal(err)
	}
	g, err := strconv.ParseUint(who.Gid, 10, 32)
	if err != nil {
		s.t.Fatal(err)
	}
	return uint32(u), uint32(g)
}

func (s *server) run(program string, args ...string) {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(s.bin, program), args...)
	cmd.Dir = s.dir
	if os.Getuid() == 0 {
		uid, gid := s.owner()
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	}
	cmd.WaitDelay = time.Minute
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
}

func (s *server) start() {
	s.t.Helper()
	s.run("pg_ctl", "-D", s.dir+"/data", "-w", "-l", s.dir+"/log", "-o", "-p "+strconv.Itoa(s.port)+
		" -c listen_addresses=127.0.0.1 -c unix_socket_directories="+s.dir, "start")
}

// crash ends the server at once and starts it again: it recovers from its log.
func (s *server) crash() {
	s.t.Helper()
	s.run("pg_ctl", "-D", s.dir+"/data", "-m", "immediate", "stop")
	s.start()
}

func (s *server) dsn() string {
	return "postgres://docent@127.0.0.1:" + strconv.Itoa(s.port) + "/postgres?sslmode=disable"
}
