package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"docent/api"
	"docent/internal/background"
	"docent/internal/tracing"
	"docent/persistence/quota"
)

// Options change how a journal is opened. The zero value is the one to use.
type Options struct {
	Log *slog.Logger     // default slog.Default
	Now func() time.Time // default time.Now; decides when claims expire and in which slot a use is stored
	// LockTimeout is how long to wait for another process that has the file open; default 1 s.
	LockTimeout time.Duration
	// CheckpointEvery is how long snapshots are collected before they are written; default 2 s.
	CheckpointEvery time.Duration
	// OpenFile opens the file; default os.OpenFile.
	OpenFile func(name string, flag int, perm os.FileMode) (*os.File, error)
	// UnsafeNoSync acknowledges before the disk has anything. For tests and measurements only.
	UnsafeNoSync bool

	retryAfter time.Duration // if not zero, the pause after a commit that failed; for tests
}

const defaultLockTimeout = time.Second

// A Journal keeps streams of events in one bbolt file, with what must be stored together with an event.
//
// One goroutine, the committer, writes: it takes the appends that wait, writes them in one transaction, syncs, and
// wakes the waiters. So a lone append pays for one commit and a thousand share one. Those that can wait (Urgency) are
// delayed for a few milliseconds when others are to be expected. Reads take the file as it stood after the last commit
// and never wait for a write.
//
// Snapshots are written some time later, and the events that a snapshot covers are removed, a few with each commit.
// What remains in the log are the events after each stream's snapshot; an index of these is kept in memory. A stream
// whose snapshot covers all its events costs disk and nothing else, neither memory nor time to open.
//
// After a write or a sync that failed nothing of that commit is acknowledged, and nothing more is, until the file has
// been written to again with success; the journal tries that by itself, with pauses, when there is something to append.
type Journal struct {
	path string
	opts Options
	log  *slog.Logger
	now  func() time.Time
	db   *bbolt.DB
	file *os.File // bbolt's own

	mu          sync.Mutex // guards queue, queuedBytes, delayed, ops, closed
	queue       []*appendRequest
	queuedBytes int
	queued      atomic.Int64 // the length of queue
	delayed     delayedAppends
	busy        atomic.Int64 // the number of streams in pending
	ops         []*operation
	closed      bool
	wake        chan struct{}
	stop        chan struct{} // closed by Close
	done        chan struct{} // closed when the committer has ended

	requests sync.Pool // of *appendRequest

	loops background.Work

	commitMu sync.Mutex // held over each commit
	position atomic.Uint64
	trimmed  atomic.Uint64
	known    atomic.Pointer[Identity] // its id and what it remembers of the catalog

	// The committer alone changes what indexMu guards, so it reads without the lock.
	indexMu sync.RWMutex
	tails   map[string]*tail
	pending map[string]struct{}
	// damagedKeys are the keys, by bucket, that do not belong to their values. It does not change.
	damagedKeys map[string][]string
	damage      map[uint64]streamDamage // by stream hash

	rounds atomic.Uint64 // of the committer
	idle   atomic.Bool   // it waits for something to do

	// The committer's own.
	state     fileState
	spare     []*appendRequest // room for the next queue
	attempts  uint64           // to write a group
	unsettled *commit          // written, but its last sync failed: whether it is there is not known yet
	downUntil time.Time        // no attempt before then
	downErr   error
	round     []queuedSnapshot
	trim      []trimEntry // ascending
	covered   []trimEntry // not yet merged into trim
	marksAt   time.Time   // when the followers' marks were last written

	snapMu    sync.Mutex
	snaps     map[string]queuedSnapshot
	snapBytes int
	snapSince time.Time

	followMu   sync.Mutex
	followers  map[string]*followMark
	pins       map[*uint64]struct{} // positions that a reader of the log has come to
	marksDirty bool

	quotas  *quota.Counters
	metrics metrics
}

// A tail is what the log holds of one stream: the sequence number of the first event in it, and the positions of that
// and all later ones. Events up to snapSeq are covered by the snapshot and wait to be removed.
type tail struct {
	stream  string
	hash    uint64
	first   uint64
	pos     []uint64
	snapSeq uint64
	gone    bool

	changedBy, changedTo uint64 // the commit that last changed the stream, by its serial, and to which sequence number
}

