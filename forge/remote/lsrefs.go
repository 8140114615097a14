package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
)

// In the protocol's first version a host begins by listing all that it has: on the large hosts two references for each
// pull request there ever was. In the second it is asked for the branches alone. That is only a shorter way to the same
// listing: whatever does not go as it should leads to the first version, which says what is wrong.

// versions remembers which hosts know the second version.
type versions struct {
	mu sync.Mutex
	at map[string]string // where to ask, by the source; empty if the host does not know it
}

func (v *versions) known(source string) (post string, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	post, ok = v.at[source]
	return post, ok
}

func (v *versions) remember(source, post string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.at == nil {
		v.at = map[string]string{}
	}
	v.at[source] = post
}

const (
	infoRefs   = "/info/refs"
	uploadPack = "git-upload-pack"
	maxListed  = 64 << 20 // bytes of an answer
)

// askBranches is the command: the default branch, and all branches.
var askBranches = "0014command=ls-refs\n" + "0001" +
	"000csymrefs\n" + "0014ref-prefix HEAD\n" + "001bref-prefix refs/heads/\n" + "0000"

// List lists the branches by the protocol's second version; nil if that does not work.
func (r *Remote) List(ctx context.Context) *Listing {
	if r.web == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	post, ok := r.versions.known(r.url)
	if !ok {
		var err error
		if post, err = r.secondVersion(ctx); err != nil {
			return nil // it is asked again the next time
		}
		r.versions.remember(r.url, post)
	}
	if post == "" {
		return nil
	}
	l := &Listing{Began: time.Now(), Source: r.url, Heads: map[string]plumbing.Hash{}}
	body, err := r.speak(ctx, http.MethodPost, post, askBranches)
	if err != nil {
		return nil
	}
	defer body.Close()
	whole := false
	for lines := pktline.NewScanner(body); !whole && lines.Scan(); {
		if whole = len(lines.Bytes()) == 0; whole {
			break
		}
		id, rest, _ := strings.Cut(strings.TrimSpace(string(lines.Bytes())), " ")
		name, more, _ := strings.Cut(rest, " ")
		if !plumbing.IsHash(id) {
			return nil
		}
		if branch, ok := strings.CutPrefix(name, "refs/heads/"); ok {
			l.Heads[branch] = plumbing.NewHash(id)
		}
		if name == "HEAD" {
			for attribute := range strings.FieldsSeq(more) {
				if target, ok := strings.CutPrefix(attribute, "symref-target:refs/heads/"); ok {
					l.Base = target
				}
			}
		}
	}
	if _, ok := l.Heads[l.Base]; !ok || !whole {
		return nil
	}
	return l
}

// secondVersion finds out where the host takes commands of the second version; nowhere if it does not know it.
func (r *Remote) secondVersion(ctx context.Context) (post string, err error) {
	var final string
	body, err := r.speakAt(ctx, http.MethodGet, strings.TrimRight(r.url, "/")+infoRefs+"?service="+uploadPack, "", &final)
	if err != nil {
		return "", err
	}
	defer body.Close()
	base, _, ok := strings.Cut(final, infoRefs)
	if !ok {
		return "", errors.New("redirected to what is no repository")
	}
	lines := pktline.NewScanner(body)
	second := false
	for n := 0; lines.Scan(); n++ {
		switch line := strings.TrimSpace(string(lines.Bytes())); {
		case line == "version 2":
			second = true
		case second && (line == "ls-refs" || strings.HasPrefix(line, "ls-refs=")):
			return base + "/" + uploadPack, nil
		case !second && n > 2: // references: what was asked for was not understood
			return "", nil
		}
	}
	return "", lines.Err()
}

func (r *Remote) speak(ctx context.Context, method, url, text string) (io.ReadCloser, error) {
	return r.speakAt(ctx, method, url, text, new(string))
}

// speakAt sends a request in the second version, and tells where it ended up.
func (r *Remote) speakAt(ctx context.Context, method, url, text string, final *string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Git-Protocol", "version=2")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-"+uploadPack+"-request")
		req.Header.Set("Accept", "application/x-"+uploadPack+"-result")
	}
	if r.basic != nil {
		r.basic.SetAuth(req)
	}
	res, err := r.web.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, fmt.Errorf("status %d", res.StatusCode)
	}
	*final = res.Request.URL.String()
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(res.Body, maxListed), res.Body}, nil
}
