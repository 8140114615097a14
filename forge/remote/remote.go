// Package remote speaks git's protocol with repositories elsewhere, over http, ssh and files: it lists branches,
// fetches one into a git.Store and pushes one from it. What goes wrong is sorted by package failure; no error holds
// the credentials, and they go to no other host.
package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

	"docent/forge/failure"
	"docent/forge/git"
	"docent/internal/disk"
	"docent/internal/tracing"
)

// A Remote is a repository elsewhere. The git protocol is spoken through go-git's sessions rather than its Remote: what
// is wanted, what is there already and what a reference is expected to be are then said exactly, and the history is
// never walked.
type Remote struct {
	url     string
	secret  string // never leaves auth; error texts are cleaned of it
	auth    transport.AuthMethod
	client  transport.Transport
	timeout time.Duration

	Progress func(text string) // reports how much was received; may be nil
	Whole    bool              // fetches bring all of the history even if nothing is there yet

	// Of a source that is reached over http.
	web      *http.Client
	basic    *githttp.BasicAuth
	versions *versions
}

// A Listing is the heads of a source's branches at a moment. Who asked before that moment need not ask the source
// again: what waits for a repository's turn shares one.
type Listing struct {
	Began  time.Time // by the clock that cannot be set; the source was asked after it
	Source string
	Heads  map[string]plumbing.Hash
	Base   string // the source's default branch; of a folder, the branch that was imported to
}

// A Dialer prepares to talk to remotes, and remembers which of them know the protocol's second version.
type Dialer struct {
	Timeout time.Duration // of one exchange

	versions versions
}

// Dial prepares to talk; nothing is sent yet. Secret gives the token, or the private key, for a protocol: "https",
// "ssh" and so on; empty if there is none.
func (d *Dialer) Dial(url string, secret func(protocol string) (string, error)) (*Remote, error) {
	r := &Remote{url: url, timeout: d.Timeout}
	ep, err := transport.NewEndpoint(url)
	if err != nil {
		return nil, fmt.Errorf("%w: the source's address is not understood", failure.ErrMisconfigured)
	}
	if r.secret, err = secret(ep.Protocol); err != nil {
		return nil, err
	}
	switch ep.Protocol {
	case "http", "https":
		r.client, r.web, r.versions = httpTransport(), httpClient(), &d.versions
		if r.secret != "" {
			// hosts want some name, and ignore which
			r.basic = &githttp.BasicAuth{Username: "x-access-token", Password: r.secret}
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
		return nil, fmt.Errorf("%w: repositories over %q are not supported", failure.ErrMisconfigured, ep.Protocol)
	}
	return r, nil
}

// httpClient follows a redirect only if it stays on the host: credentials and content belong to one place.
var httpClient = sync.OnceValue(func() *http.Client {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.ResponseHeaderTimeout = time.Minute
	return &http.Client{
		Transport: tracing.Transport(shortErrors{base}),
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if !strings.EqualFold(req.URL.Hostname(), via[0].URL.Hostname()) {
				return errors.New("the repository's host redirects to another host")
			}
			return nil
		},
	}
})

