//go:build linux

package journal

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"docent/api"
	"docent/internal/testing/need"
	"docent/persistence/quota"
)

// A faultyDisk stands between bbolt and the file. bbolt has no seam for it, since it wants an *os.File: writes go
// through its own test hook, and a sync fails because the file's descriptor is, for that moment, a pipe's.
type faultyDisk struct {
	errno syscall.Errno // of a write that fails; ENOSPC if zero
	t     *testing.T
	fd    int
	saved int // a second descriptor of the file
	pipe  int

	mu      sync.Mutex
	ops     int // writes and syncs so far
	fail    int // at this one
	last    int // and at all up to this one
	short   bool
	sync    bool // fail the sync after write number fail
	tripped int
	record  func(b []byte, off int64) // hears of every write
}

func newFaultyDisk(t *testing.T, j *Journal) *faultyDisk {
	t.Helper()
	d := &faultyDisk{t: t, fd: int(j.file.Fd())}
	var err error
	if d.saved, err = unix.Dup(d.fd); err != nil {
		t.Fatal(err)
	}
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		t.Fatal(err)
	}
	unix.Close(p[0])
	d.pipe = p[1]
	t.Cleanup(func() { j.Close(); unix.Close(d.saved); unix.Close(d.pipe) })
	field := reflect.ValueOf(j.db).Elem().FieldByName("ops").FieldByName("writeAt")
	hook := (*func([]byte, int64) (int, error))(unsafe.Pointer(field.UnsafeAddr()))
	if err := j.do(func(*commit) error { *hook = d.writeAt; return nil }); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *faultyDisk) swap(fd int) {
	if err := unix.Dup3(fd, d.fd, unix.O_CLOEXEC); err != nil {
		d.t.Error(err)
	}
}

func (d *faultyDisk) writeAt(b []byte, off int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops++
	if d.record != nil {
		d.record(b, off)
	}
	if d.sync {
		d.swap(d.saved)
	} else if d.ops >= d.fail && d.ops <= d.last {
		d.tripped++
		if d.short {
			n, _ := unix.Pwrite(d.saved, b[:len(b)/2], off)
			return n, io.ErrShortWrite
		}
		return 0, &os.PathError{Op: "write", Path: "journal", Err: cmp.Or(d.errno, syscall.ENOSPC)}
	}
	n, err := unix.Pwrite(d.saved, b, off)
	if d.sync && d.ops >= d.fail && d.ops <= d.last {
		d.tripped++
		d.swap(d.pipe) // if a sync is next, it fails
	}
	return n, err
}

// heal ends the fault, and says whether it came to pass.
func (d *faultyDisk) heal() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.swap(d.saved)
	d.fail, d.last, d.sync, d.short = 0, 0, false, false
	return d.tripped > 0
}

func (d *faultyDisk) arm(fail, last int, short, sync bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops, d.fail, d.last, d.short, d.sync = 0, fail, last, short, sync
}

// TestNothingAcknowledgedIsLostWhenTheDiskFails lets every single write, and the sync after every single write, of a
// small story fail, once and for a while.
func TestNothingAcknowledgedIsLostWhenTheDiskFails(t *testing.T) {
	for _, kind := range []struct {
		name              string
		short, sync, grow bool
	}{{"error", false, false, false}, {"short write", true, false, false}, {"sync", false, true,
		false}, {"error after growth", false, false, true}, {"sync after growth", false, true, true}} {
		for _, length := range []int{1, 5} {
			t.Run(fmt.Sprintf("%s/%d", kind.name, length), func(t *testing.T) {
				t.Parallel()
				step := (length + 1) / 2
				if !need.All {
					step = 7
				}
				for at := 1; ; at += step {
					fault := func(j *Journal) func() bool {
						disk := newFaultyDisk(t, j)
						if kind.grow {
							growByPages(t, j)
						}
						disk.arm(at, at+length-1, kind.short, kind.sync)
						return disk.heal
					}
					if !storyWithFault(t, at, fault) {
						t.Logf("up to write %d", at)
						if at < 10 {
							t.Fatal("the story writes too little")
						}
						return
					}
				}
			})
		}
	}
}

