package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"docent/api"
	"docent/internal/background"
	"docent/internal/backoff"
	"docent/internal/tracing"
	"docent/persistence/cluster"
	"docent/persistence/journal"
)

// What one batch takes, at most, and how long an answer may take before the batch is sent over a new connection.
const (
	batchAppends  = 1024
	batchBytes    = 8 << 20
	answerTimeout = 10 * time.Second
	laterDelay    = 10 * time.Millisecond // of an append of urgency Later, if others come
	soonDelay     = 4 * time.Millisecond  // and of one of urgency Soon
	soonTogether  = 4                     // of the latter, which are delayed no longer
	againTogether = 3                     // times that an append is sent with others; then it is sent alone
	againMost     = 6                     // times that it is sent, for a limit
	delayedMost   = 64
	reconnectMost = time.Second // between two attempts to connect
	closePatience = 5 * time.Second
)

// The committer sends what waits. Its lock guards the queue.
type committer struct {
	mu      sync.Mutex
	queue   []*request
	ops     []*operation
	looking int       // batches whose refused appends are being looked at
	soon    int       // appends of urgency Soon that are delayed
	delayed int       // appends that are delayed
	last    time.Time // when the last append came
	gap     time.Duration
	closed  bool
	wake    chan struct{}
	timer   *time.Timer // wakes for those that are delayed

	downSince atomic.Int64 // nanoseconds; 0 while the database answers
	downErr   atomic.Pointer[error]
	rounds    atomic.Uint64
	idle      atomic.Bool
	batch     atomic.Int64 // the number of the last batch that was settled

	// The committer's own.
	conn      *pgx.Conn
	unsettled bool // the next one was sent, and given up
	args      arguments
}

// A request is one append on its way.
type request struct {
	a     *journal.Append
	bytes int
	tries int // how often it was sent already
	taken atomic.Bool
	done  chan struct{}
	last  uint64
	err   error
	group int
}

// An operation is something else that the committer does.
type operation struct {
	run  func(ctx context.Context, conn *pgx.Conn) error
	done chan struct{}
	err  error
}

func (c *committer) init() {
	c.wake = make(chan struct{}, 1)
	c.timer = time.AfterFunc(time.Hour, c.poke)
	c.timer.Stop()
	c.gap = time.Second
}

func (c *committer) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// close makes the committer end once nothing waits. It returns false if that was asked for before.
func (c *committer) close() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.closed
	c.closed = true
	c.poke()
	return first
}

// storable reports whether PostgreSQL stores a text.
func storable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for i := range len(s) {
		if s[i] == 0 {
			return false
		}
	}
	return true
}

func check(a *journal.Append) (size int, err error) {
	if size, err = a.Check(); err != nil {
		return 0, err
	}
	ok := storable(a.Stream)
	for i := range a.Events {
		ok = ok && storable(a.Events[i].Type)
	}
	if a.Claim != nil {
		ok = ok && storable(a.Claim.Owner) && storable(a.Claim.Ref)
	}
	if !ok {
		return 0, errors.New("names of streams and types of events are UTF-8 without zero bytes")
	}
	return size, nil
}

// Append is journal.Journal.Append. If the node was evicted, it fails with journal.ErrFenced, and so will every other.
// It fails with *api.LimitError if one of the uses is over its limit by what all nodes have counted.
func (j *Journal) Append(ctx context.Context, a journal.Append) (last uint64, err error) {
	began := time.Now()
	fail := func(err error) (uint64, error) { return 0, fmt.Errorf("append to %s: %w", a.Stream, err) }
	size, err := check(&a)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return fail(err)
	}
	r := &request{a: &a, bytes: size, done: make(chan struct{})}
	if err := j.enqueue(r); err != nil {
		return fail(err)
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		if r.taken.CompareAndSwap(false, true) {
			return fail(ctx.Err())
		}
		<-r.done
	}
	tracing.At(ctx).Int("docent.journal.group", int64(r.group))
	if r.err != nil {
		if errors.Is(r.err, journal.ErrUnknown) {
			j.quotas.unknown(a.Uses)
		}
		j.quotas.refused(a.Uses, r.err)
		return fail(r.err)
	}
	j.quotas.stored(a.Uses)
	if a.Urgency != journal.Later {
		j.metrics.times.Append.Observe(time.Since(began).Seconds())
	}
	return r.last, nil
}

