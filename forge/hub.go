package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	lru "github.com/hashicorp/golang-lru/v2"

	"docent/api"
	"docent/forge/git"
	"docent/forge/host"
	"docent/forge/remote"
	"docent/forge/shared"
	"docent/internal/background"
	"docent/internal/brief"
	"docent/internal/disk"
)

// Options of a Hub. None is needed.
type Options struct {
	Merged   func(project api.ProjectID) // the documentation's branch has a new commit: index again
	Turned   func()                      // a pull request of the built-in host was merged or closed
	Log      *slog.Logger
	MaxFile  int64         // bytes of one file; larger ones are not imported, read or written; default 16 MiB
	MaxFiles int           // of a folder, and of a commit; default 200,000
	MaxBytes int64         // that one fetch may bring, inflated; default 4 GiB
	Timeout  time.Duration // of one exchange with a remote repository; default 5 minutes
	WriteGap time.Duration // between two changes on GitHub, which asks for it; default a second
	Now      func() time.Time

	// CoAuthor names the person who asked for a publication, as "Name <address>"; empty if that is not known. Asked
	// again, it gives the same answer: it is part of the commit.
	CoAuthor func(ctx context.Context, asker api.KeyID) (string, error)

	// Shared keeps what the built-in host has, if several nodes serve the same projects; nil for a single node.
	Shared *shared.Store

	// Stored is a secret that was entered on a page, by the name that a project refers to it by.
	Stored func(name string) (string, error)

	fault     func(step string) error     // tests fail here; a step is named after what was done last
	diskFault func(op, name string) error // tests fail the reading of a repository's files here: "open" and "read"
	packAfter int                         // loose objects are packed
}

// A Hub serves all projects' repositories. Its methods may be called by many at once: work on one repository is done in
// turn, different repositories at the same time.
type Hub struct {
	dir   string
	pulls PullStore
	o     Options
	disk  *git.Disk
	hosts *host.Hosts

	mu    sync.Mutex
	repos map[api.ProjectID]*repo

	diffs *lru.Cache[[2]plumbing.Hash, Diff] // by the trees that they compare; for reading only

	steps   sync.RWMutex // read-locked by what moves a branch together with a pull request
	remotes remote.Dialer

	pinned sync.RWMutex // read-locked while files of objects have to stay where they are

	work       context.Context // of what is done in the background; ends with the hub
	stop       context.CancelFunc
	background background.Work // added to under mu, and not once repos is nil
}

// Quiesce runs f while no publication, merge or closing of a pull request is half done; those that come meanwhile wait.
// What f copies of references and pull requests belongs together.
func (h *Hub) Quiesce(f func() error) error {
	h.steps.Lock()
	defer h.steps.Unlock()
	return f()
}

// A repo is one project's bare repository and what is known about its source.
type repo struct {
	project api.ProjectID
	turn    chan struct{} // holds one token: its holder may change the repository
	mu      sync.Mutex    // guards store
	store   *git.Store
	known   map[string]seen // files of the source folder, as last read
	listed  *remote.Listing // the source's branches, as last listed; nil if nobody who may use it waits
	waiting atomic.Int32    // who waits for the turn
	suspect atomic.Bool     // damage was met: the next sync looks again, and builds the repository again
	hurt    func(err error) // called at the first damage
	packing sync.Mutex      // held while objects are packed; nobody waits for the turn with it
	free    func()          // called when a turn ends
	copied  copied          // of a repository that several nodes have
	joining atomic.Bool     // its packs are joined
}

// damaged remembers damage that was met, and says that trying again helps: the next sync mends it. What the machine is
// short of comes back too, and a disk that fails is for somebody to look at: neither is damage.
func (r *repo) damaged(err error) error {
	if !errors.Is(err, git.ErrDamaged) {
		if disk.Exhausted(err) && !errors.Is(err, ErrTemporary) {
			return git.Passing(err)
		}
		return err
	}
	r.suspects(err)
	return fmt.Errorf("%w: %w", ErrTemporary, err)
}

func (r *repo) suspects(err error) {
	if r.suspect.CompareAndSwap(false, true) {
		r.hurt(err)
	}
}

// hurt logs the first damage that was met in a repository, and notes it there: the next to open the repository, if
// this process ends before it is mended, looks too.
func (h *Hub) hurt(id api.ProjectID, err error) {
	h.o.Log.Error("repository damaged", "project", id, "folder", h.path(id), "error", err)
	if err := git.NoteDamage(h.path(id), err, h.disk); err != nil {
		h.o.Log.Warn("could not record damage in the repository", "project", id, "error", err)
	}
}

