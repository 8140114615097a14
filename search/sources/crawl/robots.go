package crawl

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/temoto/robotstxt"
)

const robotsBytes = 512 << 10 // that are read, as RFC 9309 has it

// readRobots reads the site's rules. A site without them allows everything; one whose rules cannot be read now allows
// nothing until they can.
func (r *run) readRobots(ctx context.Context) error {
	at := &url.URL{Scheme: r.scope.start.Scheme, Host: r.scope.start.Host, Path: "/robots.txt"}
	for range maxHops {
		resp, err := r.get(ctx, at, nil, robotsBytes)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("robots.txt can't be read, so no page is: %w", err)
		}
		if resp.code/100 == 3 && resp.location != "" {
			next, err := at.Parse(resp.location)
			if err != nil || www(next.Host) != www(at.Host) {
				break
			}
			at = next
			continue
		}
		if resp.kind == "text/html" { // a page for whatever is not there
			resp.body = nil
		}
		data, err := robotstxt.FromStatusAndBytes(resp.code, resp.body[:min(len(resp.body), robotsBytes)])
		if err != nil {
			r.notes = append(r.notes, "robots.txt cannot be understood, and forbids nothing: "+err.Error())
			break
		}
		r.robots = data.FindGroup(Robot)
		r.listedMaps = data.Sitemaps
		if delay := r.robots.CrawlDelay; delay > r.pause {
			r.pause = min(delay, maxDelay)
		}
		return nil
	}
	return nil
}

// allowed reports whether the site's rules let us ask for an address.
func (r *run) allowed(u *url.URL) bool {
	return r.robots == nil || r.robots.Test(strings.TrimSpace(u.RequestURI()))
}