func (j *Journal) enqueue(r *request) error {
	c := &j.commits
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return api.ErrShuttingDown
	case j.fenced.Load():
		return journal.ErrFenced
	case j.down():
		return j.unavailable(*c.downErr.Load())
	}
	c.queue = append(c.queue, r)
	if wait := c.delay(r.a.Urgency); wait > 0 {
		if c.delayed++; c.delayed == 1 {
			c.timer.Reset(wait)
		}
		return nil
	}
	c.poke()
	return nil
}

// delay says for how long an append may wait for others to share its batch, which the database then writes to its log
// once. They wait only if appends have come so fast lately that another one is to be expected.
func (c *committer) delay(u journal.Urgency) time.Duration {
	now := time.Now()
	c.gap += (min(now.Sub(c.last), 10*laterDelay) - c.gap) / 8
	c.last = now
	switch {
	case c.gap > laterDelay/2 || c.delayed >= delayedMost:
		return 0
	case u == journal.Later:
		return laterDelay
	case u == journal.Soon:
		if c.soon++; c.soon < soonTogether {
			return soonDelay
		}
	}
	return 0
}

// down reports whether the database has not answered for so long that nobody waits for it any more.
func (j *Journal) down() bool {
	since := j.commits.downSince.Load()
	return since != 0 && time.Since(time.Unix(0, since)) > j.opts.Patience
}

// take makes a batch of what waits. A stream, and a claim's key, comes once in it.
func (c *committer) take() (reqs []*request, ops []*operation, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer.Stop()
	c.soon, c.delayed = 0, 0
	ops, c.ops = c.ops, nil
	if len(c.queue) == 0 {
		return nil, ops, c.closed && c.looking == 0
	}
	streams := make(map[string]struct{}, len(c.queue))
	keys := make(map[string]struct{})
	var rest []*request
	bytes := 0
	for i, r := range c.queue {
		if len(reqs) == batchAppends || bytes > batchBytes || r.alone() && len(reqs) > 0 {
			rest = append(rest, c.queue[i:]...)
			break
		}
		if r.tries == 0 && r.taken.Load() {
			continue // withdrawn
		}
		twice := r.twice(streams, keys)
		if !twice && r.tries == 0 && !r.taken.CompareAndSwap(false, true) {
			continue // withdrawn just now
		}
		streams[r.a.Stream] = struct{}{}
		for _, k := range r.keys() {
			keys[k] = struct{}{}
		}
		if twice {
			rest = append(rest, r) // and those that come after it stay behind it
			continue
		}
		bytes += r.bytes
		reqs = append(reqs, r)
		if r.alone() {
			rest = append(rest, c.queue[i+1:]...)
			break
		}
	}
	c.queue = rest
	return reqs, ops, c.closed && c.looking == 0
}

// twice reports whether an append needs what another one of the batch changes.
func (r *request) twice(streams, keys map[string]struct{}) bool {
	_, twice := streams[r.a.Stream]
	for _, k := range r.keys() {
		_, had := keys[k]
		twice = twice || had
	}
	return twice
}

// keys are those of claims that an append changes.
func (r *request) keys() []string {
	switch c := r.a.Claim; {
	case c == nil && r.a.Release == "":
		return nil
	case c == nil:
		return []string{r.a.Release}
	case r.a.Release == "":
		return []string{c.Key}
	default:
		return []string{c.Key, r.a.Release}
	}
}

// commitLoop is the committer.
func (j *Journal) commitLoop() {
	c := &j.commits
	defer func() {
		if c.conn != nil {
			_ = c.conn.Close(j.context)
		}
	}()
	for {
		c.rounds.Add(1)
		reqs, ops, closed := c.take()
		switch {
		case len(reqs)+len(ops) > 0:
			for _, op := range ops {
				op.err = j.settled(op.run)
				close(op.done)
			}
			if len(reqs) > 0 {
				j.commit(reqs)
			}
		case closed:
			return
		case c.downSince.Load() != 0 && !j.fenced.Load(): // nobody waits, but they are told when it is back
			_ = backoff.Sleep(j.context, reconnectMost/2)
			_ = j.once(func(ctx context.Context, conn *pgx.Conn) error { return conn.Ping(ctx) })
		default:
			c.idle.Store(true)
			<-c.wake
			c.idle.Store(false)
		}
	}
}

