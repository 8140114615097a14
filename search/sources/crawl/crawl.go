package crawl

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"docent/internal/outbound"
)

// Robot is the name by which rules for robots call us.
const Robot = "Docent"

// Options are what holds for all crawls.
type Options struct {
	// Cell runs the parsers of Kinds on what sites serve. It is required.
	Cell  func(ctx context.Context, kind string, input []byte) ([]byte, error)
	Log   *slog.Logger     // nil for nowhere
	Now   func() time.Time // default time.Now
	Pause time.Duration    // between two requests to a host; default 200 ms, none if negative
	// Concurrent requests to a host; default 4.
	AtOnce int
	// Bytes of one page, beyond which it is left out: default 10 MiB. Bytes that one crawl reads; default 4 GiB.
	MaxPage, MaxBytes int64
	// How long one crawl may take; the next one goes on. Default 6 hours.
	MaxTime time.Duration
	// Resolver looks names up; nil is the machine's own.
	Resolver *net.Resolver
	// Allow are addresses of private networks that any crawl may reach.
	Allow []netip.Prefix
	// Scratch is the folder for previews, created if missing; default the system's folder for temporary files.
	Scratch string
}

// Settings are what is read of a site.
type Settings struct {
	Start   string   // where reading begins
	Prefix  string   // what addresses of pages begin with: whole, or a path; the folder of the start if empty
	Include []string // as in .gitignore, against the path of the address: if there are any, only what matches is read
	Exclude []string // the same: what matches is not read
	Sitemap string   // address of the sitemap, or "none" to follow links; what the site says if empty
	// Pages that are read at most; default 5,000.
	MaxPages int
	// How long this crawl may take; as long as any if 0.
	MaxTime time.Duration
	// AllowPrivate lets the crawl reach this machine and private networks. Only the operator sets it.
	AllowPrivate bool
}

// Defaults of what may be set, and what may not.
const (
	maxPages    = 5000
	maxDepth    = 30  // links from the start to a page
	maxSegments = 15  // parts of a path
	maxRepeats  = 3   // times that one part occurs in a path
	maxQueries  = 20  // addresses of one path that differ in their queries, when links are followed
	maxHops     = 5   // redirects one after the other
	maxBroken   = 20  // pages of one crawl that break their parser
	maxProblems = 300 // that a report names
)

// A Crawler reads sites, each host at one pace no matter how many ask for it.
type Crawler struct {
	o       Options
	public  *http.Client
	private *http.Client

	mu    sync.Mutex
	hosts map[string]*host
}

// New makes a crawler.
func New(o Options) *Crawler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Pause = max(0, cmp.Or(o.Pause, 200*time.Millisecond))
	o.AtOnce = cmp.Or(max(0, o.AtOnce), 4)
	o.MaxPage = cmp.Or(max(0, o.MaxPage), 10<<20)
	o.MaxBytes = cmp.Or(max(0, o.MaxBytes), 4<<30)
	o.MaxTime = cmp.Or(max(0, o.MaxTime), 6*time.Hour)
	client := func(p outbound.Policy) *http.Client {
		t := p.Transport(o.Resolver)
		t.MaxIdleConnsPerHost, t.IdleConnTimeout = o.AtOnce, 30*time.Second
		return &http.Client{Transport: t, Timeout: requestTime,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return &Crawler{o: o, hosts: map[string]*host{},
		public:  client(outbound.Policy{Allow: o.Allow, Setting: "--allow-private"}),
		private: client(outbound.Policy{Loopback: true, Private: true, Setting: "--allow-private"})}
}

// A Place is where a crawl keeps what it reads.
type Place struct {
	Pages string // the folder of the pages, in which nothing else is
	State string // the folder of what is known of them
}

// A Progress hears how far a crawl is: a total of 0 if that is not known.
type Progress = func(text string, done, total int)

// Crawl brings the folder of pages up to date with the site. If it fails, what was there stays. A crawl whose context
// ends goes on when it is called again.
func (c *Crawler) Crawl(ctx context.Context, s Settings, at Place, progress Progress) (Report, error) {
	sc, err := newScope(s)
	if err != nil {
		return Report{}, err
	}
	for _, dir := range []string{at.Pages, at.State} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return Report{}, err
		}
	}
	st, err := openState(filepath.Join(at.State, stateFile))
	if err != nil {
		return Report{}, err
	}
	defer st.Close()
	r := &run{crawler: c, settings: s, scope: sc, at: at, state: st, progress: progress,
		max: cmp.Or(max(0, s.MaxPages), maxPages)}
	return r.whole(ctx)
}

// Preview reads the first pages of a site into nowhere, to show how it would be read.
func (c *Crawler) Preview(ctx context.Context, s Settings, pages int, progress Progress) (report Report, err error) {
	if c.o.Scratch != "" {
		if err := os.MkdirAll(c.o.Scratch, 0o700); err != nil {
			return Report{}, err
		}
	}
	dir, err := os.MkdirTemp(c.o.Scratch, "docent-preview-")
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s.MaxPages = pages
	return c.Crawl(ctx, s, Place{filepath.Join(dir, "pages"), dir}, progress)
}
