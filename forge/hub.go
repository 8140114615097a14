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

	"docent/api"
	"docent/forge/failure"
	"docent/forge/git"
	"docent/forge/host"
	"docent/forge/remote"
)

// Options of a Hub. None is needed.
type Options struct {
	Merged   func(project api.ProjectID) // the documentation's branch has a new commit: index again
	Log      *slog.Logger
	Author   string        // of commits, with address: "Docent agent <agent@docent.invalid>" where empty
	MaxFile  int64         // bytes of one file; larger ones are not imported, read or written; 16 MiB where zero
	MaxFiles int           // of a folder, and of a commit; 200,000 where zero
	MaxBytes int64         // that one fetch may bring, inflated; 4 GiB where zero
	Timeout  time.Duration // of one exchange with a remote repository; 5 minutes where zero
	WriteGap time.Duration // between two changes on GitHub, which asks for it; a second where zero
	Now      func() time.Time

	// CoAuthor names whoever asked for a publication, as "Name <address>"; empty where that is not known. Asked again, it
	// gives the same answer: it is part of the commit.
	CoAuthor func(ctx context.Context, asker api.KeyID) (string, error)

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

	steps   sync.RWMutex // read-locked by what moves a branch together with a pull request
	remotes remote.Dialer

	keep sync.RWMutex // read-locked while files of objects have to stay where they are

	work       context.Context // of what is done in the background; ends with the hub
	stop       context.CancelFunc
	background sync.WaitGroup // added to under mu, and not once repos is nil
}

// Still runs f while no publication, merge or closing of a pull request is half done; those that come meanwhile wait.
// What f copies of references and pull requests belongs together.
func (h *Hub) Still(f func() error) error {
	h.steps.Lock()
	defer h.steps.Unlock()
	return f()
}

// A repo is one project's bare repository and what is known about its source.
type repo struct {
	project api.ProjectID
	turn    chan struct{} // holds one token: whoever has it may change the repository
	mu      sync.Mutex    // guards store
	store   *git.Store
	known   map[string]seen // files of the source folder, as last read
	listed  *remote.Listing // the source's branches, as last listed; nil where nobody waits who may use it
	waiting atomic.Int32    // who waits for the turn
	suspect atomic.Bool     // damage was met: the next sync builds the repository anew
	packing sync.Mutex      // held while objects are packed; nobody waits for the turn with it
	free    func()          // called when a turn ends
}

// listingOf returns the repository's listing of a source where it is no older than a question that was asked at some
// time.
func (r *repo) listingOf(source string, asked time.Time) *remote.Listing {
	if l := r.listed; l != nil && l.Source == source && l.Began.After(asked) && !r.suspect.Load() {
		return l
	}
	return nil
}

// damaged remembers damage that was met, and says that trying again helps: the next sync mends it. What the machine is
// short of comes back too, and a disk that fails is for somebody to look at: neither is damage.
func (r *repo) damaged(err error) error {
	if !errors.Is(err, git.ErrDamaged) {
		if git.Exhausted(err) && !errors.Is(err, ErrTemporary) {
			return git.Passing(err)
		}
		return err
	}
	r.suspect.Store(true)
	return fmt.Errorf("%w: %w", ErrTemporary, err)
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
	o.Author = cmp.Or(o.Author, "Docent agent <agent@docent.invalid>")
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
		hosts:   host.New(host.Options{Log: o.Log, Timeout: o.Timeout, WriteGap: o.WriteGap, Now: o.Now}),
	}
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".mended"); ok {
			if err := h.exchange(api.ProjectID(id)); err != nil {
				return nil, fmt.Errorf("open forge: %w", err)
			}
		}
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
	go func() {
		h.background.Wait()
		close(packed)
	}()
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
		return nil, fmt.Errorf("%w: the project id %q cannot name a repository", ErrMisconfigured, failure.Cut(name, 80))
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

// open returns the project's repository; git.ErrNoRepository where it has none yet.
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