// do makes the committer run f, which may be run twice if the database goes away meanwhile.
func (j *Journal) do(f func(ctx context.Context, conn *pgx.Conn) error) error {
	c := &j.commits
	op := &operation{run: f, done: make(chan struct{})}
	c.mu.Lock()
	switch {
	case c.closed:
		c.mu.Unlock()
		return api.ErrShuttingDown
	case j.fenced.Load():
		c.mu.Unlock()
		return journal.ErrFenced
	}
	c.ops = append(c.ops, op)
	c.mu.Unlock()
	c.poke()
	<-op.done
	return op.err
}

// settled calls f, again and again while the database does not answer, for as long as patience lasts.
func (j *Journal) settled(f func(context.Context, *pgx.Conn) error) error {
	pause := backoff.Exponential(50*time.Millisecond, reconnectMost)
	began := time.Now()
	for n := 1; ; n++ {
		err := j.once(f)
		switch {
		case err == nil || !passing(err) || errors.Is(err, journal.ErrFenced):
			return err
		case j.down() || j.commits.isClosed() && time.Since(began) > closePatience:
			j.refuseWaiting()
			return j.unavailable(err)
		}
		_ = backoff.Sleep(j.context, pause(n))
	}
}

// once calls f with a connection that works, and notes the state of the database.
func (j *Journal) once(f func(context.Context, *pgx.Conn) error) error {
	c := &j.commits
	err := j.try(f)
	switch {
	case err == nil:
		if c.downSince.Swap(0) != 0 {
			j.log.Info("the journal is writable again", "journal", j.name)
			j.metrics.down.Store(false)
		}
	case code(err) == codeFenced:
		if !j.fenced.Swap(true) {
			j.log.Error("other nodes have removed this node: it no longer writes", "journal", j.name)
		}
		return journal.ErrFenced
	case code(err) == codeBatch:
		j.lose(true)
		return journal.ErrFenced
	case passing(err):
		c.downErr.Store(&err)
		if c.downSince.CompareAndSwap(0, time.Now().UnixNano()) {
			j.log.Error("the journal is not writable", "journal", j.name, "error", err)
			j.metrics.down.Store(true)
		}
	}
	return err
}

func (c *committer) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// refuseWaiting answers those that came while the database was away.
func (j *Journal) refuseWaiting() {
	c := &j.commits
	c.mu.Lock()
	queue := c.queue
	c.queue = nil
	c.mu.Unlock()
	for _, r := range queue {
		if r.tries > 0 || r.taken.CompareAndSwap(false, true) {
			r.err = j.unavailable(*c.downErr.Load())
			close(r.done)
			j.metrics.failed.Add(1)
		}
	}
}

// try does f once.
func (j *Journal) try(f func(context.Context, *pgx.Conn) error) error {
	c := &j.commits
	ctx, cancel := context.WithTimeout(j.context, answerTimeout)
	defer cancel()
	if c.conn == nil || c.conn.IsClosed() {
		conn, err := j.connect(ctx)
		if err != nil {
			return err
		}
		// The tables may grow by much between two looks at how big they are: every step goes by an index. What is
		// acknowledged must be on disk.
		if _, err := conn.Exec(ctx, "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; "+
			"SET plan_cache_mode = force_generic_plan; SET jit = off; "+
			"SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"); err != nil {
			_ = conn.Close(ctx)
			return err
		}
		c.conn = conn
	}
	if c.unsettled {
		if err := j.settle(ctx, c.conn); err != nil {
			return c.failed(ctx, err)
		}
	}
	return c.failed(ctx, f(ctx, c.conn))
}

// failed drops a connection whose state is not known.
func (c *committer) failed(ctx context.Context, err error) error {
	if err != nil && passing(err) {
		_ = c.conn.Close(ctx)
	}
	return err
}

// settle finds out about a batch whose senders were told that it may not have taken place: it was carried out, or its
// number is taken by nothing, so that it never will be.
func (j *Journal) settle(ctx context.Context, conn *pgx.Conn) error {
	c := &j.commits
	var nothing arguments
	nothing.fill(j, c.batch.Load()+1, nil)
	var res result
	if err := query(ctx, conn, &nothing, &res); err != nil {
		return err
	}
	c.unsettled = false
	c.batch.Store(nothing.number)
	return nil
}

