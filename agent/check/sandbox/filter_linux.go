package sandbox

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lastCall is the newest system call that this filter has been held against. Later ones are not there for programs in a
// sandbox; they are made to do without.
const lastCall = unix.SYS_MSEAL

// never are calls that a build needs no more than a page does: they change the machine, look into other processes, or
// reach parts of the kernel that have been the way out of sandboxes.
var never = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOUNT_SETATTR, unix.SYS_MOVE_MOUNT,
	unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_UNSHARE,
	unix.SYS_SETNS, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
	unix.SYS_PROCESS_MRELEASE, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_KEYCTL, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	unix.SYS_ACCT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_SYSLOG, unix.SYS_SETTIMEOFDAY,
	unix.SYS_CLOCK_SETTIME, unix.SYS_FANOTIFY_INIT, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_VHANGUP, unix.SYS_IOPRIO_SET,
}

// absent are calls that programs find out are missing and do without. Rings make other calls where no filter sees them,
// and what the others allocate belongs to no process, so that no bound on memory would count it.
var absent = []uint32{
	unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_MEMFD_CREATE,
	unix.SYS_MEMFD_SECRET, unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_MSGGET, unix.SYS_MQ_OPEN,
}

// silent are calls that change what is known of a file by its path. Landlock does not know of them, and a filter sees no
// paths: with Landlock alone they do nothing and say that they did, because builds make them all the time and few care.
// Those of an open file, such as fchmod, do what they should.
var silent = append([]uint32{
	unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT, unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_REMOVEXATTR,
	unix.SYS_LREMOVEXATTR,
}, oldSilent...)

const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID |
	unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

// filterFor is the seccomp filter of a box. abi is that of Landlock if the box is made of it; others are the ids of
// processes that older versions of it would let the program send signals to.
func filterFor(b Box, abi int, others ...int) ([]unix.SockFilter, error) {
	if auditArch == 0 {
		return nil, errors.New("there is no filter of system calls for this kind of processor")
	}
	var p program
	p.load(4) // the architecture
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, auditArch, 1, 0)
	p.result(unix.SECCOMP_RET_KILL_PROCESS)
	p.load(0) // the number
	p.add(unix.BPF_JMP|unix.BPF_JGT|unix.BPF_K, lastCall, 0, 1)
	p.fail(unix.ENOSYS)
	p.all(never, unix.EPERM)
	p.all(absent, unix.ENOSYS)
	p.unless(unix.SYS_CLONE, func(p *program) { // its low half; there are no such flags in the other
		p.load(argument(0))
		p.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, namespaceFlags, 0, 1)
		p.fail(unix.EPERM)
	})
	// A process that hides what it holds could not be measured.
	p.unless(unix.SYS_PRCTL, func(p *program) { p.not(0, unix.EPERM, unix.PR_SET_DUMPABLE) })
	var families []uint32
	if b.Kind == Namespaces && !b.Network {
		families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} // there is nobody to talk to
	} else {
		// AF_UNIX would reach the sockets of other services, by path or by name. Pairs may be made of those that cannot
		// reach anybody else.
		if b.Network {
			families = []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
		}
		p.unless(unix.SYS_SOCKETPAIR, func(p *program) {
			p.load(argument(1))
			p.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0xf, 0, 0)
			p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.SOCK_DGRAM, 0, 1)
			p.fail(unix.EPERM)
		})
	}
	p.unless(unix.SYS_SOCKET, func(p *program) { p.only(0, unix.EACCES, families...) })
	if b.Kind == Landlock {
		p.beside(abi, others)
	}
	p.result(unix.SECCOMP_RET_ALLOW)
	return p.code, nil
}

// beside has the rules for a program that sees the machine's processes and paths, with Landlock in between.
func (p *program) beside(abi int, others []int) {
	p.all(silent, 0)
	p.unless(unix.SYS_UTIMENSAT, func(p *program) { // of the open file if there is no path
		p.only(1, 0, 0)
	})
	for _, call := range []uint32{unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER,
		unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR} {
		p.unless(call, func(p *program) { p.only(0, unix.EPERM, 0) }) // its own
	}
	p.unless(unix.SYS_SETPRIORITY, func(p *program) {
		p.only(0, unix.EPERM, unix.PRIO_PROCESS)
		p.only(1, unix.EPERM, 0)
	})
	if abi < abiTruncate {
		p.all([]uint32{unix.SYS_TRUNCATE}, unix.EPERM)
	}
	if abi >= abiScopes {
		return
	}
	p.all([]uint32{unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_SEND_SIGNAL},
		unix.EPERM)
	p.unless(unix.SYS_KILL, func(p *program) { p.only(0, unix.EPERM, 0) }) // its own group
	p.unless(unix.SYS_TGKILL, func(p *program) {
		for _, pid := range others {
			p.not(0, unix.EPERM, uint32(pid))
		}
	})
	p.unless(unix.SYS_FCNTL, func(p *program) { p.not(1, unix.EPERM, unix.F_SETOWN, unix.F_SETOWN_EX, unix.F_SETSIG) })
	p.unless(unix.SYS_IOCTL, func(p *program) { p.not(1, unix.EPERM, fiosetown, unix.SIOCSPGRP) })
}

const fiosetown = 0x8901 // FIOSETOWN, which has its number from before there were systems for it

// A program is a filter that is being written. The number of the call is loaded between any two rules.
type program struct{ code []unix.SockFilter }

func (p *program) add(code uint16, k uint32, yes, no uint8) {
	p.code = append(p.code, unix.SockFilter{Code: code, K: k, Jt: yes, Jf: no})
}
func (p *program) load(at uint32)        { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, at, 0, 0) }
func (p *program) result(k uint32)       { p.add(unix.BPF_RET|unix.BPF_K, k, 0, 0) }
func (p *program) fail(no unix.Errno)    { p.result(unix.SECCOMP_RET_ERRNO | uint32(no)) }
func argument(i int) uint32              { return uint32(16 + 8*i) } // its low half, of struct seccomp_data
func (p *program) eq(k uint32, no uint8) { p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, k, 0, no) }

// all gives calls one result.
func (p *program) all(calls []uint32, no unix.Errno) {
	for _, call := range calls {
		p.eq(call, 1)
		p.fail(no)
	}
}

// unless lets a call through if its rules do not end it. They may load what they like.
func (p *program) unless(call uint32, rules func(*program)) {
	var inner program
	rules(&inner)
	inner.result(unix.SECCOMP_RET_ALLOW)
	p.eq(call, uint8(len(inner.code)))
	p.code = append(p.code, inner.code...)
}

// only ends a call whose argument has none of the values.
func (p *program) only(arg int, no unix.Errno, values ...uint32) {
	p.load(argument(arg) + 4)
	p.eq(0, uint8(len(values)+1)) // with anything in its high half it is none of them
	p.load(argument(arg))
	for i, v := range values {
		p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, v, uint8(len(values)-i), 0)
	}
	p.fail(no)
}

// not ends a call whose argument has one of the values.
func (p *program) not(arg int, no unix.Errno, values ...uint32) {
	p.load(argument(arg))
	for _, v := range values {
		p.eq(v, 1)
		p.fail(no)
	}
}

// install puts the filter over this thread, and what it becomes.
func install(code []unix.SockFilter) error {
	filter := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if _, _, no := unix.Syscall(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER,
		uintptr(unsafe.Pointer(&filter))); no != 0 {
		return fmt.Errorf("a filter of system calls: %w", no)
	}
	return nil
}