// growByPages makes the file end where its last page does, and grow by one page more than needed, so that every commit
// which needs new pages extends it. Otherwise that is one in thousands.
func growByPages(t *testing.T, j *Journal) (size int64) {
	t.Helper()
	if err := j.do(func(c *commit) error {
		j.db.AllocSize = j.db.Info().PageSize
		size = c.tx.Size()
		return j.file.Truncate(size)
	}); err != nil {
		t.Fatal(err)
	}
	return size
}

// TestJournalOnAFullDiskProcess is the process that TestNothingAcknowledgedIsLostWhenTheFileCannotGrow starts.
func TestJournalOnAFullDiskProcess(t *testing.T) {
	if os.Getenv("DOCENT_TEST_FULL_DISK") == "" {
		t.Skip("it is started by another test")
	}
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	limit := func(bytes uint64) {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: min(bytes, was.Cur), Max: was.Max}); err != nil {
			t.Fatal(err)
		}
	}
	pages := 0
	for ; ; pages++ {
		if !storyWithFault(t, pages, func(j *Journal) func() bool {
			limit(uint64(growByPages(t, j)) + uint64(pages*j.db.Info().PageSize))
			return func() bool {
				limit(was.Cur)
				return j.Stats().Failed > 0
			}
		}) {
			break
		}
	}
	if pages < 10 {
		t.Fatalf("the file needs %d pages more", pages)
	}
	t.Logf("up to %d pages more", pages)
}

