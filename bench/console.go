package bench

import (
	"bufio"
	"context"
	"docent/internal/background"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Console is people who work in the console while readers are answered: each page of a project is opened once in a
// while, and live parts of pages stay open.
type Console struct {
	URL, AdminKey string
	Every         time.Duration // how often each page is opened
	Live          int           // live parts that stay open
	For           time.Duration
}

// A PageFigures says how one page was.
type PageFigures struct {
	Page     string  `json:"page"`
	Bytes    int     `json:"bytes"`
	Failed   int     `json:"failed"`
	Latency  Latency `json:"latency"` // to the end of the answer
	recorder recorder
	n        int
}

// ConsoleFigures say how all were.
type ConsoleFigures struct {
	Pages  []*PageFigures `json:"pages"`
	All    Latency        `json:"all"`
	Live   int            `json:"live"`   // parts that were open at the end
	Events int64          `json:"events"` // that they were sent
}

var (
	formToken  = regexp.MustCompile(`name="token" value="([^"]+)"`)
	navLink    = regexp.MustCompile(`<a href="(/console/[^"]+)"[^>]* data-go=`)
	liveSource = regexp.MustCompile(`sse-connect="([^"]+)"`)
)

// A consoleVisit is a browser that is signed in.
type consoleVisit struct {
	base   string
	client *http.Client
}

func (v *consoleVisit) get(ctx context.Context, path string) (status int, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.base+path, nil)
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Accept", "text/html")
	return v.do(req)
}

func (v *consoleVisit) do(req *http.Request) (status int, text string, err error) {
	res, err := v.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), err
}

// signIn gives a browser in which the admin key is signed in, and the page that it comes to: a project's overview.
func (c Console) signIn(ctx context.Context) (*consoleVisit, string, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, "", err
	}
	v := &consoleVisit{base: strings.TrimRight(c.URL, "/"), client: &http.Client{Jar: jar,
		Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	_, page, err := v.get(ctx, "/login")
	if err != nil {
		return nil, "", err
	}
	token := formToken.FindStringSubmatch(page)
	if token == nil {
		return nil, "", errors.New("the page of the sign-in has no form")
	}
	form := url.Values{"token": {html.UnescapeString(token[1])}, "key": {c.AdminKey}, "next": {"/console"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, v.base+"/login", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "text/html")
	status, page, err := v.do(req)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the sign-in is answered %d", status)
	}
	return v, page, err
}

// Run opens pages until the time is over.
func (c Console) Run(ctx context.Context) (ConsoleFigures, error) {
	v, page, err := c.signIn(ctx)
	if err != nil {
		return ConsoleFigures{}, err
	}
	defer v.client.CloseIdleConnections()
	var out ConsoleFigures
	var live []string
	for _, m := range navLink.FindAllStringSubmatch(page, -1) {
		path := html.UnescapeString(m[1])
		status, text, err := v.get(ctx, path)
		if err != nil {
			return out, err
		}
		if status != http.StatusOK {
			continue // a page of a later version, or for somebody else
		}
		out.Pages = append(out.Pages, &PageFigures{Page: path, Bytes: len(text)})
		for _, s := range liveSource.FindAllStringSubmatch(text, -1) {
			if s := html.UnescapeString(s[1]); !slices.Contains(live, s) {
				live = append(live, s)
			}
		}
	}
	if len(out.Pages) == 0 {
		return out, errors.New("the console leads to no page of a project: is the key of an organization with one project?")
	}
	if len(live) == 0 {
		c.Live = 0
	}
	var followers []*consoleVisit // each has as many live parts as one session may have; sign-ins are not measured
	for i := 0; i < c.Live; i += liveOfSession {
		f, _, err := c.signIn(ctx)
		if err != nil {
			return out, err
		}
		defer f.client.CloseIdleConnections()
		followers = append(followers, f)
	}
	ctx, cancel := context.WithTimeout(ctx, c.For)
	defer cancel()
	var all recorder
	var events, open atomic.Int64
	var group background.Group
	for i := range c.Live {
		group.Go(func() error {
			follow(ctx, followers[i/liveOfSession], live[i%len(live)], &events, &open)
			return nil
		})
	}
	for i, p := range out.Pages {
		group.Go(func() error {
			offset := c.Every * time.Duration(i) / time.Duration(len(out.Pages)) // not all at once
			for due := time.Now().Add(offset); wait(ctx, due) == nil; due = due.Add(c.Every) {
				began := time.Now()
				status, _, err := v.get(ctx, p.Page)
				if ctx.Err() != nil {
					break
				}
				if p.n++; err != nil || status != http.StatusOK {
					p.Failed++
				}
				p.recorder.record(0, time.Since(began))
				all.record(i, time.Since(began))
			}
			return nil
		})
	}
	<-ctx.Done()
	out.Live = int(open.Load())
	err = group.Wait()
	for _, p := range out.Pages {
		p.Latency = p.recorder.latency()
	}
	out.All, out.Events = all.latency(), events.Load()
	return out, err
}

// liveOfSession is how many live parts one browser has open at most.
const liveOfSession = 20

// follow keeps a live part of a page open, as a browser does.
func follow(ctx context.Context, v *consoleVisit, path string, events, open *atomic.Int64) {
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.base+path, nil)
		if err != nil {
			return
		}
		req.Header.Set("Accept", "text/event-stream")
		if res, err := v.client.Do(req); err == nil {
			open.Add(1)
			for lines := bufio.NewReader(res.Body); ; {
				line, err := lines.ReadString('\n')
				if err != nil {
					break
				}
				if line == "\n" {
					events.Add(1)
				}
			}
			if ctx.Err() == nil {
				open.Add(-1)
			}
			res.Body.Close()
		}
		_ = wait(ctx, time.Now().Add(2*time.Second))
	}
}
