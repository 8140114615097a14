package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"docent/internal/health"
)

// A volume is the file system that a folder is on.
type volume struct {
	kind        string // empty if the system does not say
	free, total uint64 // bytes
	files, all  uint64 // further files that there is room for, of how many; all is zero if that is not bounded
}

// Folder looks at the owner and the modes of a data directory, as the user that runs this process.
func Folder(path, service string) []Finding {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Finding{Doubt("docent init", "there is no folder %s yet", path)}
	case err != nil:
		return []Finding{Wrong("sudo -u "+service+" docent doctor --data "+path, "it cannot be looked at: %v", err)}
	case !info.IsDir():
		return []Finding{Wrong("name a folder with --data", "%s is no folder", path)}
	}
	var found []Finding
	if owner, ok := ownerOf(info); ok && owner != os.Getuid() && os.Getuid() != 0 {
		return []Finding{Wrong("sudo -u "+userName(owner)+" docent doctor --data "+path,
			"%s belongs to %s, and this is %s", path, userName(owner), userName(os.Getuid()))}
	}
	if info.Mode().Perm()&0o022 != 0 {
		found = append(found, Wrong("chmod go-w "+path, "%s can be written to by others (mode %04o): they can replace what is in it", path, info.Mode().Perm()))
	}
	owner, known := ownerOf(info)
	entries, err := os.ReadDir(path)
	if err != nil {
		return append(found, Wrong("chmod u+rwx "+path, "it cannot be read: %v", err))
	}
	for _, e := range entries {
		inner, err := e.Info()
		if err != nil || inner.Mode()&(fs.ModeSymlink|fs.ModeSocket) != 0 || e.Name() == "lost+found" { // the disk's own
			continue
		}
		whole := filepath.Join(path, e.Name())
		if whose, ok := ownerOf(inner); ok && known && whose != owner {
			found = append(found, Wrong(fmt.Sprintf("chown -R %s %s", userName(owner), whole),
				"%s belongs to %s and the folder to %s: the server cannot open it", e.Name(), userName(whose), userName(owner)))
		} else if inner.Mode().Perm()&0o077 != 0 {
			found = append(found, Doubt("chmod -R go-rwx "+whole, "%s can be read by others (mode %04o)", e.Name(), inner.Mode().Perm()))
		}
	}
	if len(found) == 0 {
		text := path + " is this user's alone"
		if known && owner != os.Getuid() {
			text = path + " is " + userName(owner) + "'s alone"
		}
		return []Finding{Fine("%s", text)}
	}
	return found
}

// Others is the user that a folder belongs to, where that is another one than this process's: what this process made in
// it, the owner could not open.
func Others(path string) (owner string, is bool) {
	info, err := os.Stat(path)
	if err != nil {
		return "", false
	}
	id, known := ownerOf(info)
	if !known || id == os.Getuid() {
		return "", false
	}
	return userName(id), true
}

func userName(id int) string {
	if u, err := user.LookupId(strconv.Itoa(id)); err == nil {
		return u.Username
	}
	return "user " + strconv.Itoa(id)
}

// Space looks at what is free on the disk of a folder.
func Space(path string) Finding {
	v, err := volumeOf(existing(path))
	if errors.Is(err, errors.ErrUnsupported) {
		return Left("this system does not say")
	}
	if err != nil {
		return Wrong("", "the disk of %s cannot be looked at: %v", path, err)
	}
	return v.space(path)
}

const mega = 1 << 20

func (v volume) space(path string) Finding {
	room := fmt.Sprintf("%s free of %s", health.Bytes(v.free), health.Bytes(v.total))
	const fix = "make room or move the data directory: docent journal compact gives back what the journal no longer needs, with the server stopped"
	switch {
	case v.free < 64*mega:
		return Wrong(fix, "%s has %s: nothing can be accepted when that is used up", path, room)
	case v.all > 0 && v.files < 1000:
		return Wrong("remove files from this file system, or format it again with more inodes", "%s has room for %d more files: its inodes are used up", path, v.files)
	case v.free < v.total/20 && v.free < 10<<30, v.free < 512*mega:
		return Doubt(fix, "%s has %s", path, room)
	case v.all > 0 && v.files < v.all/20 && v.files < 100_000:
		return Doubt("remove files from this file system", "%s has room for %d more files of %d", path, v.files, v.all)
	}
	return Fine("%s", room)
}

// FileSystem looks at the kind of file system that a folder is on.
func FileSystem(path string) Finding {
	v, err := volumeOf(existing(path))
	if err != nil || v.kind == "" {
		return Left("this system does not say")
	}
	return kindOf(v.kind, path)
}

func kindOf(kind, path string) Finding {
	switch {
	case slices.Contains([]string{"tmpfs", "ramfs"}, kind):
		return Doubt("move the data directory to a disk", "%s is in memory (%s): all of it is gone when the machine stops", path, kind)
	case slices.Contains([]string{"nfs", "smb", "cifs", "smb2", "9p", "ceph", "afs"}, kind):
		return Wrong("move the data directory to a disk of this machine", "%s is on a network (%s), whose locks and syncs do not guarantee what the journal and the catalog need", path, kind)
	case kind == "fuse":
		return Doubt("move the data directory to a disk of this machine", "%s is on a file system in user space (fuse): its locks and syncs may not be reliable", path)
	case kind == "overlayfs":
		return Doubt("mount a volume there", "%s is in the container's own layer (overlayfs): all of it is gone when the container is re-created", path)
	}
	return Fine("%s", kind)
}

