// Package sandbox runs one program in a view of the machine that has its own folder, the system's programs and nothing
// else, with bounds on time, memory, processes and disk, and ends all that it started.
//
// The program that imports this package is its own helper: it starts itself again as the supervisor of a run, which
// starts it as the first process of new namespaces, which starts it to give up its rights and become the program. No
// shell, no setuid program and no container runtime is needed.
package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Kind is how a program is kept apart.
type Kind string

const (
	// Namespaces is a user namespace with mounts, processes, network and IPC of its own: what is not shown does not
	// exist.
	Namespaces Kind = "namespaces"
	// Landlock refuses what is not shown, and a filter refuses the calls that Landlock does not know of.
	Landlock Kind = "landlock"
	// None bounds a program and ends what it started, and keeps it from nothing that its user may do.
	None Kind = "none"
)

// StatusNotRun is the exit status of a command that could not be started; what it printed says why.
const StatusNotRun = 125

// A Box is what a program may see and use.
type Box struct {
	Kind Kind
	// Work is a folder that only this run has. Its folders home, tmp and shm take the place of the user's and the
	// system's.
	Work    string
	Dir     string   // in which the program starts
	Read    []string // what it sees beyond System, to be read and run
	Hidden  []string // what no path that it sees may lie in or hold, whatever Read says
	Network bool
	User    int // id of the user that it runs as if the caller is root; the caller's if zero

	Memory int64         // bytes that it and what it starts hold together
	Tasks  int           // threads of all its processes together
	Time   time.Duration // of processor, for each process
	File   int64         // bytes of any file
	Disk   int64         // bytes that may go from the disk of Work meanwhile
}

// System is what every program sees of the machine, as far as it is there.
func System() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store",
		"/etc/alternatives", "/etc/ca-certificates", "/etc/debian_version", "/etc/fonts", "/etc/group", "/etc/host.conf",
		"/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/locale.alias", "/etc/localtime",
		"/etc/magic", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd", "/etc/pki/ca-trust",
		"/etc/pki/tls/certs", "/etc/protocols", "/etc/services", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/terminfo",
		"/etc/timezone"}
}

// resolver is seen by programs that have the network.
const resolver = "/etc/resolv.conf"

// shown lists what the program sees beside its folder, as far as it is there.
func (b Box) shown() []string {
	var out []string
	for _, p := range System() {
		if _, err := os.Stat(p); err == nil {
			out = append(out, p)
		}
	}
	if _, err := os.Stat(resolver); err == nil && b.Network {
		out = append(out, resolver)
	}
	return append(out, b.Read...)
}

// Sees reports whether the program would see a path.
func (b Box) Sees(path string) bool {
	path = real(path)
	return slices.ContainsFunc(b.shown(), func(p string) bool { return within(real(p), path) })
}

// Problem says why the box may not be used as it is: something is to be seen that is not there or has to stay hidden.
func (b Box) Problem() error {
	for _, p := range b.Read {
		if !filepath.IsAbs(p) || filepath.Clean(p) == "/" {
			return fmt.Errorf("%q is no path from the root of a folder or file to be read", p)
		}
		if _, err := os.Stat(p); err != nil {
			return fmt.Errorf("what the check is to read: %w", err)
		}
	}
	if b.Kind == None {
		return nil
	}
	for _, seen := range b.shown() {
		for _, hidden := range b.Hidden {
			if within(real(seen), real(hidden)) || within(real(hidden), real(seen)) {
				return fmt.Errorf("a check would see %s, as it sees %s: move it elsewhere, or show the check less", hidden, seen)
			}
		}
	}
	return nil
}

// real is a path without symbolic links, as far as it exists.
func real(path string) string {
	path = filepath.Clean(path)
	for rest := ""; ; {
		if r, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(r, rest)
		}
		parent := filepath.Dir(path)
		if parent == path {
			return filepath.Join(path, rest)
		}
		path, rest = parent, filepath.Join(filepath.Base(path), rest)
	}
}

// within reports whether a path is another one or lies below it.
func within(outer, path string) bool {
	return path == outer || strings.HasPrefix(path, strings.TrimSuffix(outer, "/")+"/")
}

// A MissingError says why programs cannot be kept apart here.
type MissingError struct{ Why []string }

func (e *MissingError) Error() string {
	return "no sandbox can be had here: " + strings.Join(e.Why, "; ")
}

// Folders are those that the caller makes in Work.
func Folders() []string { return []string{"home", "tmp", "shm", "root"} }
