package forge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/file"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/plumbing/transport/server"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"docent/api"
	"docent/forge/failure"
	"docent/forge/host"
)

// A remote is a repository elsewhere. The git protocol is spoken through go-git's sessions rather than its Remote: what
// is wanted, what is there already and what a reference is expected to be are then said exactly, and the history is
// never walked.
type remote struct {
	url     string
	secret  string // never leaves auth; error texts are cleaned of it
	auth    transport.AuthMethod
	client  transport.Transport
	timeout time.Duration
	told    func(text string) // progress of what is received; may be nil

	// Of a source that is reached over http.
	web      *http.Client
	basic    *githttp.BasicAuth
	versions *versions
}

// dial prepares to talk; nothing is sent yet.
func (h *Hub) dial(ctx context.Context, src source, p api.Project) (*remote, error) {
	r := &remote{url: src.url, timeout: h.o.Timeout}
	ep, err := transport.NewEndpoint(src.url)
	if err != nil {
		return nil, fmt.Errorf("%w: the source's address is not understood", ErrMisconfigured)
	}
	// Over ssh the token of a code host opens nothing: then the key is the agent's, or one of the usual files.
	if ep.Protocol != "ssh" || !host.KeepsPulls(p.Host) {
		if r.secret, err = h.hosts.Secret(ctx, p); err != nil {
			return nil, err
		}
	}
	switch ep.Protocol {
	case "http", "https":
		r.client, r.web, r.versions = httpTransport(), httpClient(), &h.versions
		if r.secret != "" {
			r.basic = &githttp.BasicAuth{Username: "x-access-token", Password: r.secret} // hosts want some name, and ignore which
			r.auth = r.basic
		}
	case "ssh":
		r.client = gitssh.DefaultClient
		if r.auth, err = sshAuth(ep.User, r.secret); err != nil {
			return nil, err
		}
	case "file":
		r.client = fileTransport()
	default:
		return nil, fmt.Errorf("%w: repositories over %q are not supported", ErrMisconfigured, ep.Protocol)
	}
	return r, nil
}

// httpClient follows a redirect only where it stays on the host: credentials and content belong to one place.
var httpClient = sync.OnceValue(func() *http.Client {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.ResponseHeaderTimeout = time.Minute
	return &http.Client{
		Transport: shortErrors{base},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if !strings.EqualFold(req.URL.Hostname(), via[0].URL.Hostname()) {
				return errors.New("the repository's host redirects to another host")
			}
			return nil
		},
	}
})

var httpTransport = sync.OnceValue(func() transport.Transport {
	return githttp.NewClientWithOptions(httpClient(), &githttp.ClientOptions{CacheMaxEntries: 16, RedirectPolicy: githttp.FollowInitialRedirects})
})

// shortErrors bounds what is read of an answer that is none: go-git reads error pages whole.
type shortErrors struct{ next http.RoundTripper }

func (t shortErrors) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(req)
	if err == nil && res.StatusCode >= 300 {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, 4096), res.Body}
	}
	return res, err
}

// fileTransport talks to git on this machine, which runs the repository's hooks; without git, go-git serves it.
func fileTransport() transport.Transport {
	if _, err := exec.LookPath("git"); err == nil {
		return file.DefaultClient
	}
	return server.NewClient(localLoader{})
}

// localLoader opens a repository on this machine for go-git's own server.
type localLoader struct{}

func (localLoader) Load(ep *transport.Endpoint) (storer.Storer, error) {
	dir := ep.Path
	if exists(filepath.Join(dir, ".git")) {
		dir = filepath.Join(dir, ".git")
	}
	if !exists(filepath.Join(dir, "HEAD")) {
		return nil, transport.ErrRepositoryNotFound
	}
	for _, hook := range []string{"pre-receive", "update", "post-receive"} {
		if exists(filepath.Join(dir, "hooks", hook)) {
			return nil, fmt.Errorf("the repository has the hook %q, which needs git on this machine", hook)
		}
	}
	return filesystem.NewStorage(osfs.New(dir), cache.NewObjectLRU(objectCache)), nil
}

// sshAuth takes the private key from the environment variable, else the agent, else the usual key files.
func sshAuth(user, key string) (transport.AuthMethod, error) {
	if user == "" {
		user = gitssh.DefaultUsername
	}
	if key != "" {
		auth, err := gitssh.NewPublicKeys(user, []byte(key+"\n"), "")
		if err != nil {
			return nil, fmt.Errorf("%w: the environment variable for the repository's token does not hold a private SSH key", ErrMisconfigured)
		}
		return auth, nil
	}
	if os.Getenv("SSH_AUTH_SOCK") != "" {
		if auth, err := gitssh.NewSSHAgentAuth(user); err == nil {
			return auth, nil
		}
	}
	home, err := os.UserHomeDir()
	if err == nil {
		for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
			if auth, err := gitssh.NewPublicKeysFromFile(user, filepath.Join(home, ".ssh", name), ""); err == nil {
				return auth, nil
			}
		}
	}
	return nil, fmt.Errorf("%w: no SSH key: name an environment variable that holds one, or run an SSH agent", ErrMisconfigured)
}