// query carries out a batch.
func query(ctx context.Context, conn *pgx.Conn, args *arguments, res *result) error {
	return conn.QueryRow(ctx, commitStatement, args.list()...).Scan(&res.first, &res.statuses, &res.lasts)
}

// send makes the database carry out a batch, once.
func (j *Journal) send(reqs []*request) (res result, err error) {
	c := &j.commits
	args := &c.args
	filled := false
	err = j.settled(func(ctx context.Context, conn *pgx.Conn) error {
		if !filled { // not before what came before is settled
			args.fill(j, c.batch.Load()+1, reqs)
			filled = true
		}
		return query(ctx, conn, args, &res)
	})
	switch {
	case err == nil:
		c.batch.Store(args.number)
	case filled && errors.Is(err, api.ErrUnavailable) && !errors.Is(err, journal.ErrFenced):
		c.unsettled = true
		err = fmt.Errorf("%w: %w", journal.ErrUnknown, err)
	}
	return res, err
}

// commit sends one batch and answers its requests.
func (j *Journal) commit(reqs []*request) {
	began := time.Now()
	res, err := j.send(reqs)
	if err != nil && len(reqs) > 1 && !errors.Is(err, api.ErrUnavailable) {
		for _, r := range reqs { // one of them cannot be stored: the others can
			j.commit([]*request{r})
		}
		return
	}
	var open []refused
	done, events, bytes := 0, 0, 0
	for i, r := range reqs {
		r.group = len(reqs)
		switch {
		case err != nil:
			r.err = err
		case res.statuses[i] == taken:
			r.last = uint64(res.lasts[i]) + uint64(len(r.a.Events))
			done++
			events += len(r.a.Events)
			bytes += r.bytes
		case res.statuses[i] == movedOn:
			r.err = fmt.Errorf("%w: its last event is %d, not %d", journal.ErrSequence, res.lasts[i], r.a.After)
		default:
			open = append(open, refused{r, res.statuses[i], len(reqs) == 1})
			reqs[i] = nil
		}
	}
	j.metrics.observe(len(reqs)-len(open), done, events, bytes, time.Since(began), err)
	if events > 0 {
		j.advance(uint64(res.first) + uint64(events) - 1)
	}
	for _, r := range reqs {
		if r != nil {
			close(r.done)
		}
	}
	if len(open) == 0 {
		return
	}
	j.commits.mu.Lock()
	j.commits.looking++
	j.commits.mu.Unlock()
	background.Go("persistence/journal/postgres.commit", func() { j.lookAt(open) }) // the next batch does not wait for what is read
}

// A refused append's reason is to be read, and may be gone by then.
type refused struct {
	*request
	status int16
	alone  bool // in its batch
}