// A session is a project with its repository at hand.
type session struct {
	project api.Project
	source  source
	repo    *repo
	store   *git.Store
	base    string    // the documentation's branch
	asked   time.Time // what the source said after this is new enough
}

func (s *session) pushes() bool {
	return s.project.Host == api.HostGit || host.KeepsPulls(s.project.Host)
}

// Sync brings the documentation's branch up to the source: a folder is imported, a repository fetched. It returns where
// the branch stands and whether it has moved.
func (h *Hub) Sync(ctx context.Context, p api.Project, progress func(text string)) (Tip, bool, error) {
	if progress == nil {
		progress = func(string) {}
	}
	r, err := h.repo(p.ID)
	if err != nil {
		return Tip{}, false, err
	}
	asked := time.Now()
	release, err := r.acquire(ctx)
	if err != nil {
		return Tip{}, false, err
	}
	defer release()
	s, head, changed, err := h.sync(ctx, r, p, asked, progress)
	if err != nil {
		return Tip{}, false, fmt.Errorf("sync %s: %w", p.ID, err)
	}
	return Tip{Branch: s.base, Base: s.base, Commit: head.String(), Repo: s.source.name}, changed, nil
}

// sync is called with the repository's turn, by somebody who asked for it at some time before. A damaged repository is
// put aside and what is sound of it is kept.
func (h *Hub) sync(
	ctx context.Context, r *repo, p api.Project, asked time.Time, progress func(string),
) (*session, plumbing.Hash, bool, error) {
	err := git.ErrDamaged
	if !r.suspect.Load() {
		var s *session
		var head plumbing.Hash
		var changed bool
		if s, head, changed, err = h.syncOnce(ctx, r, p, asked, progress); !errors.Is(err, git.ErrDamaged) {
			return s, head, changed, r.damaged(err)
		}
	}
	h.o.Log.Error("repository damaged, building it anew", "project", p.ID, "error", err)
	if saveErr := h.salvage(ctx, r, p); saveErr != nil {
		return nil, plumbing.ZeroHash, false, errors.Join(err, saveErr)
	}
	r.suspect.Store(false)
	r.listed = nil
	s, head, _, err := h.syncOnce(ctx, r, p, time.Now(), progress)
	return s, head, true, r.damaged(err)
}

// defaultFolderBranch is the branch of a folder's repository where the project names none.
const defaultFolderBranch = "main"

func (h *Hub) syncOnce(
	ctx context.Context, r *repo, p api.Project, asked time.Time, progress func(string),
) (*session, plumbing.Hash, bool, error) {
	none := plumbing.ZeroHash
	src, err := checked(p)
	if err != nil {
		return nil, none, false, err
	}
	st, err := h.open(r)
	if errors.Is(err, git.ErrNoRepository) {
		head := p.Branch
		if head == "" {
			head = defaultFolderBranch
		}
		if err := git.Create(h.path(p.ID), head); err != nil {
			return nil, none, false, fmt.Errorf("create the repository: %w", err)
		}
		st, err = h.open(r)
	}
	if err != nil {
		return nil, none, false, err
	}
	s := &session{project: p, source: src, repo: r, store: st, asked: asked}
	if src.kind == gitRemote {
		return h.fetch(ctx, s, progress)
	}
	if s.base = p.Branch; s.base == "" {
		s.base = defaultFolderBranch
	}
	if err := st.SetDefault(s.base); err != nil {
		return nil, none, false, err
	}
	old, err := st.Head(s.base)
	if err != nil {
		return nil, none, false, err
	}
	if l := r.listingOf(src.path, asked); l != nil && l.Base == s.base && l.Heads[s.base] == old {
		return s, old, false, nil // the folder was read since, and nothing was merged into it after that
	}
	began := time.Now()
	if err := h.resumeWriteBack(ctx, s, old); err != nil {
		return nil, none, false, err
	}
	head, err := h.importFolder(ctx, s, old, progress)
	if err != nil {
		return nil, none, false, err
	}
	r.listed = &remote.Listing{Began: began, Source: src.path, Heads: map[string]plumbing.Hash{s.base: head}, Base: s.base}
	return s, head, head != old, nil
}