// branches lists the remote's branches and tells which one is its default.
func (r *remote) branches(ctx context.Context) (map[string]plumbing.Hash, string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	s, refs, err := r.uploads(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", r.failure(ctx, "list branches", err)
	}
	s.Close()
	heads := map[string]plumbing.Hash{}
	for name, hash := range refs.References {
		if branch, ok := strings.CutPrefix(name, "refs/heads/"); ok {
			heads[branch] = hash
		}
	}
	return heads, defaultOf(refs, heads), nil
}

func defaultOf(refs *packp.AdvRefs, heads map[string]plumbing.Hash) string {
	for _, s := range refs.Capabilities.Get(capability.SymRef) {
		if branch, ok := strings.CutPrefix(s, "HEAD:refs/heads/"); ok {
			if _, ok := heads[branch]; ok {
				return branch
			}
		}
	}
	for _, branch := range []string{"main", "master"} {
		if hash, ok := heads[branch]; ok && (refs.Head == nil || *refs.Head == hash) {
			return branch
		}
	}
	var only string
	for branch, hash := range heads {
		if refs.Head != nil && *refs.Head == hash && (only == "" || branch < only) {
			only = branch
		}
	}
	return only
}

func (r *remote) uploads(ctx context.Context) (transport.UploadPackSession, *packp.AdvRefs, error) {
	ep, err := transport.NewEndpoint(r.url)
	if err != nil {
		return nil, nil, err
	}
	s, err := r.client.NewUploadPackSession(ep, r.auth)
	if err != nil {
		return nil, nil, err
	}
	refs, err := s.AdvertisedReferencesContext(ctx)
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	return s, refs, nil
}

// fetch brings a branch's commits into the store: the newest one alone where nothing is there yet, else what is new since.
// An empty name is the remote's default branch. No reference is changed. The listing is where the remote's branches stood, as
// far as it told.
func (r *remote) fetch(ctx context.Context, st *store, branch string, haves []plumbing.Hash) (string, plumbing.Hash, *listing, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	zero := plumbing.ZeroHash
	l := &listing{began: time.Now(), source: r.url, heads: map[string]plumbing.Hash{}}
	s, refs, err := r.uploads(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return "", zero, nil, fmt.Errorf("%w: the repository is empty", ErrMisconfigured)
	}
	if err != nil {
		return "", zero, nil, r.failure(ctx, "fetch", err)
	}
	defer s.Close()
	for name, hash := range refs.References {
		if b, ok := strings.CutPrefix(name, "refs/heads/"); ok {
			l.heads[b] = hash
		}
	}
	l.base = defaultOf(refs, l.heads)
	if branch == "" {
		if branch = l.base; branch == "" {
			return "", zero, l, fmt.Errorf("%w: the repository has no default branch; name one", ErrMisconfigured)
		}
	}
	want, ok := l.heads[branch]
	if !ok {
		return "", zero, l, noBranch(branch)
	}
	if there, err := st.has(want); err != nil || there {
		return branch, want, l, err
	}
	shallow, err := st.shallow()
	if err != nil {
		return "", zero, l, err
	}
	req := packp.NewUploadPackRequestFromCapabilities(refs.Capabilities)
	req.Wants = []plumbing.Hash{want}
	req.Haves = haves
	if refs.Capabilities.Supports(capability.NoProgress) {
		if err := req.Capabilities.Set(capability.NoProgress); err != nil {
			return "", zero, l, err
		}
	}
	if refs.Capabilities.Supports(capability.Shallow) && (len(haves) == 0 || len(shallow) > 0) {
		if err := req.Capabilities.Set(capability.Shallow); err != nil {
			return "", zero, l, err
		}
		if len(haves) == 0 {
			req.Depth = packp.DepthCommits(1)
		}
		// The remote is told where our history ends, so that it does not count on what lies beyond.
		for h := range shallow {
			req.Shallows = append(req.Shallows, h)
		}
	}
	res, err := s.UploadPack(ctx, req)
	if err != nil {
		return "", zero, l, r.failure(ctx, "fetch", err)
	}
	defer res.Close()
	var packs io.Reader = res
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		packs = sideband.NewDemuxer(sideband.Sideband64k, res)
	case req.Capabilities.Supports(capability.Sideband):
		packs = sideband.NewDemuxer(sideband.Sideband, res)
	}
	if r.told != nil {
		packs = &countingReader{next: packs, told: r.told}
	}
	if err := st.readPack(packs); err != nil {
		return "", zero, l, r.failure(ctx, "fetch", err)
	}
	if len(res.Shallows) > 0 {
		if shallow == nil {
			shallow = map[plumbing.Hash]bool{}
		}
		for _, h := range res.Shallows {
			shallow[h] = true
		}
		if err := st.setShallow(shallow); err != nil {
			return "", zero, l, err
		}
	}
	if there, err := st.has(want); err != nil {
		return "", zero, l, err
	} else if !there {
		return "", zero, l, fmt.Errorf("%w: the repository did not send the commit that it announced", ErrTemporary)
	}
	return branch, want, l, nil
}

