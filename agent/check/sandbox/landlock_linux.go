package sandbox

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Versions of Landlock.
const (
	abiRefer    = 2 // files move between folders: before it, none can
	abiTruncate = 3
	abiDevices  = 5 // ioctl of devices
	abiScopes   = 6 // signals and sockets by name stay inside
)

// abi is the kernel's version of Landlock.
func abi() (int, error) {
	n, _, no := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case no == unix.ENOSYS:
		return 0, errors.New("the kernel has no Landlock (5.19 and later have it)")
	case no == unix.EOPNOTSUPP:
		return 0, errors.New("it is turned off (start the kernel with landlock among lsm=)")
	case no != 0:
		return 0, fmt.Errorf("%w (a filter of system calls may forbid it)", no)
	case n < abiRefer:
		return 0, fmt.Errorf("the kernel's Landlock has version %d, and %d is needed (Linux 5.19)", n, abiRefer)
	}
	return int(n), nil
}

const (
	readFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	readAll   = readFiles | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// glanced are files about the machine that programs look at to fit themselves to it. Those of processes, the program's
// own included, are not among them.
var glanced = []string{"/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime", "/proc/version",
	"/proc/filesystems", "/proc/sys/kernel", "/proc/sys/vm/overcommit_memory", "/sys/devices/system/cpu",
	"/sys/fs/cgroup"}

// rights are all that a version of Landlock knows of.
func rights(abi int) uint64 {
	all := uint64(unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1)
	all |= unix.LANDLOCK_ACCESS_FS_REFER
	if abi >= abiTruncate {
		all |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= abiDevices {
		all |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return all
}

// landlock leaves this thread, and what it becomes, the paths of a box.
func landlock(b Box, abi int) error {
	all := rights(abi)
	attr := unix.LandlockRulesetAttr{Handled_access_fs: all}
	if abi >= abiScopes {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	set, _, no := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if no != 0 {
		return fmt.Errorf("make rules of Landlock: %w", no)
	}
	defer unix.Close(int(set))
	for _, p := range b.shown() {
		if err := allow(int(set), p, readAll&all); err != nil {
			return err
		}
	}
	for _, p := range glanced {
		if err := allow(int(set), p, readAll&all); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for _, p := range devices {
		if err := allow(int(set), p, writeFile&all); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := allow(int(set), b.Work, all); err != nil {
		return err
	}
	if _, _, no := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); no != 0 {
		return fmt.Errorf("keep to the rules of Landlock: %w", no)
	}
	return nil
}

// allow adds rights to a path.
func allow(set int, path string, rights uint64) error {
	f, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("a rule of Landlock for %s: %w", path, err)
	}
	defer unix.Close(f)
	var stat unix.Stat_t
	if err := unix.Fstat(f, &stat); err != nil {
		return fmt.Errorf("a rule of Landlock for %s: %w", path, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= readFiles | writeFile
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(f)}
	if _, _, no := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0); no != 0 {
		return fmt.Errorf("a rule of Landlock for %s: %w", path, no)
	}
	return nil
}