// importFolder commits the folder as it is now, where it differs from the branch.
func (h *Hub) importFolder(
	ctx context.Context, s *session, old plumbing.Hash, progress func(string),
) (plumbing.Hash, error) {
	root, err := os.OpenRoot(s.source.path)
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("%w: open the folder: %w", ErrMisconfigured, failure.Reason(err))
	}
	defer root.Close()
	var before plumbing.Hash
	if !old.IsZero() {
		c, err := s.store.Commit(old)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		before = c.Tree
	}
	im := &importer{store: s.store, disk: h.disk, root: root, max: h.o.MaxFile, limit: h.o.MaxFiles, known: s.repo.known,
		now: h.o.Now()}
	if err := im.track(before, s.source); err != nil {
		return plumbing.ZeroHash, err
	}
	if err := im.list(ctx, "", false); err != nil {
		return plumbing.ZeroHash, err
	}
	if len(im.files) == 0 && (im.had || len(im.tracked) > 0) {
		return plumbing.ZeroHash, fmt.Errorf("%w: the folder %q is empty but was not before; nothing is changed until it has files again", ErrTemporary, s.source.path)
	}
	if err := im.read(ctx, progress); err != nil {
		return plumbing.ZeroHash, err
	}
	tree, err := im.tree()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	s.repo.known = im.known
	for i, why := range im.skipped {
		if i == 20 {
			h.o.Log.Warn("more files not imported", "project", s.project.ID, "count", len(im.skipped)-i)
			break
		}
		h.o.Log.Debug("not imported", "project", s.project.ID, "file", why)
	}
	if tree == before {
		return old, nil
	}
	var parents []plumbing.Hash
	if !old.IsZero() {
		parents = []plumbing.Hash{old}
	}
	c := git.NewCommit(tree, parents, h.o.Author, h.o.Now(), "Import from folder")
	if err := s.store.Write([]git.Object{c}); err != nil {
		return plumbing.ZeroHash, err
	}
	if err := h.step("import written"); err != nil {
		return plumbing.ZeroHash, err
	}
	if err := s.store.SetRef("refs/heads/"+s.base, old, c.Hash); err != nil {
		return plumbing.ZeroHash, err
	}
	return c.Hash, nil
}

// fetch brings the remote's branch. Where the remote does not answer and the branch was fetched before, work goes on
// with that: pull requests of the built-in host need the remote only when they are merged.
func (h *Hub) fetch(ctx context.Context, s *session, progress func(string)) (*session, plumbing.Hash, bool, error) {
	none := plumbing.ZeroHash
	origin, err := h.dial(ctx, s.source, s.project)
	if err != nil {
		return nil, none, false, err
	}
	last := s.project.Branch
	if last == "" {
		if last, err = s.store.Default(); err != nil {
			return nil, none, false, err
		}
	}
	old, err := s.store.Head(last)
	if err != nil {
		return nil, none, false, err
	}
	var haves []plumbing.Hash
	if old.IsZero() {
		progress("fetching the repository")
		origin.Progress = progress
	} else {
		if haves, err = s.store.History(old, 64); err != nil {
			return nil, none, false, err
		}
	}
	branch, head, err := s.bring(ctx, origin, s.project.Branch, haves)
	if errors.Is(err, ErrTemporary) && !old.IsZero() && !s.pushes() {
		if _, err := s.store.Commit(old); err != nil {
			return nil, none, false, err
		}
		h.o.Log.Warn("source does not answer, working with what was fetched before", "project", s.project.ID, "error", err)
		s.base = last
		return s, old, false, nil
	}
	if err != nil {
		return nil, none, false, err
	}
	s.base = branch
	if branch != last {
		if old, err = s.store.Head(branch); err != nil {
			return nil, none, false, err
		}
	}
	// What the reference is about to name must be whole: a commit without its tree is worth fetching again.
	c, err := s.store.Commit(head)
	if err != nil {
		return nil, none, false, err
	}
	if _, err := s.store.Tree(c.Tree); err != nil {
		return nil, none, false, err
	}
	if err := h.step("fetched"); err != nil {
		return nil, none, false, err
	}
	if head != old {
		if err := s.store.SetRef("refs/heads/"+branch, old, head); err != nil {
			return nil, none, false, err
		}
	}
	if err := s.store.SetDefault(branch); err != nil {
		return nil, none, false, err
	}
	return s, head, head != old, nil
}