// countingReader says now and then how much has come.
type countingReader struct {
	next     io.Reader
	told     func(string)
	n, shown int64
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.next.Read(b)
	c.n += int64(n)
	if c.n-c.shown >= 4<<20 || err == io.EOF {
		c.shown = c.n
		c.told(fmt.Sprintf("received %.1f MB of the repository", float64(c.n)/1e6))
	}
	return n, err
}

var errNoBranch = errors.New("no such branch")

func noBranch(name string) error {
	return fmt.Errorf("%w: %w: the repository has no branch %q", ErrMisconfigured, errNoBranch, name)
}

// push moves a branch at the source. What was listed before stays true where the source says that it did, and is forgotten
// where it does not.
func (s *site) push(ctx context.Context, remote *remote, branch string, old, new plumbing.Hash, known ...plumbing.Hash) error {
	err := remote.push(ctx, s.store, branch, old, new, known)
	switch l := s.repo.listed; {
	case err != nil:
		s.repo.listed = nil
	case l != nil:
		l.heads[branch] = new
	}
	return err
}

// push moves a branch from old to new, and nothing else; the remote checks that it still stands at old. known are
// commits that the remote has. A push whose answer was lost counts when the remote shows our commit.
func (r *remote) push(ctx context.Context, st *store, branch string, old, new plumbing.Hash, known []plumbing.Hash) error {
	err := r.send(ctx, st, branch, old, new, known)
	if err == nil || errors.Is(err, ErrMoved) {
		return err
	}
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.timeout)
	defer cancel()
	heads, _, listErr := r.branches(look)
	switch {
	case listErr != nil:
		return err
	case heads[branch] == new:
		return nil
	case heads[branch] != old:
		return fmt.Errorf("push %s: %w", branch, ErrMoved)
	}
	return err
}

// mayPush asks for a push, and does not make it.
func (r *remote) mayPush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	ep, err := transport.NewEndpoint(r.url)
	if err != nil {
		return r.failure(ctx, "ask for a push", err)
	}
	s, err := r.client.NewReceivePackSession(ep, r.auth)
	if err != nil {
		return r.failure(ctx, "ask for a push", err)
	}
	defer s.Close()
	if _, err := s.AdvertisedReferencesContext(ctx); err != nil && !errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return r.failure(ctx, "ask for a push", err)
	}
	return nil
}

func (r *remote) send(ctx context.Context, st *store, branch string, old, new plumbing.Hash, known []plumbing.Hash) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	ep, err := transport.NewEndpoint(r.url)
	if err != nil {
		return r.failure(ctx, "push", err)
	}
	s, err := r.client.NewReceivePackSession(ep, r.auth)
	if err != nil {
		return r.failure(ctx, "push", err)
	}
	defer s.Close()
	refs, err := s.AdvertisedReferencesContext(ctx)
	if err != nil {
		return r.failure(ctx, "push", err)
	}
	name := plumbing.NewBranchReferenceName(branch)
	switch refs.References[name.String()] {
	case new:
		return nil
	case old:
	default:
		return fmt.Errorf("push %s: %w", branch, ErrMoved)
	}
	there := map[plumbing.Hash]bool{}
	for _, h := range refs.References {
		there[h] = true
	}
	for _, h := range known {
		there[h] = true
	}
	pack, err := st.packFor(new, there)
	if err != nil {
		return err
	}
	req := packp.NewReferenceUpdateRequestFromCapabilities(refs.Capabilities)
	req.Commands = []*packp.Command{{Name: name, Old: old, New: new}}
	req.Packfile = io.NopCloser(bytes.NewReader(pack))
	report, err := s.ReceivePack(ctx, req)
	if report != nil {
		for _, c := range report.CommandStatuses {
			if c.ReferenceName == name && c.Status != "ok" {
				return r.refusal(branch, c.Status)
			}
		}
	}
	if err != nil {
		return r.failure(ctx, "push", err)
	}
	return nil
}

