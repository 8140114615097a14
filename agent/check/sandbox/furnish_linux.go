package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// devices are those that every program may use.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// furnish makes a root of what the box shows, in this process's own namespaces, and puts it in the place of the old one.
func (b Box) furnish() error {
	path := filepath.Join(b.Work, "root")
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to itself: %w", err)
	}
	if err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
		return fmt.Errorf("mount a root: %w", err)
	}
	// What it is made of may have links: none leads out of it.
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Mkdir("proc", 0o755); err != nil {
		return err
	}
	if err := unix.Mount("proc", path+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	// On the disk, where what they hold is bounded, and not in memory; before all that may lie in them.
	const own = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	for _, d := range [][2]string{{"/tmp", "/tmp"}, {"/tmp", "/var/tmp"}, {"/shm", "/dev/shm"}} {
		if err := show(root, b.Work+d[0], d[1], own); err != nil {
			return err
		}
	}
	for _, p := range b.shown() {
		if target, err := os.Readlink(p); err == nil && filepath.Dir(p) == "/" { // such as /bin, which is in /usr
			if err := root.Symlink(target, p[1:]); err != nil {
				return err
			}
			continue
		}
		if err := show(root, p, p, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV); err != nil {
			return err
		}
	}
	for _, p := range devices {
		if err := show(root, p, p, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{"dev/fd": "/proc/self/fd", "dev/stdin": "/proc/self/fd/0",
		"dev/stdout": "/proc/self/fd/1", "dev/stderr": "/proc/self/fd/2"} {
		if err := root.Symlink(target, name); err != nil {
			return err
		}
	}
	if err := show(root, b.Work, b.Work, own); err != nil {
		return err
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("make the root read-only: %w", err)
	}
	if err := os.Chdir(path); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil { // the old one, which lies over the new one
		return fmt.Errorf("leave the old root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte("check")); err != nil {
		return fmt.Errorf("name the machine: %w", err)
	}
	if b.Network {
		return nil
	}
	return loopback()
}

// show puts a path of the machine at a path below the new root.
func show(root *os.Root, from, at string, attributes uint64) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	to := filepath.Join(root.Name(), at)
	at = strings.TrimPrefix(at, "/")
	if err := root.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return fmt.Errorf("show %s: %w", from, err)
	}
	if info.IsDir() {
		err = root.MkdirAll(at, 0o755)
	} else if _, missing := root.Stat(at); missing != nil {
		err = root.WriteFile(at, nil, 0o444)
	}
	if err != nil {
		return fmt.Errorf("show %s: %w", from, err)
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("show %s: %w", from, err)
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, to, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attributes}); err != nil {
		return fmt.Errorf("show %s read-only: %w", from, err)
	}
	return nil
}

// loopback brings up the one interface of a network of its own: builds serve pages to themselves.
func loopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("bring up the loopback: %w", err)
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring up the loopback: %w", err)
	}
	return nil
}