var httpTransport = sync.OnceValue(func() transport.Transport {
	return githttp.NewClientWithOptions(httpClient(),
		&githttp.ClientOptions{CacheMaxEntries: 16, RedirectPolicy: githttp.FollowInitialRedirects})
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
	return filesystem.NewStorage(osfs.New(dir), cache.NewObjectLRU(4<<20)), nil
}

// sshAuth takes the private key from the environment variable, otherwise the agent, otherwise the usual key files.
func sshAuth(user, key string) (transport.AuthMethod, error) {
	user = cmp.Or(user, gitssh.DefaultUsername)
	if key != "" {
		auth, err := gitssh.NewPublicKeys(user, []byte(key+"\n"), "")
		if err != nil {
			return nil, fmt.Errorf("%w: the environment variable for the repository's token does not hold a private SSH key",
				failure.ErrMisconfigured)
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
	return nil, fmt.Errorf("%w: no SSH key: name an environment variable that holds one, or run an SSH agent",
		failure.ErrMisconfigured)
}

// branches lists the remote's branches.
func (r *Remote) branches(ctx context.Context) (map[string]plumbing.Hash, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	s, refs, err := r.uploads(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return nil, nil
	}
	if err != nil {
		return nil, r.failure(ctx, "list branches", err)
	}
	s.Close()
	return headsOf(refs), nil
}

func headsOf(refs *packp.AdvRefs) map[string]plumbing.Hash {
	heads := map[string]plumbing.Hash{}
	for name, hash := range refs.References {
		if branch, ok := strings.CutPrefix(name, "refs/heads/"); ok {
			heads[branch] = hash
		}
	}
	return heads
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

// uploads begins a fetch, with what the remote has.
func (r *Remote) uploads(ctx context.Context) (transport.UploadPackSession, *packp.AdvRefs, error) {
	return begin(ctx, r, r.client.NewUploadPackSession)
}

// begin opens a session and reads what the remote has.
func begin[S transport.Session](
	ctx context.Context, r *Remote, open func(*transport.Endpoint, transport.AuthMethod) (S, error),
) (s S, refs *packp.AdvRefs, err error) {
	var none S
	ep, err := transport.NewEndpoint(r.url)
	if err != nil {
		return none, nil, err
	}
	if s, err = open(ep, r.auth); err != nil {
		return none, nil, err
	}
	if refs, err = s.AdvertisedReferencesContext(ctx); err != nil {
		s.Close()
		return none, nil, err
	}
	return s, refs, nil
}

// Fetch brings a branch's commits into the store: the newest one alone if nothing is there yet, otherwise what is
// new since. Haves are commits that are there with all that they reach. An empty name is the remote's default branch.
// No reference is changed. The listing has the heads of the remote's branches, as far as it told.
func (r *Remote) Fetch(
	ctx context.Context, store *git.Store, branch string, haves []plumbing.Hash,
) (string, plumbing.Hash, *Listing, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	zero := plumbing.ZeroHash
	l := &Listing{Began: time.Now(), Source: r.url}
	s, refs, err := r.uploads(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return "", zero, nil, fmt.Errorf("%w: the repository is empty", failure.ErrMisconfigured)
	}
	if err != nil {
		return "", zero, nil, r.failure(ctx, "fetch", err)
	}
	defer s.Close()
	l.Heads = headsOf(refs)
	l.Base = defaultOf(refs, l.Heads)
	if branch == "" {
		if branch = l.Base; branch == "" {
			return "", zero, l, fmt.Errorf("%w: the repository has no default branch; name one", failure.ErrMisconfigured)
		}
	}
	want, ok := l.Heads[branch]
	if !ok {
		return "", zero, l, NoBranch(branch)
	}
	there, err := store.Connected(want)
	if err == nil && !there {
		err = r.receive(ctx, s, refs, store, want, haves)
	}
	if err != nil {
		return "", zero, l, err
	}
	return branch, want, l, nil
}

// receive brings a commit into the store, given commits that are there.
func (r *Remote) receive(
	ctx context.Context, s transport.UploadPackSession, refs *packp.AdvRefs, store *git.Store,
	want plumbing.Hash, haves []plumbing.Hash,
) error {
	if err := store.CutOff(); err != nil { // what a fetch may have left that was cut off
		return err
	}
	shallow, err := store.Shallow()
	if err != nil {
		return err
	}
	req, err := request(refs, want, haves, shallow, len(haves) == 0 && !r.Whole)
	if err != nil {
		return err
	}
	res, err := s.UploadPack(ctx, req)
	if err != nil {
		return r.failure(ctx, "fetch", err)
	}
	defer res.Close()
	var packs io.Reader = res
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		packs = sideband.NewDemuxer(sideband.Sideband64k, res)
	case req.Capabilities.Supports(capability.Sideband):
		packs = sideband.NewDemuxer(sideband.Sideband, res)
	}
	if r.Progress != nil {
		packs = &countingReader{next: packs, told: r.Progress}
	}
	if len(res.Shallows) > 0 { // before the commits: they must never be here without that
		for _, h := range res.Shallows {
			shallow[h] = true
		}
		if err := store.SetShallow(shallow); err != nil {
			return err
		}
	}
	err = store.Receive(packs, func() error {
		there, err := store.Connected(want)
		if err == nil && !there {
			err = fmt.Errorf("%w: the repository did not send all of the commit that it announced", failure.ErrTemporary)
		}
		return err
	})
	if err != nil {
		err = r.failure(ctx, "fetch", err)
	}
	return errors.Join(err, store.CutOff())
}

// request asks for a commit: alone, or with what is new since.
func request(
	refs *packp.AdvRefs, want plumbing.Hash, haves []plumbing.Hash, shallow map[plumbing.Hash]bool, alone bool,
) (*packp.UploadPackRequest, error) {
	req := packp.NewUploadPackRequestFromCapabilities(refs.Capabilities)
	req.Wants, req.Haves = []plumbing.Hash{want}, haves
	if refs.Capabilities.Supports(capability.NoProgress) {
		if err := req.Capabilities.Set(capability.NoProgress); err != nil {
			return nil, err
		}
	}
	if refs.Capabilities.Supports(capability.Shallow) && (alone || len(shallow) > 0) {
		if err := req.Capabilities.Set(capability.Shallow); err != nil {
			return nil, err
		}
		if alone {
			req.Depth = packp.DepthCommits(1)
		}
		// The request tells the remote where our history ends, so that it does not count on what lies beyond.
		req.Shallows = slices.Collect(maps.Keys(shallow))
	}
	return req, nil
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

// ErrNoBranch says that a remote does not have a branch.
var ErrNoBranch = errors.New("no such branch")

// NoBranch is ErrNoBranch, for people.
func NoBranch(name string) error {
	return fmt.Errorf("%w: %w: the repository has no branch %q", failure.ErrMisconfigured, ErrNoBranch, name)
}

// failure sorts an error of the transport by what can be done about it. The text is cleaned, the chain is cut: both may
// hold the server's words or an address.
func (r *Remote) failure(ctx context.Context, doing string, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", doing, cause)
	}
	var said *failure.Error
	switch {
	case errors.Is(err, git.ErrDamaged), errors.Is(err, os.ErrPermission), errors.As(err, &said), disk.Exhausted(err):
		return fmt.Errorf("%s: %w", doing, err)
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed),
		errors.Is(err, transport.ErrInvalidAuthMethod):
		return failure.Misconfigured("The repository refuses the credentials (while trying to %s).", doing)
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return failure.Misconfigured("There is no such repository, or the credentials do not show it (while trying to %s).",
			doing)
	}
	text := failure.Quote(err.Error(), r.secret)
	for _, sign := range []string{"unable to authenticate", "knownhosts:", "host key", "redirects to another host",
		"http redirect", "dubious ownership", "certificate", "needs git on this machine", "unsupported scheme"} {
		if strings.Contains(text, sign) {
			return fmt.Errorf("%w: %s: %s", failure.ErrMisconfigured, doing, text)
		}
	}
	if unknown, ok := errors.AsType[*net.DNSError](err); ok && unknown.IsNotFound {
		return fmt.Errorf("%w: %s: the host %q is not known", failure.ErrTemporary, doing, unknown.Name)
	}
	return fmt.Errorf("%w: %s: %s", failure.ErrTemporary, doing, text)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