func (t *tail) last() uint64 { return t.first + uint64(len(t.pos)) - 1 }

// A streamDamage says why a stream cannot be used, and where its damaged events stand.
type streamDamage struct {
	err error
	pos []uint64
}

var (
	bucketMeta      = []byte("meta")
	bucketEvents    = []byte("events")
	bucketSnapshots = []byte("snapshots")
	bucketPending   = []byte("pending")
	bucketClaims    = []byte("claims")
	bucketUses      = []byte("uses")
	bucketFollowers = []byte("followers")

	countedBuckets = [nCounted][]byte{bucketEvents, bucketSnapshots, bucketPending, bucketClaims, bucketUses}

	metaFormat = []byte("format")
	metaState  = []byte("state")
)

// Format names the file's layout. A program that does not know it refuses the file.
const Format = "docent journal 1"

// Open opens the journal in the file path, or makes it. The file serves one process at a time.
//
// It walks the file's pages, which finds damage that would hide entries or crash bbolt, and reads the log, but not the
// snapshots. Damage of the file as a whole is an error that wraps ErrCorrupt; a damaged event is kept for the Load of
// its stream, and the other streams work.
func Open(path string, o Options) (_ *Journal, err error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.LockTimeout = cmp.Or(o.LockTimeout, defaultLockTimeout)
	o.CheckpointEvery = cmp.Or(o.CheckpointEvery, 2*time.Second)
	if o.OpenFile == nil {
		o.OpenFile = os.OpenFile
	}
	j := &Journal{
		path: path, opts: o, log: o.Log, now: o.Now,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		tails: make(map[string]*tail), pending: make(map[string]struct{}), damage: make(map[uint64]streamDamage),
		snaps: make(map[string]queuedSnapshot), followers: make(map[string]*followMark),
		pins: make(map[*uint64]struct{}), quotas: quota.New(),
	}
	j.metrics.times = NewTimes()
	j.delayed.init(j)
	defer func() {
		if err != nil {
			err = fmt.Errorf("open journal %s: %w", path, err)
		}
	}()
	walk, err := verifyFile(path, &o)
	if err != nil {
		return nil, err
	}
	for bucket, keys := range walk.damagedKeys {
		for _, k := range keys {
			j.log.Error("a journal key is damaged", "journal", path, "bucket", bucket, "key", k)
		}
	}
	j.damagedKeys = walk.damagedKeys
	err = guard(func() error {
		j.db, err = bbolt.Open(path, 0o600, j.boltOptions())
		return err
	})
	if err != nil {
		return nil, lockError(err)
	}
	if err := guard(func() error { return j.load(walk.entries) }); err != nil {
		return nil, errors.Join(err, guard(j.db.Close))
	}
	background.Essential("journal commit loop", j.commitLoop)
	j.loops.Essential("journal sweep loop", j.sweepLoop)
	return j, nil
}

func (j *Journal) boltOptions() *bbolt.Options {
	size := 1 << 30 // of the mapping: to enlarge it, bbolt waits for readers
	if st, err := os.Stat(j.path); err == nil && st.Size() > int64(size)/2 {
		size = int(st.Size()) * 2
	}
	if ^uint(0)>>32 == 0 || runtime.GOOS == "windows" { // if the file would get the size of its mapping
		size = 0
	}
	return &bbolt.Options{
		Timeout:         j.opts.LockTimeout,
		NoFreelistSync:  true, // else each commit writes the list of all free pages
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: size,
		NoSync:          j.opts.UnsafeNoSync,
		OpenFile: func(name string, flag int, perm os.FileMode) (*os.File, error) {
			f, err := j.opts.OpenFile(name, flag, perm)
			if j.file == nil {
				j.file = f
			}
			return f, err
		},
	}
}

func lockError(err error) error {
	if errors.Is(err, bolterrors.ErrTimeout) {
		return errors.New("another process has it open")
	}
	return err
}