// lookAt tells those of a batch that were refused by whom or by what, and has the others sent again.
func (j *Journal) lookAt(list []refused) {
	c := &j.commits
	var again []*request
	limits := j.quotas.stand(list)
	for _, r := range list {
		if r.status == usedUp {
			r.err = limits(r)
		} else {
			r.err = j.holder(r.a.Claim.Key)
		}
		if r.err == nil {
			again = append(again, r.request)
			continue
		}
		j.metrics.refused.Add(1)
		close(r.done)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range again {
		r.tries++
	}
	c.queue = append(again, c.queue...)
	c.looking--
	c.poke()
}

// alone reports whether an append is sent without others, since it was refused with them often enough.
func (r *request) alone() bool { return r.tries >= againTogether }

// holder is a *journal.ClaimedError that says who holds a key; nil if nobody does by now.
func (j *Journal) holder(key string) error {
	held, ok, err := j.Claim(key, j.opts.wall())
	if err == nil && ok {
		err = &journal.ClaimedError{Claim: held}
	}
	return err
}

const (
	taken int16 = iota
	movedOn
	claimed
	usedUp
)

type result struct {
	first    int64
	statuses []int16
	lasts    []int64
}

const commitStatement = "SELECT * FROM journal_commit_1($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18," +
	"$19,$20,$21,$22,$23,$24,$25,$26,$27)"

// arguments are those of journal_commit_1, with room that is used again.
type arguments struct {
	node, writer           string
	number, nanos, seconds int64
	streams                []string
	afters                 []int64
	pendings               []bool
	shards                 []int16
	counts                 []int32
	claims                 [][]byte
	replaces               []bool
	digests                [][]byte
	owners, refs           []string
	expiries               []int64
	releases               [][]byte
	eventAppends           []int32
	eventStreams           []string
	eventSeqs              []int64
	eventTypes             []string
	eventData              [][]byte
	useAppends             []int32
	useKinds               []int16
	useKeys                [][]byte
	useEnds                []int64
	useLimits              []int32
}

func (a *arguments) list() []any {
	return []any{a.node, a.writer, a.number, a.nanos, a.seconds, a.streams, a.afters, a.pendings, a.shards, a.counts,
		a.claims, a.replaces, a.digests, a.owners, a.refs, a.expiries, a.releases,
		a.eventAppends, a.eventStreams, a.eventSeqs, a.eventTypes, a.eventData,
		a.useAppends, a.useKinds, a.useKeys, a.useEnds, a.useLimits}
}

func (a *arguments) fill(j *Journal, number int64, reqs []*request) {
	now := j.now()
	*a = arguments{
		node: j.opts.Node, writer: j.writer, number: number, nanos: j.opts.wall().UnixNano(), seconds: now.Unix(),
		streams: a.streams[:0], afters: a.afters[:0], pendings: a.pendings[:0], shards: a.shards[:0], counts: a.counts[:0],
		claims: a.claims[:0], replaces: a.replaces[:0], digests: a.digests[:0], owners: a.owners[:0], refs: a.refs[:0],
		expiries: a.expiries[:0], releases: a.releases[:0],
		eventAppends: a.eventAppends[:0], eventStreams: a.eventStreams[:0], eventSeqs: a.eventSeqs[:0],
		eventTypes: a.eventTypes[:0], eventData: a.eventData[:0],
		useAppends: a.useAppends[:0], useKinds: a.useKinds[:0], useKeys: a.useKeys[:0], useEnds: a.useEnds[:0],
		useLimits: a.useLimits[:0],
	}
	claims, releases := false, false
	for _, r := range reqs {
		claims = claims || r.a.Claim != nil
		releases = releases || r.a.Release != ""
	}
	for i, r := range reqs {
		at := int32(i + 1)
		a.streams = append(a.streams, r.a.Stream)
		a.afters = append(a.afters, int64(r.a.After))
		a.pendings = append(a.pendings, r.a.Pending)
		a.shards = append(a.shards, int16(cluster.Shard(r.a.Stream)))
		a.counts = append(a.counts, int32(len(r.a.Events)))
		if claims {
			a.claim(r.a.Claim)
		}
		if releases {
			var key []byte
			if r.a.Release != "" {
				key = []byte(r.a.Release)
			}
			a.releases = append(a.releases, key)
		}
		for n := range r.a.Events {
			e := &r.a.Events[n]
			a.eventAppends = append(a.eventAppends, at)
			a.eventStreams = append(a.eventStreams, r.a.Stream)
			a.eventSeqs = append(a.eventSeqs, int64(r.a.After)+int64(n)+1)
			a.eventTypes = append(a.eventTypes, e.Type)
			a.eventData = append(a.eventData, notNil(e.Data))
		}
		for n := range r.a.Uses {
			if u := &r.a.Uses[n]; u.Limit >= 0 {
				a.useAppends = append(a.useAppends, at)
				a.useKinds = append(a.useKinds, int16(u.Window))
				a.useKeys = append(a.useKeys, []byte(u.Key))
				a.useEnds = append(a.useEnds, u.Window.End(now))
				a.useLimits = append(a.useLimits, int32(min(u.Limit, math.MaxInt32)))
			}
		}
	}
}

func (a *arguments) claim(c *journal.Claim) {
	if c == nil {
		a.claims, a.replaces, a.digests = append(a.claims, nil), append(a.replaces, false), append(a.digests, nil)
		a.owners, a.refs, a.expiries = append(a.owners, ""), append(a.refs, ""), append(a.expiries, 0)
		return
	}
	a.claims, a.replaces = append(a.claims, []byte(c.Key)), append(a.replaces, c.Replaces)
	a.digests, a.owners = append(a.digests, c.Digest[:]), append(a.owners, c.Owner)
	a.refs, a.expiries = append(a.refs, c.Ref), append(a.expiries, c.Expires.UnixNano())
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