// refusal is the remote's own word on a reference that it did not move.
func (r *remote) refusal(branch, status string) error {
	text := failure.Quote(status, r.secret)
	if strings.Contains(text, "failed to update ref") || strings.Contains(text, "cannot lock ref") || strings.Contains(text, "failed to lock") {
		return fmt.Errorf("%w: push %s: %s", ErrTemporary, branch, text)
	}
	return &failure.Error{Kind: ErrMisconfigured, Declined: true, Say: fmt.Sprintf("The repository refuses the push to %s: %s.", branch, strings.TrimRight(text, "."))}
}

// failure sorts an error of the transport by what can be done about it. The text is cleaned, the chain is cut: both may
// hold the server's words or an address.
func (r *remote) failure(ctx context.Context, doing string, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", doing, cause)
	}
	var said *failure.Error
	switch {
	case errors.Is(err, errDamaged), errors.Is(err, os.ErrPermission), errors.As(err, &said), exhausted(err):
		return fmt.Errorf("%s: %w", doing, err)
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed), errors.Is(err, transport.ErrInvalidAuthMethod):
		return failure.Misconfigured("The repository refuses the credentials (while trying to %s).", doing)
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return failure.Misconfigured("There is no such repository, or the credentials do not show it (while trying to %s).", doing)
	}
	text := failure.Quote(err.Error(), r.secret)
	for _, sign := range []string{"unable to authenticate", "knownhosts:", "host key", "redirects to another host", "http redirect", "dubious ownership", "certificate", "needs git on this machine", "unsupported scheme"} {
		if strings.Contains(text, sign) {
			return fmt.Errorf("%w: %s: %s", ErrMisconfigured, doing, text)
		}
	}
	var unknown *net.DNSError
	if errors.As(err, &unknown) && unknown.IsNotFound {
		return fmt.Errorf("%w: %s: the host %q is not known", ErrTemporary, doing, unknown.Name)
	}
	return fmt.Errorf("%w: %s: %s", ErrTemporary, doing, text)
}

// packFor packs what a remote lacks of a commit, given commits that it has.
func (s *store) packFor(head plumbing.Hash, there map[plumbing.Hash]bool) ([]byte, error) {
	shallow, err := s.shallow()
	if err != nil {
		return nil, err
	}
	var objects []object
	seen := map[plumbing.Hash]bool{}
	total := 0
	add := func(kind plumbing.ObjectType, hash plumbing.Hash) (fresh bool, err error) {
		if seen[hash] {
			return false, nil
		}
		seen[hash] = true
		data, err := s.read(kind, hash)
		if err != nil {
			return false, err
		}
		if total += len(data); total > maxPush {
			return false, fmt.Errorf("%w: the push has more than %d bytes", ErrRefused, maxPush)
		}
		objects = append(objects, object{kind: kind, hash: hash, data: data})
		return true, nil
	}
	queue := []plumbing.Hash{head}
	for len(queue) > 0 {
		hash := queue[0]
		queue = queue[1:]
		if there[hash] || seen[hash] {
			continue
		}
		c, err := s.commit(hash)
		if err != nil {
			return nil, err
		}
		if _, err := add(plumbing.CommitObject, hash); err != nil {
			return nil, err
		}
		var before plumbing.Hash
		if !shallow[hash] {
			if len(c.parents) > 0 {
				parent, err := s.commit(c.parents[0])
				if err != nil {
					return nil, err
				}
				before = parent.tree
			}
			queue = append(queue, c.parents...)
		}
		if err := s.added(before, c.tree, 0, add); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	p, err := newPacker(&b, len(objects))
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if err := p.add(o); err != nil {
			return nil, err
		}
	}
	if _, err := p.close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

const maxPush = 256 << 20

// added calls add for the trees and files of one tree that another does not hold at the same place. A tree that add knows
// is not gone through again: one may stand in many places.
func (s *store) added(before, after plumbing.Hash, depth int, add func(plumbing.ObjectType, plumbing.Hash) (fresh bool, err error)) error {
	if before == after {
		return nil
	}
	if depth > maxDepth {
		return s.tooDeep()
	}
	if fresh, err := add(plumbing.TreeObject, after); err != nil || !fresh {
		return err
	}
	had := map[string]entry{}
	if !before.IsZero() {
		entries, err := s.tree(before)
		if err != nil {
			return err
		}
		for _, e := range entries {
			had[e.name] = e
		}
	}
	entries, err := s.tree(after)
	if err != nil {
		return err
	}
	for _, e := range entries {
		old := had[e.name]
		switch {
		case e.hash == old.hash:
		case e.isDir():
			if !old.isDir() {
				old.hash = plumbing.ZeroHash
			}
			if err := s.added(old.hash, e.hash, depth+1, add); err != nil {
				return err
			}
		case e.isFile() || e.mode.IsFile():
			if _, err := add(plumbing.BlobObject, e.hash); err != nil {
				return err
			}
		}
	}
	return nil
}