// Syncs writes a file into a folder and brings it to the disk, some times.
func Syncs(ctx context.Context, path string) Finding {
	if _, err := os.Stat(path); err != nil {
		return Left("there is no folder %s", path)
	}
	f, err := os.CreateTemp(path, ".doctor-*")
	if err != nil {
		return Wrong("make room on the disk, mount it writable, or run this as the server's user", "nothing can be written: %v", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var took []time.Duration
	for began := time.Now(); len(took) < 20 && time.Since(began) < 3*time.Second && ctx.Err() == nil; {
		start := time.Now()
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return Wrong("make room on the disk", "nothing can be written: %v", err)
		}
		if err := f.Sync(); err != nil {
			return Wrong("look at the kernel's log (dmesg): the disk may be broken", "what was written cannot be brought to the disk: %v", err)
		}
		took = append(took, time.Since(start))
	}
	return latency(took)
}

func latency(took []time.Duration) Finding {
	if len(took) == 0 {
		return Left("there was no time for it")
	}
	slices.Sort(took)
	half, most := took[len(took)/2].Round(10*time.Microsecond), took[len(took)-1].Round(10*time.Microsecond)
	text := fmt.Sprintf("a sync takes %s, the longest of %d took %s", half, len(took), most)
	switch {
	case half > 200*time.Millisecond:
		return Wrong("move the data directory to a disk with a write cache that survives a loss of power, or to an SSD", "%s: each question waits for one", text)
	case half > 30*time.Millisecond:
		return Doubt("move the data directory to a faster disk", "%s: each question waits for one", text)
	}
	return Fine("%s", text)
}

// OpenFiles holds the limit of open files against the streams that are let in.
func OpenFiles(limit uint64, streams int) Finding {
	// Beside streams: what a server has open by itself, and connections that wait.
	need := uint64(streams) + 512
	if limit == 0 {
		return Left("this system does not say")
	}
	if limit < need {
		return Doubt(fmt.Sprintf("LimitNOFILE=%d in the unit ([Service]), or max_streams = %d in the configuration", max(65536, need), max(1, int(limit)-512)),
			"%d files may be open, and max_streams lets in %d streams, each of which needs one", limit, streams)
	}
	return Fine("%d files may be open, for up to %d streams", limit, streams)
}

// Memory holds what a process may use against what its settings let it hold.
func Memory(limit, indexes int64) Finding {
	switch {
	case limit == 0:
		return Left("neither the system nor a setting says how much there is")
	case limit < 96*mega:
		return Doubt("give the process 256 MB", "%s: too little for the process and an index of a few hundred pages", health.Bytes(uint64(limit)))
	}
	return Fine("the process stays under %s, its open indexes under %s", health.Bytes(uint64(limit)), health.Bytes(uint64(indexes)))
}

// Clock compares the machine's clock with that of web servers, as they put it into the Date of an answer, and with
// itself over a second: a clock that is being set jumps.
func Clock(ctx context.Context, now func() time.Time, client *http.Client, hosts []string) []Finding {
	var found []Finding
	began, wall := time.Now(), now()
	if wall.Year() < 2025 {
		found = append(found, Wrong("timedatectl set-ntp true", "it is %s here: certificates and expiry dates do not hold", wall.UTC().Format(time.RFC3339)))
	}
	asked := false
	for _, host := range hosts {
		offset, ok := offsetTo(ctx, now, client, host)
		if !ok {
			continue
		}
		asked = true
		if offset.Abs() > 5*time.Second {
			make := Doubt
			if offset.Abs() > time.Minute {
				make = Wrong
			}
			found = append(found, make("timedatectl set-ntp true", "it is %s off from the clock of %s: sessions, signatures of webhooks and expiry dates are judged by it", offset.Round(time.Second), host))
		}
		break
	}
	select {
	case <-ctx.Done():
	case <-time.After(max(0, time.Second-time.Since(began))):
	}
	if drift := now().Round(0).Sub(wall.Round(0)) - time.Since(began); drift.Abs() > 500*time.Millisecond {
		found = append(found, Doubt("let one service alone set the clock: timedatectl status", "it jumped by %s within a second", drift.Round(time.Millisecond)))
	}
	if len(found) > 0 {
		return found
	}
	zone, _ := now().Local().Zone()
	if !asked {
		return []Finding{Fine("%s; no other clock could be asked", now().Local().Format("2006-01-02 15:04:05 ")+zone)}
	}
	return []Finding{Fine("%s, as elsewhere", now().Local().Format("2006-01-02 15:04:05 ")+zone)}
}

// offsetTo is by how much this clock is ahead of a web server's.
func offsetTo(ctx context.Context, now func() time.Time, client *http.Client, address string) (time.Duration, bool) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, address, nil)
	if err != nil {
		return 0, false
	}
	sent := now()
	resp, err := client.Do(req)
	if err != nil {
		return 0, false
	}
	resp.Body.Close()
	took := now().Sub(sent)
	there, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return 0, false
	}
	// The header has whole seconds, of which half one has passed.
	return sent.Add(took / 2).Sub(there.Add(500 * time.Millisecond)), true
}

// existing is the folder itself, or the nearest one above it that there is.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}