// TestNothingAcknowledgedIsLostWhenTheFileCannotGrow lets a small story meet the end of the disk with every size of the
// file that it comes to: when the file is extended, and not only when it is written. For that a process limits the
// size of its files, which only a process of its own can do.
func TestNothingAcknowledgedIsLostWhenTheFileCannotGrow(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestJournalOnAFullDiskProcess$", "-test.v")
	cmd.Env = append(os.Environ(), "DOCENT_TEST_FULL_DISK=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestJournalOnAFullDiskProcess")) {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// storyWithFault reports whether the fault came to pass. What begins the fault returns what ends it and says whether it
// did.
func storyWithFault(t *testing.T, fail int, begin func(*Journal) (heal func() bool)) bool {
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := Open(path, Options{Log: quiet, retryAfter: time.Nanosecond, CheckpointEvery: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	model := map[string][]string{}
	uncertain := "" // what the last append would have added, to the stream named doubtful
	doubtful := ""
	check := func(j *Journal, when string) {
		t.Helper()
		for s, want := range model {
			rec, err := j.Load(s)
			if err != nil {
				t.Fatalf("fault at %d, %s: %v", fail, when, err)
			}
			got := texts(rec)
			if rec.Snapshot != nil {
				got = append(strings.Split(string(rec.Snapshot), ","), got...)
			}
			if s == doubtful && len(got) == len(want)+1 && got[len(want)] == uncertain {
				continue
			}
			if !slices.Equal(got, want) {
				t.Fatalf("fault at %d, %s: %s holds %.40q, want %.40q", fail, when, s, got, want)
			}
		}
	}
	heal := begin(j)
	for i := range 12 {
		s := fmt.Sprint("job/", i%3)
		text := fmt.Sprint(i, "-", strings.Repeat("x", 700*(i%4)))
		_, err := j.Append(t.Context(), Append{Stream: s, After: uint64(len(model[s])), Events: events(text),
			Pending: i%2 == 0,
			Claim:   &Claim{Key: text, Owner: s, Expires: time.Now().Add(time.Hour)},
			Uses:    []quota.Use{{Name: "hour", Key: "k", Window: quota.SlidingHour, Limit: 1000}}})
		if err == nil {
			model[s] = append(model[s], text)
		} else {
			if !errors.Is(err, api.ErrUnavailable) {
				t.Fatalf("fault at %d: %v", fail, err)
			}
			doubtful, uncertain = s, text
			check(j, "while it cannot be written to") // reads go on
			// What became of it is known when the disk can be written to again. Until then the file may be as a crash
			// finds it.
			heal()
			crashed := filepath.Join(t.TempDir(), "crashed.db")
			// A snapshot may be written at this very moment: what is read twice alike was read between two commits.
			b, again := mustUsedPart(t, path), mustUsedPart(t, path)
			for !bytes.Equal(b, again) {
				b, again = again, mustUsedPart(t, path)
			}
			if err := os.WriteFile(crashed, b, 0o600); err != nil {
				t.Fatal(err)
			}
			after, err := Open(crashed, Options{Log: quiet, UnsafeNoSync: true})
			if err != nil {
				t.Fatalf("fault at %d, after a crash: %v", fail, err)
			}
			check(after, "after a crash")
			if err := after.Close(); err != nil {
				t.Fatal(err)
			}
			doubtful = ""
			for tries := 0; j.do(func(*commit) error { return nil }) != nil; tries++ {
				if tries > 10 {
					t.Fatalf("fault at %d: it did not recover", fail)
				}
			}
			rec, err := j.Load(s)
			if err != nil {
				t.Fatal(err)
			}
			if rec.Seq == uint64(len(model[s]))+1 {
				model[s] = append(model[s], text)
			}
		}
		if i%4 == 3 {
			j.Snapshot(s, uint64(len(model[s])), []byte(strings.Join(model[s], ",")))
			j.snapMu.Lock()
			j.snapSince = time.Time{} // with the next commit
			j.snapMu.Unlock()
		}
		check(j, "afterwards")
	}
	tripped := heal()
	// As a crash here would leave it: the committer does not write meanwhile.
	crashed := filepath.Join(t.TempDir(), "copy.db")
	if err := j.do(func(*commit) error {
		b, err := usedPart(path)
		if err != nil {
			return err
		}
		return os.WriteFile(crashed, b, 0o600)
	}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, crashed} {
		j, err := Open(p, Options{Log: quiet})
		if err != nil {
			t.Fatalf("fault at %d: %v", fail, err)
		}
		check(j, "after reopening")
		if err := j.Check(func(p Problem) bool { t.Errorf("fault at %d: %v", fail, p); return true }); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, m := range model {
			n += len(m)
		}
		if left, _ := j.Quotas().Remaining(time.Now(), quota.Use{Key: "k", Window: quota.SlidingHour,
			Limit: 1000}); left != 1000-n {
			t.Fatalf("fault at %d: %d uses for %d appends", fail, 1000-left, n)
		}
		j.Close()
	}
	return tripped
}

// TestALossOfPowerLeavesTheLastCommitOrTheOneBefore takes the writes of a commit apart, as a disk that loses power
// does: before the first sync any of its pages may be there, whole, in part, or not at all; the meta page comes after
// that sync, one sector at a time.
func TestALossOfPowerLeavesTheLastCommitOrTheOneBefore(t *testing.T) {
	const sector, commits, images = 512, 30, 10
	path, torn := filepath.Join(t.TempDir(), "journal.db"), filepath.Join(t.TempDir(), "torn.db")
	j := openAt(t, path, Options{CheckpointEvery: time.Hour})
	disk := newFaultyDisk(t, j)
	type write struct {
		off  int64
		data []byte
	}
	var writes []write
	disk.mu.Lock()
	disk.record = func(b []byte, off int64) { writes = append(writes, write{off, bytes.Clone(b)}) }
	disk.mu.Unlock()
	put := func(image []byte, w write, n int) []byte {
		if need := int(w.off) + n; need > len(image) {
			image = append(image, make([]byte, need-len(image))...)
		}
		copy(image[w.off:], w.data[:n])
		return image
	}
	r := rand.New(rand.NewPCG(3, 4))
	model := map[string][]string{}
	for i := range commits {
		before := mustUsedPart(t, path)
		disk.mu.Lock()
		writes = nil
		disk.mu.Unlock()
		s, text := fmt.Sprint("job/", i%3), fmt.Sprint(i, "-", strings.Repeat("x", r.IntN(9000)))
		mustAppend(t, j, Append{Stream: s, After: uint64(len(model[s])), Events: events(text), Pending: i%2 == 0})
		disk.mu.Lock()
		pages, meta := writes[:len(writes)-1], writes[len(writes)-1]
		disk.mu.Unlock()
		if meta.off >= int64(2*j.db.Info().PageSize) || len(pages) < 2 {
			t.Fatalf("%d pages, and then one at %d", len(pages), meta.off)
		}
		for range images {
			image, done := bytes.Clone(before), false
			if r.IntN(3) > 0 {
				for _, w := range pages {
					image = put(image, w, r.IntN(len(w.data)/sector+1)*sector)
				}
			} else {
				for _, w := range pages {
					image = put(image, w, len(w.data))
				}
				sectors := r.IntN(len(meta.data)/sector + 1)
				image, done = put(image, meta, sectors*sector), sectors > 0
			}
			if err := os.WriteFile(torn, image, 0o600); err != nil {
				t.Fatal(err)
			}
			after, err := Open(torn, Options{Log: quiet, UnsafeNoSync: true})
			if err != nil {
				t.Fatalf("commit %d: %v", i, err)
			}
			for _, other := range []string{"job/0", "job/1", "job/2"} {
				want := model[other]
				if done && other == s {
					want = append(slices.Clone(want), text)
				}
				wantTexts(t, after, other, want...)
			}
			if err := after.Check(func(p Problem) bool { t.Errorf("commit %d: %v", i, p); return true }); err != nil {
				t.Fatal(err)
			}
			mustAppend(t, after, Append{Stream: "job/after", Events: events("it goes on")})
			if err := after.Close(); err != nil {
				t.Fatal(err)
			}
		}
		model[s] = append(model[s], text)
	}
}

func TestADiskThatRefusesWritesServesReadsAndRecovers(t *testing.T) {
	for name, errno := range map[string]syscall.Errno{"full": syscall.ENOSPC, "over quota": syscall.EDQUOT,
		"read-only": syscall.EROFS, "broken": syscall.EIO} {
		t.Run(name, func(t *testing.T) { refusesWrites(t, errno) })
	}
}

func refusesWrites(t *testing.T, errno syscall.Errno) {
	j := openNew(t, Options{retryAfter: time.Nanosecond})
	disk := newFaultyDisk(t, j)
	disk.errno = errno
	say(t, j, "job/a", "one")
	disk.arm(1, 1<<30, false, false)
	for range 5 {
		_, err := j.Append(t.Context(), Append{Stream: "job/a", After: 1, Events: events("two")})
		var busy *api.BusyError
		if !errors.Is(err, api.ErrUnavailable) || !errors.Is(err, errno) || !errors.As(err, &busy) ||
			busy.RetryAfter < time.Second {
			t.Fatal(err)
		}
		wantTexts(t, j, "job/a", "one")
	}
	if !j.Stats().Down {
		t.Fatal("it does not say so")
	}
	disk.heal()
	say(t, j, "job/a", "two")
	wantTexts(t, j, "job/a", "one", "two")
	if j.Stats().Down {
		t.Fatal("it still says so")
	}
}

// TestEveryFlippedBitIsFoundOrHarmless flips one bit of a journal at a time.
func TestEveryFlippedBitIsFoundOrHarmless(t *testing.T) {
	rounds := 500
	if !need.All {
		rounds = 100
	}
	for _, clean := range []bool{true, false} {
		t.Run(fmt.Sprintf("clean=%v", clean), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "journal.db")
			want, claims, pending := richJournal(t, path, clean)
			whole := mustUsedPart(t, path)
			broken := filepath.Join(t.TempDir(), "broken.db")
			refused, quarantined, harmless := 0, 0, 0
			for seed := range rounds {
				r := rand.New(rand.NewPCG(uint64(seed), 7))
				b := bytes.Clone(whole)
				at := r.IntN(len(b))
				if seed%4 == 0 { // page heads are rare, and the worst
					at = at / 4096 * 4096
					at += r.IntN(16 + 4*16)
				}
				b[at] ^= 1 << r.IntN(8)
				if err := os.WriteFile(broken, b, 0o600); err != nil {
					t.Fatal(err)
				}
				j, err := Open(broken, Options{Log: quiet})
				if err != nil {
					if !errors.Is(err, ErrCorrupt) {
						t.Fatalf("seed %d: %v", seed, err)
					}
					refused++
					continue
				}
				bad := 0
				for s, w := range want {
					rec, err := j.Load(s)
					if errors.Is(err, ErrCorrupt) {
						if !strings.Contains(err.Error(), broken) || !strings.Contains(err.Error(), "sequence") {
							t.Fatalf("seed %d: %v", seed, err)
						}
						bad++
					} else if err != nil || !sameStream(rec, w) {
						t.Fatalf("seed %d, byte %d: %s: %v: %d %d %.40q, want %d %d %.40q", seed, at, s, err,
							rec.Seq, rec.SnapSeq, texts(rec), w.Seq, w.SnapSeq, texts(w))
					}
				}
				for k, w := range claims {
					c, ok, err := j.Claim(k, time.Now())
					if errors.Is(err, ErrCorrupt) {
						bad++
					} else if err != nil || !ok || c != w {
						t.Fatalf("seed %d: claim %s: %v %v %+v", seed, k, ok, err, c)
					}
				}
				got := list(t, j.Pending)
				for _, s := range pending {
					if _, ok := j.damage[streamHash(s)]; !ok && !slices.Contains(got, s) {
						t.Fatalf("seed %d: %s is not pending", seed, s)
					}
				}
				found := 0
				if err := j.Check(func(Problem) bool { found++; return true }); err != nil {
					t.Fatal(err)
				}
				switch {
				case bad > 0 && found == 0:
					t.Fatalf("seed %d: the check finds nothing", seed)
				case found > 0:
					quarantined++
				default:
					harmless++
				}
				// What is left can be used.
				for s, w := range want {
					_, err := j.Append(t.Context(), Append{Stream: s, After: w.Seq, Events: events("more")})
					if err != nil && !errors.Is(err, ErrCorrupt) {
						t.Fatalf("seed %d: append to %s: %v", seed, s, err)
					}
					break
				}
				if err := j.Close(); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			t.Logf("of %d flips %d keep the journal closed, %d concern one record, %d are harmless", rounds, refused, quarantined,
				harmless)
		})
	}
}

func TestACutOffFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	richJournal(t, path, true)
	b := mustUsedPart(t, path)
	for _, n := range []int{1, 4095, 4096, 8192, 20000, 65536, len(b) - 4096} {
		if err := os.WriteFile(path, b[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := Open(path, Options{Log: quiet})
		if err == nil {
			j.Close()
		}
		if !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%d of %d bytes: %v", n, len(b), err)
		}
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("no journal at all", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Options{Log: quiet}); !errors.Is(err, ErrCorrupt) {
		t.Fatal(err)
	}
}

func TestBackupIsAJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	want, _, _ := richJournal(t, path, true)
	j := openAt(t, path, Options{})
	copied := filepath.Join(t.TempDir(), "copy.db")
	f, err := os.Create(copied)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Backup(f), f.Close()); err != nil {
		t.Fatal(err)
	}
	if err := Check(copied, func(p Problem) bool { t.Error(p); return true }); err != nil {
		t.Fatal(err)
	}
	j = openAt(t, copied, Options{})
	for s, w := range want {
		if rec := mustLoad(t, j, s); !reflect.DeepEqual(rec, w) {
			t.Fatalf("%s: %+v, want %+v", s, rec, w)
		}
	}
}

const killWriters = 8

// killUse counts a writer's appends, over a window that does not end while they are counted, as a month may.
func killUse(stream string) quota.Use {
	return quota.Use{Key: stream, Window: quota.SlidingDay, Limit: 1 << 30}
}

// TestJournalWriterProcess is the process that TestNothingAcknowledgedIsLostWhenTheProcessIsKilled kills.
func TestJournalWriterProcess(t *testing.T) {
	path := os.Getenv("DOCENT_TEST_JOURNAL")
	if path == "" {
		t.Skip("it is started by another test")
	}
	j, err := Open(path, Options{CheckpointEvery: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	f, err := j.Follow("catalog")
	if err != nil {
		t.Fatal(err)
	}
	var out sync.Mutex
	var wg sync.WaitGroup
	for w := range killWriters {
		wg.Go(func() {
			s := fmt.Sprint("job/", w)
			rec, err := j.Load(s)
			for seq := rec.Seq; err == nil; {
				n := 1 + int(seq)%3
				a := Append{Stream: s, After: seq, Uses: []quota.Use{killUse(s)}}
				for i := range n {
					a.Events = append(a.Events, Event{"test.counted.1", binary.BigEndian.AppendUint64(nil, seq+uint64(i)+1)})
				}
				if seq, err = j.Append(t.Context(), a); err != nil {
					break
				}
				out.Lock()
				fmt.Printf("acked %d %d\n", w, seq)
				out.Unlock()
				if seq%16 == 0 {
					j.Snapshot(s, seq, binary.BigEndian.AppendUint64(nil, seq))
				}
				f.Ack(j.Position())
			}
			t.Error(err)
		})
	}
	wg.Wait()
}

func TestNothingAcknowledgedIsLostWhenTheProcessIsKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	acked := make([]uint64, killWriters)
	appends := make([]int, killWriters)
	r := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	for round := range 6 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestJournalWriterProcess$")
		cmd.Env = append(os.Environ(), "DOCENT_TEST_JOURNAL="+path)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := 50 + r.IntN(3000)
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if n == kill { // and read on: what it acknowledged until it died is in the pipe
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			f := strings.Fields(lines.Text())
			if len(f) != 3 || f[0] != "acked" {
				continue
			}
			w, err1 := strconv.Atoi(f[1])
			seq, err2 := strconv.ParseUint(f[2], 10, 64)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			acked[w] = max(acked[w], seq)
			appends[w]++
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the writer ended by itself")
		}
		j := openAt(t, path, Options{})
		for w := range killWriters {
			s := fmt.Sprint("job/", w)
			rec := mustLoad(t, j, s)
			if rec.Seq < acked[w] {
				t.Fatalf("round %d: %s ends at %d, and %d was acknowledged", round, s, rec.Seq, acked[w])
			}
			if rec.Snapshot != nil && binary.BigEndian.Uint64(rec.Snapshot) != rec.SnapSeq {
				t.Fatalf("round %d: the snapshot of %s is another", round, s)
			}
			if rec.SnapSeq+uint64(len(rec.Events)) != rec.Seq {
				t.Fatalf("round %d: %s has a gap", round, s)
			}
			for i, e := range rec.Events {
				if binary.BigEndian.Uint64(e.Data) != rec.SnapSeq+uint64(i)+1 {
					t.Fatalf("round %d: %s: event %d is another", round, s, i)
				}
			}
			left, _ := j.Quotas().Remaining(time.Now(), killUse(s))
			if used := 1<<30 - left; used < appends[w] {
				t.Fatalf("round %d: %d uses of %s are counted, and %d were accepted", round, used, s, appends[w])
			}
		}
		if err := j.Check(func(p Problem) bool { t.Error(p); return true }); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzJournalRecords(f *testing.F) {
	key := positionKey(7)
	rec := appendEvent(nil, &eventRecord{hash: streamHash("job/a"), seq: 3, stream: "job/a",
		event: Event{"job.created.1", []byte("data")}})
	seal(key, rec)
	f.Add(rec)
	f.Add(encodeSnapshot(key, &snapshotRecord{seq: 3, pos: 9, state: []byte("state")}))
	f.Add(encodeClaim(&Claim{Key: string(key), Owner: "job/a", Ref: "r", Expires: time.Unix(1, 0)}))
	f.Add(encodeUse(useSlot{quota.SlidingHour, 100, "k"}.bytes(), 3))
	f.Add((&fileState{position: 3}).encode(key))
	f.Fuzz(func(t *testing.T, body []byte) {
		if r, err := decodeEvent(key, body); err == nil {
			again := appendEvent(nil, &r)
			seal(key, again)
			if r2, err := decodeEvent(key, again); err != nil || !reflect.DeepEqual(r, r2) {
				t.Fatalf("%+v, %+v: %v", r, r2, err)
			}
		}
		// The same bytes with a right checksum must be refused or read, never crash.
		if len(body) >= recordHead {
			fixed := bytes.Clone(body)
			seal(key, fixed)
			_, _ = decodeEvent(key, fixed)
			_, _ = decodeSnapshot(key, fixed)
			_, _ = decodeClaim(key, fixed)
			_, _ = decodeState(key, fixed)
			_, _, _ = decodeUse(key, fixed)
			_, _, _ = decodeUse(body, fixed)
			_, _ = decodeMark(key, fixed)
			if bytes.Equal(fixed, body) {
				return
			}
			if _, err := decodeEvent(key, body); err == nil {
				t.Fatal("a wrong checksum was taken")
			}
		}
	})
}