// guard runs what touches the mapped file. A damaged page makes bbolt panic, and a file that is cut off under the
// mapping or that cannot be read makes the access fault: both become ErrCorrupt.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %w: %v", ErrCorrupt, errPanicked, p)
		}
	}()
	return f()
}

var errPanicked = errors.New("a damaged page")

// damaged names what is wrong with one record.
func (j *Journal) damaged(what, stream string, seq uint64, err error) error {
	return damagedRecord(j.path, what, stream, seq, err)
}

func damagedRecord(path, what, stream string, seq uint64, err error) error {
	return fmt.Errorf("%w: %s: %s of stream %q, sequence %d: %v", ErrCorrupt, path, what, stream, seq, err)
}

// absent is asked when nothing was found under a key: perhaps it is there and its key is damaged.
func (j *Journal) absent(bucket []byte, key string) error {
	for _, k := range j.damagedKeys[string(bucket)] {
		n, other := min(len(k), len(key)), 0
		for i := range n {
			if k[i] != key[i] {
				other++
			}
		}
		// The keys of two entries differ in more places than a damaged place has bytes.
		if n > 0 && other <= 4 && (other == 0 || len(k) == len(key)) {
			return damagedRecord(j.path, fmt.Sprintf("key %q in %s", k, bucket), key, 0,
				errors.New("it may be the one that is looked for"))
		}
	}
	return nil
}

var errMissing = errors.New("it is missing")

// An appendRequest is one append on its way through the committer. A journal uses its requests again, with their
// buffers.
type appendRequest struct {
	a     Append
	hash  uint64
	recs  [][]byte // sealed but for the position
	buf   []byte   // that they stand in
	bytes int
	taken atomic.Bool   // by the committer, or withdrawn by the caller
	done  chan struct{} // receives once the committer is done with the request
	last  uint64
	err   error
	group int // appends that went to disk with it, itself counted
}

// Check refuses what no journal stores, and says how many bytes the events take.
func (a *Append) Check() (size int, err error) {
	switch {
	case len(a.Stream) == 0 || len(a.Stream) > maxStreamLen:
		return 0, fmt.Errorf("a stream's name has 1 to %d bytes, not %d", maxStreamLen, len(a.Stream))
	case len(a.Events) == 0:
		return 0, errors.New("an append has at least one event")
	case a.Claim != nil && (len(a.Claim.Key) == 0 || len(a.Claim.Key) > maxClaimKey):
		return 0, fmt.Errorf("a claim's key has 1 to %d bytes, not %d", maxClaimKey, len(a.Claim.Key))
	case a.Claim != nil && len(a.Claim.Owner) > maxStreamLen:
		return 0, fmt.Errorf("a claim's owner has at most %d bytes", maxStreamLen)
	}
	for i := range a.Events {
		e := &a.Events[i]
		if len(e.Type) > maxEventType {
			return 0, fmt.Errorf("an event's type has at most %d bytes", maxEventType)
		}
		size += eventFixed + 16 + len(a.Stream) + len(e.Type) + len(e.Data)
	}
	if size > maxAppendBytes {
		return 0, fmt.Errorf("%d bytes are too many for one append", size)
	}
	for i := range a.Uses {
		if u := &a.Uses[i]; !u.Window.Known() || len(u.Key) == 0 || len(u.Key) > maxUseKey {
			return 0, fmt.Errorf("a use of %q in window %d cannot be stored", u.Key, u.Window)
		}
	}
	return size, nil
}

func (j *Journal) newAppendRequest(a *Append) (*appendRequest, error) {
	size, err := a.Check()
	if err != nil {
		return nil, err
	}
	r, ok := j.requests.Get().(*appendRequest)
	if !ok {
		r = &appendRequest{done: make(chan struct{}, 1)}
	}
	r.a, r.hash, r.bytes = *a, streamHash(a.Stream), size
	buf := slices.Grow(r.buf, size)
	for i, e := range a.Events {
		rec := eventRecord{hash: r.hash, seq: a.After + uint64(i) + 1, stream: a.Stream, event: e}
		if a.Pending && i == len(a.Events)-1 {
			rec.flags = flagPending
		}
		from := len(buf)
		buf = appendEvent(buf, &rec)
		r.recs = append(r.recs, buf[from:len(buf):len(buf)])
	}
	r.buf = buf
	return r, nil
}

