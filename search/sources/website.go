package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"docent/api"
	"docent/internal/outbound"
)

const (
	siteTimeout   = 10 * time.Second
	siteBytes     = 2 << 20
	siteRedirects = 3
	siteLinks     = 5000 // of a page that are looked at
)

// A Website looks at addresses that somebody has pasted, to find the repository behind them. It reads one page and
// follows few redirects, only over http and https, and only to machines on the public internet: an address that names
// one of the server's own network, by whatever name, is not asked.
type Website struct {
	Policy outbound.Policy // which addresses may be asked beside those of the public internet
}

// A Candidate is a repository that a site links to.
type Candidate struct {
	Place Place
	Why   string // the link that names it
	Edit  bool   // the link is one to edit the page, so that the repository is that of the documentation
}

// errPrivate refuses an address of a network that is not the public one.
var errPrivate = errors.New(
	"the address is on a private network or on this machine, which the console doesn't read",
)

func (w Website) client() *http.Client {
	transport := w.Policy.Transport(nil)
	transport.DisableKeepAlives, transport.ResponseHeaderTimeout = true, siteTimeout
	return &http.Client{Timeout: siteTimeout, Transport: transport,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > siteRedirects {
				return errors.New("it is redirected too often")
			}
			return webAddress(req.URL)
		}}
}

func webAddress(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return errors.New("it is no address of the web")
	}
	return nil
}

func (w Website) get(ctx context.Context, address string) (*http.Response, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("it is no address of the web")
	}
	if err := webAddress(u); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "Docent (looks for the repository of this documentation)")
	return w.client().Do(req)
}

// Find says what is at a web address: a git repository, or a site with the repositories that it links to, the likeliest
// first. What cannot be asked is an *api.InvalidError for the field source.
func (w Website) Find(ctx context.Context, address string) (git Place, candidates []Candidate, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*siteTimeout)
	defer cancel()
	if w.isRepository(ctx, address) {
		return Place{
			Kind:    PlaceGit,
			Project: api.Project{Source: strings.TrimRight(address, "/"), Host: api.HostBuiltin},
		}, nil, nil
	}
	resp, err := w.get(ctx, address)
	if err != nil {
		return Place{}, nil, badPlace("is a web address that could not be looked at: " + siteFailure(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return Place{}, nil, badPlace(
			fmt.Sprintf("is a web address that answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)),
		)
	}
	return Place{}, linked(resp.Request.URL, io.LimitReader(resp.Body, siteBytes)), nil
}

// siteFailure is why a site could not be asked, in words that say nothing of the server's network.
func siteFailure(err error) string {
	var dns *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, outbound.ErrTarget):
		return errPrivate.Error()
	case errors.As(err, &dns):
		return "there is no host of that name"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "it does not answer"
	}
	err = outbound.Cause(err)
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return "it cannot be reached"
	}
	return err.Error()
}

// isRepository asks as git does.
func (w Website) isRepository(ctx context.Context, address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") == "" {
		return false
	}
	resp, err := w.get(ctx, strings.TrimRight(address, "/")+"/info/refs?service=git-upload-pack")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK &&
		strings.HasPrefix(resp.Header.Get("Content-Type"), "application/x-git-upload-pack-advertisement")
}

// linked are the repositories that a page links to.
func linked(page *url.URL, body io.Reader) []Candidate {
	byRepository := map[string]*Candidate{}
	count := map[string]int{}
	tokens := html.NewTokenizer(body)
	var words strings.Builder // of the link that is open
	var open *Candidate
	for links := 0; links < siteLinks; {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			break
		}
		token := tokens.Token()
		switch {
		case kind == html.TextToken && open != nil && words.Len() < 200:
			words.WriteString(strings.ToLower(token.Data))
		case kind == html.EndTagToken && token.DataAtom == atom.A && open != nil:
			open.Edit = open.Edit || strings.Contains(words.String(), "edit") ||
				strings.Contains(words.String(), "suggest")
			open = nil
		case kind == html.StartTagToken && token.DataAtom == atom.A:
			links++
			words.Reset()
			open = candidate(page, token, byRepository)
			if open != nil {
				count[open.Place.Project.Source]++
			}
		}
	}
	out := make([]Candidate, 0, len(byRepository))
	for _, c := range byRepository {
		if !c.Edit { // the folder of a page that is linked for another reason says nothing
			c.Place.Project.Branch, c.Place.Project.DocsDir = "", ""
		}
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Candidate) int {
		if a.Edit != b.Edit {
			if a.Edit {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(count[b.Place.Project.Source], count[a.Place.Project.Source]),
			strings.Compare(a.Place.Project.Source, b.Place.Project.Source))
	})
	return out[:min(len(out), 5)]
}

// candidate is the repository that a link leads to; nil if it leads to none.
func candidate(page *url.URL, token html.Token, known map[string]*Candidate) *Candidate {
	href := ""
	label := ""
	for _, a := range token.Attr {
		switch a.Key {
		case "href":
			href = a.Val
		case "aria-label", "title", "class", "rel":
			label += " " + strings.ToLower(a.Val)
		}
	}
	u, err := page.Parse(strings.TrimSpace(href))
	if err != nil || len(href) > 1000 || u.Host == page.Host {
		return nil
	}
	u.RawQuery, u.Fragment = "", ""
	place, err := Locate(u.String())
	if err != nil || place.Kind != PlaceHosted || place.Project.Validate() != nil && !onlyIncomplete(place.Project) {
		return nil
	}
	parts := "/" + strings.Join(strings.Split(u.Path, "/"), "/") + "/"
	edit := strings.Contains(parts, "/edit/") || strings.Contains(parts, "/_edit/") || strings.Contains(label, "edit")
	c := known[place.Project.Source]
	if c == nil {
		c = &Candidate{Place: place, Why: u.String()}
		known[place.Project.Source] = c
	}
	if edit && !c.Edit {
		c.Place, c.Why, c.Edit = place, u.String(), true
	}
	return c
}

// onlyIncomplete reports whether nothing is wrong with a project but what has yet to be asked for.
func onlyIncomplete(p api.Project) bool {
	p.ID, p.Domain, p.TokenEnv = "docs", "docs", "TOKEN"
	return p.Validate() == nil
}
