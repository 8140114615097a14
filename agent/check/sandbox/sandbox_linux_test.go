package sandbox

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

func TestWhatIsMissingForASandboxIsSaid(t *testing.T) {
	_, err := find("", 0, func(k Kind, _ string, _ int) error {
		return errors.New(string(k) + " cannot be made, because of this and that")
	})
	var missing *MissingError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "namespaces cannot be made") ||
		!strings.Contains(err.Error(), "landlock cannot be made") {
		t.Error(err)
	}
	kind, err := find("", 0, func(k Kind, _ string, _ int) error {
		if k == Namespaces {
			return errors.New("not here")
		}
		return nil
	})
	if kind != Landlock || err != nil {
		t.Error(kind, err)
	}
}

// A call is what the kernel shows a filter.
type call struct {
	number uint32
	args   [6]uint64
}

// The filter runs as the kernel runs it. Of Landlock's older versions, the kernel that tests this may have none.
func TestTheFilterRefusesWhatLandlockDoesNotKnow(t *testing.T) {
	if auditArch == 0 {
		t.Skip("there is no filter for this kind of processor")
	}
	const server, supervisor, own = 4000, 4001, 4100
	allow, deny := uint32(unix.SECCOMP_RET_ALLOW), func(no unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(no) }
	old, young, spaces := Box{Kind: Landlock}, Box{Kind: Landlock}, Box{Kind: Namespaces}
	for name, c := range map[string]struct {
		box  Box
		abi  int
		call call
		want uint32
	}{
		"read":                     {young, 6, call{number: unix.SYS_READ}, allow},
		"a signal, old":            {old, 4, call{unix.SYS_KILL, [6]uint64{server, 9}}, deny(unix.EPERM)},
		"a signal to all, old":     {old, 4, call{unix.SYS_KILL, [6]uint64{1<<64 - 1, 9}}, deny(unix.EPERM)},
		"a signal to its group":    {old, 4, call{unix.SYS_KILL, [6]uint64{0, 15}}, allow},
		"a signal, young":          {young, 6, call{unix.SYS_KILL, [6]uint64{own, 9}}, allow},
		"a thread of the server's": {old, 4, call{unix.SYS_TGKILL, [6]uint64{server, server + 9, 9}}, deny(unix.EPERM)},
		"of its supervisor's":      {old, 4, call{unix.SYS_TGKILL, [6]uint64{supervisor, supervisor, 9}}, deny(unix.EPERM)},
		"a thread of its own":      {old, 4, call{unix.SYS_TGKILL, [6]uint64{own, own, 6}}, allow},
		"signals of files":         {old, 4, call{unix.SYS_FCNTL, [6]uint64{3, unix.F_SETOWN, server}}, deny(unix.EPERM)},
		"flags of files":           {old, 4, call{unix.SYS_FCNTL, [6]uint64{3, unix.F_SETFL}}, allow},
		"by descriptor, old":       {old, 4, call{number: unix.SYS_PIDFD_SEND_SIGNAL}, deny(unix.EPERM)},
		"truncate, oldest":         {old, 2, call{number: unix.SYS_TRUNCATE}, deny(unix.EPERM)},
		"truncate":                 {young, 3, call{number: unix.SYS_TRUNCATE}, allow},
		"rights by path":           {young, 6, call{number: unix.SYS_FCHMODAT}, deny(0)},
		"rights of a file":         {young, 6, call{number: unix.SYS_FCHMOD}, allow},
		"times by path":            {young, 6, call{unix.SYS_UTIMENSAT, [6]uint64{3, 0x7fff0000_12345678}}, deny(0)},
		"times by a round path":    {young, 6, call{unix.SYS_UTIMENSAT, [6]uint64{3, 0x7fff_00000000}}, deny(0)},
		"times of a file":          {young, 6, call{unix.SYS_UTIMENSAT, [6]uint64{3, 0}}, allow},
		"rights in namespaces":     {spaces, 0, call{number: unix.SYS_FCHMODAT}, allow},
		"limits of the server":     {young, 6, call{unix.SYS_PRLIMIT64, [6]uint64{server}}, deny(unix.EPERM)},
		"its own limits":           {young, 6, call{unix.SYS_PRLIMIT64, [6]uint64{0}}, allow},
		"priority of all":          {young, 6, call{unix.SYS_SETPRIORITY, [6]uint64{unix.PRIO_USER}}, deny(unix.EPERM)},
		"a socket":                 {young, 6, call{unix.SYS_SOCKET, [6]uint64{unix.AF_INET}}, deny(unix.EACCES)},
		"a socket by path":         {young, 6, call{unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX}}, deny(unix.EACCES)},
		"the network": {Box{Kind: Landlock, Network: true}, 6, call{unix.SYS_SOCKET, [6]uint64{unix.AF_INET}},
			allow},
		"the network, by path": {Box{Kind: Namespaces, Network: true}, 0, call{unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX}},
			deny(unix.EACCES)},
		"in namespaces":       {spaces, 0, call{unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX}}, allow},
		"virtual machines":    {spaces, 0, call{unix.SYS_SOCKET, [6]uint64{unix.AF_VSOCK}}, deny(unix.EACCES)},
		"a pair":              {young, 6, call{unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}}, allow},
		"a pair that reaches": {young, 6, call{unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC}}, deny(unix.EPERM)},
		"a process":           {young, 6, call{unix.SYS_CLONE, [6]uint64{uint64(unix.SIGCHLD)}}, allow},
		"a user namespace":    {young, 6, call{unix.SYS_CLONE, [6]uint64{unix.CLONE_NEWUSER}}, deny(unix.EPERM)},
		"hides":               {young, 6, call{unix.SYS_PRCTL, [6]uint64{unix.PR_SET_DUMPABLE, 0}}, deny(unix.EPERM)},
		"of tomorrow":         {young, 6, call{number: lastCall + 1}, deny(unix.ENOSYS)},
		"of another kind":     {young, 6, call{number: 0x40000000 | unix.SYS_READ}, deny(unix.ENOSYS)},
	} {
		t.Run(name, func(t *testing.T) {
			code, err := filterFor(c.box, c.abi, supervisor, server)
			if err != nil {
				t.Fatal(err)
			}
			if got := run(t, code, auditArch, c.call); got != c.want {
				t.Errorf("%#x, want %#x", got, c.want)
			}
		})
	}
	code, err := filterFor(spaces, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t, code, unix.AUDIT_ARCH_I386, call{}); got != unix.SECCOMP_RET_KILL_PROCESS {
		t.Errorf("%#x for the calls of another architecture", got)
	}
}

// run puts a call to a filter. Its words are in network order, as the machine of package bpf reads them.
func run(t *testing.T, code []unix.SockFilter, arch uint32, c call) uint32 {
	t.Helper()
	var raw []bpf.RawInstruction
	for _, i := range code {
		raw = append(raw, bpf.RawInstruction{Op: i.Code, Jt: i.Jt, Jf: i.Jf, K: i.K})
	}
	program, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("the filter has instructions that are none")
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	words := []uint32{c.number, arch, 0, 0}
	for _, a := range c.args {
		words = append(words, uint32(a), uint32(a>>32))
	}
	var data []byte
	for _, w := range words {
		data = binary.BigEndian.AppendUint32(data, w)
	}
	got, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(got)
}