// Open prepares the directory that holds the bare repositories. One process at a time may have it open: what a crash
// has left in it is cleared away.
func Open(dir string, pulls PullStore, o Options) (*Hub, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.MaxFile = min(cmp.Or(max(o.MaxFile, 0), 16<<20), git.MaxObject)
	o.MaxFiles = cmp.Or(max(o.MaxFiles, 0), 200_000)
	o.MaxBytes = cmp.Or(max(o.MaxBytes, 0), 4<<30)
	o.Timeout = cmp.Or(max(o.Timeout, 0), 5*time.Minute)
	o.WriteGap = cmp.Or(max(o.WriteGap, 0), time.Second)
	o.packAfter = cmp.Or(max(o.packAfter, 0), packAfter)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open forge: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("open forge: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".new-") { // a repository that was never finished
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return nil, fmt.Errorf("open forge: %w", err)
			}
		}
	}
	h := &Hub{
		dir: dir, pulls: pulls, o: o, repos: map[api.ProjectID]*repo{},
		disk:    git.NewDisk(o.MaxFiles, o.MaxBytes, o.diskFault),
		remotes: remote.Dialer{Timeout: o.Timeout},
		hosts: host.New(host.Options{Log: o.Log, Timeout: o.Timeout, WriteGap: o.WriteGap, Now: o.Now,
			Stored: o.Stored}),
	}
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".mended"); ok {
			if err := h.exchange(api.ProjectID(id)); err != nil {
				return nil, fmt.Errorf("open forge: %w", err)
			}
		}
	}
	if h.diffs, err = lru.New[[2]plumbing.Hash, Diff](diffsKept); err != nil {
		return nil, fmt.Errorf("open forge: %w", err)
	}
	h.work, h.stop = context.WithCancel(context.Background())
	return h, nil
}

// Shutdown waits for the work in hand until ctx ends, and lets no other begin.
func (h *Hub) Shutdown(ctx context.Context) error {
	h.mu.Lock()
	repos := h.repos
	h.repos = nil
	h.mu.Unlock()
	h.stop()
	packed := make(chan struct{})
	background.Go("forge.Shutdown", func() {
		h.background.Wait()
		close(packed)
	})
	select {
	case <-packed:
	case <-ctx.Done():
		return fmt.Errorf("shut the forge down: %w", context.Cause(ctx))
	}
	for _, r := range repos {
		if _, err := r.acquire(ctx); err != nil { // never released
			return fmt.Errorf("shut the forge down: %w", err)
		}
	}
	return nil
}

var errClosed = errors.New("the forge is closed")

func (h *Hub) repo(id api.ProjectID) (*repo, error) {
	name := string(id)
	if git.CheckPath(name) != nil || strings.ContainsAny(name, `/:*?"<>| `) || strings.HasPrefix(name, ".") ||
		len(name) > 200 {
		return nil, fmt.Errorf("%w: the project id %q cannot name a repository", ErrMisconfigured, brief.Bytes(name, 80, "…"))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.repos == nil {
		return nil, errClosed
	}
	r := h.repos[id]
	if r == nil {
		r = &repo{project: id, turn: make(chan struct{}, 1)}
		r.free = func() { h.packInBackground(r) }
		r.hurt = func(err error) { h.hurt(id, err) }
		r.turn <- struct{}{}
		h.repos[id] = r
	}
	return r, nil
}

// acquire waits for the repository's turn.
func (r *repo) acquire(ctx context.Context) (release func(), err error) {
	r.waiting.Add(1)
	defer r.waiting.Add(-1)
	select {
	case <-r.turn:
		return func() {
			if r.waiting.Load() == 0 {
				r.listed = nil
			}
			r.turn <- struct{}{}
			r.free()
		}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (h *Hub) path(id api.ProjectID) string { return filepath.Join(h.dir, string(id)+".git") }

// open returns the project's repository; git.ErrNoRepository if it has none yet.
func (h *Hub) open(r *repo) (*git.Store, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.store != nil {
		return r.store, nil
	}
	s, err := git.Open(h.path(r.project), string(r.project), h.disk)
	if errors.Is(err, git.ErrNoRepository) {
		s, err = h.resumeExchange(r)
	}
	if err != nil {
		return nil, fmt.Errorf("open the repository of %s: %w", r.project, r.damaged(err))
	}
	r.store = s
	if why, err := s.Damage(); err != nil {
		return nil, err
	} else if why != "" && r.suspect.CompareAndSwap(false, true) {
		h.o.Log.Error("repository damaged and not repaired yet", "project", r.project, "folder", h.path(r.project),
			"error", why)
	}
	return s, nil
}

// resumeExchange looks for what a salvage has left that broke off while the repository was being exchanged.
func (h *Hub) resumeExchange(r *repo) (*git.Store, error) {
	if err := h.exchange(r.project); err != nil {
		return nil, err
	}
	s, err := git.Open(h.path(r.project), string(r.project), h.disk)
	if !errors.Is(err, git.ErrNoRepository) {
		return s, err
	}
	list, listErr := h.setAside(r.project)
	switch {
	case listErr != nil:
		return nil, listErr
	case len(list) > 0:
		return nil, fmt.Errorf("%w: it was put aside, and nothing has taken its place", git.ErrDamaged)
	}
	return nil, err
}

func (h *Hub) step(step string) error {
	if h.o.fault == nil {
		return nil
	}
	return h.o.fault(step)
}