// release gives back a request that the committer has answered.
func (j *Journal) release(r *appendRequest) {
	const most = 64 << 10 // of a buffer that is kept
	if cap(r.buf) > most {
		r.buf = nil
	}
	clear(r.recs)
	*r = appendRequest{recs: r.recs[:0], buf: r.buf[:0], done: r.done}
	j.requests.Put(r)
}

// Append writes a to the journal; it returns the stream's new last sequence number once all of a is on disk.
//
// It fails with ErrSequence, *ClaimedError or ErrCorrupt if a was refused, and then nothing was written; other
// appends are not harmed by that. It fails with an error that wraps api.ErrUnavailable if the disk is full,
// read-only or broken: then a is on disk or it is not, and only Load can tell; mostly it is not. It fails with
// api.ErrShuttingDown after Close.
//
// A context that ends while a waits for its turn withdraws it. Once its commit has begun the append may still take
// effect, so Append waits for the end of the commit and tells how it went.
func (j *Journal) Append(ctx context.Context, a Append) (last uint64, err error) {
	r, err := j.newAppendRequest(&a)
	if err != nil {
		return 0, fmt.Errorf("append to %s: %w", a.Stream, err)
	}
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("append to %s: %w", a.Stream, err)
	}
	began := time.Now()
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return 0, fmt.Errorf("append to %s: %w", a.Stream, api.ErrShuttingDown)
	}
	delayed := j.delay(r)
	if !delayed {
		j.enqueue(r)
	}
	j.mu.Unlock()
	if !delayed {
		j.poke()
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		if r.taken.CompareAndSwap(false, true) {
			return 0, fmt.Errorf("append to %s: %w", a.Stream, ctx.Err())
		}
		<-r.done
	}
	last, err = r.last, r.err
	tracing.At(ctx).Int("docent.journal.group", int64(r.group))
	j.release(r)
	if err != nil {
		return 0, fmt.Errorf("append to %s: %w", a.Stream, err)
	}
	if a.Urgency != Later {
		j.metrics.times.Append.Observe(time.Since(began).Seconds())
	}
	return last, nil
}

// enqueue puts r where the committer takes it from. Its caller holds mu.
func (j *Journal) enqueue(r *appendRequest) {
	j.queue = append(j.queue, r)
	j.queuedBytes += r.bytes
	j.queued.Store(int64(len(j.queue)))
}

func (j *Journal) poke() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// do makes the committer run f in its next transaction, and waits until that is on disk.
func (j *Journal) do(f func(*commit) error) error {
	op := &operation{run: f, done: make(chan struct{})}
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return api.ErrShuttingDown
	}
	j.ops = append(j.ops, op)
	j.mu.Unlock()
	j.poke()
	<-op.done
	return op.err
}

func (j *Journal) closing() bool {
	select {
	case <-j.stop:
		return true
	default:
		return false
	}
}

// Delete removes a stream: its snapshot, its events and its call for work, and with it the claims of those keys that it
// holds. Followers hear of it as of a change, and Load finds nothing then. Other claims that name the stream stay until
// they expire. Deleting what is not there changes nothing.
func (j *Journal) Delete(stream string, claims ...string) error {
	err := j.do(func(c *commit) error {
		for _, key := range claims {
			if err := c.release(key, stream); err != nil {
				return err
			}
		}
		return c.remove(stream)
	})
	if err != nil {
		return fmt.Errorf("delete %s: %w", stream, err)
	}
	return nil
}

// Quotas counts uses; see Append.Uses.
func (j *Journal) Quotas() Quotas { return j.quotas }

// Path is the journal's file.
func (j *Journal) Path() string { return j.path }

// Close refuses further appends, writes what waits, snapshots included, and closes the file. Reads must have ended.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		<-j.done
		return nil
	}
	j.closed = true
	j.mu.Unlock()
	close(j.stop)
	<-j.done
	j.loops.Wait()
	if err := guard(j.db.Close); err != nil {
		return fmt.Errorf("close journal %s: %w", j.path, err)
	}
	return nil
}