// bring brings a branch of the source into the store, without a reference to it. The source is asked only where the
// newest listing does not tell where the branch stands, or the store does not have that. An empty name is the default
// branch.
func (s *session) bring(
	ctx context.Context, origin *remote.Remote, branch string, haves []plumbing.Hash,
) (string, plumbing.Hash, error) {
	l := s.repo.listingOf(s.source.url, s.asked)
	if l == nil && len(haves) > 0 {
		if l = origin.List(ctx); l != nil {
			s.repo.listed = l
		}
	}
	if l != nil {
		name := branch
		if name == "" {
			name = l.Base
		}
		head, ok := l.Heads[name]
		if !ok && name != "" {
			return "", plumbing.ZeroHash, remote.NoBranch(name)
		}
		if ok {
			if there, err := s.store.Has(head); err != nil || there {
				return name, head, err
			}
		}
	}
	name, head, l, err := origin.Fetch(ctx, s.store, branch, haves)
	if l != nil {
		s.repo.listed = l
	}
	return name, head, err
}

// Tree is the repository at a commit.
func (h *Hub) Tree(ctx context.Context, p api.Project, hash string) (*Tree, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, err := h.repo(p.ID)
	if err != nil {
		return nil, err
	}
	if r.suspect.Load() {
		if _, _, err := h.Sync(ctx, p, nil); err != nil {
			return nil, err
		}
	}
	st, err := h.open(r)
	if err != nil {
		return nil, err
	}
	if !plumbing.IsHash(hash) {
		return nil, fmt.Errorf("read %s: %q is no commit: %w", p.ID, failure.Cut(hash, 60), api.ErrNotFound)
	}
	id := plumbing.NewHash(hash)
	there, err := st.Has(id)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p.ID, r.damaged(err))
	}
	if !there {
		return nil, fmt.Errorf("read %s: no commit %s: %w", p.ID, hash, api.ErrNotFound)
	}
	c, err := st.Commit(id)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p.ID, r.damaged(err))
	}
	return &Tree{repo: r, store: st, commit: id, root: c.Tree, max: h.o.MaxFile,
		byDir: map[plumbing.Hash][]git.Entry{}}, nil
}

// push moves a branch at the source. What was listed before stays true where the source says that it did, and is
// forgotten where it does not.
func (s *session) push(
	ctx context.Context, origin *remote.Remote, branch string, old, new plumbing.Hash, known ...plumbing.Hash,
) error {
	err := origin.Push(ctx, s.store, branch, old, new, known)
	switch l := s.repo.listed; {
	case err != nil:
		s.repo.listed = nil
	case l != nil:
		l.Heads[branch] = new
	}
	return err
}

// dial prepares to talk to a project's source.
func (h *Hub) dial(ctx context.Context, src source, p api.Project) (*remote.Remote, error) {
	return h.remotes.Dial(src.url, func(protocol string) (string, error) {
		// Over ssh the token of a code host opens nothing: then the key is the agent's, or one of the usual files.
		if protocol == "ssh" && host.KeepsPulls(p.Host) {
			return "", nil
		}
		return h.hosts.Secret(ctx, p)
	})
}
