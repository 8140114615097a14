package doctor

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"docent/api/stream"
)

// probePath begins the addresses of probes.
const probePath = "/docent-doctor/"

// What a probe's answer is made of: so many parts, so far from each other.
const (
	probeParts = 5
	probePause = 200 * time.Millisecond
	probeLife  = time.Minute
)

// A Seen is what the server sees of a request for a probe, which is its first part.
type Seen struct {
	Nonce     string `json:"nonce"`
	Remote    string `json:"remote"` // the other end of the connection
	Forwarded string `json:"forwardedFor,omitempty"`
	Scheme    string `json:"forwardedProto,omitempty"`
	Host      string `json:"host"`
}

// Probes are addresses that the doctor asks for to see whether a way leads to this very server, and whether what it
// writes arrives part by part. They exist for a minute, for anyone who knows the word in them.
type Probes struct {
	mu    sync.Mutex
	known map[string]time.Time // until when
}

// New makes a probe's address, without the server's.
func (p *Probes) New() (nonce string) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[string]time.Time{}
	}
	for old, until := range p.known {
		if now.After(until) {
			delete(p.known, old)
		}
	}
	nonce = rand.Text()
	p.known[nonce] = now.Add(probeLife)
	return nonce
}

func (p *Probes) has(nonce string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	until, ok := p.known[nonce]
	return ok && time.Now().Before(until)
}

// Before answers probes and hands all other requests on.
func (p *Probes) Before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		nonce, is := strings.CutPrefix(req.URL.Path, probePath)
		if !is || !p.has(nonce) {
			next.ServeHTTP(w, req)
			return
		}
		for _, f := range stream.Headers(stream.UIMessages) { // as an answer's, which proxies treat the same
			w.Header().Set(f.Name, f.Value)
		}
		seen, err := json.Marshal(Seen{Nonce: nonce, Remote: req.RemoteAddr,
			Forwarded: strings.Join(req.Header.Values("X-Forwarded-For"), ","), Scheme: req.Header.Get("X-Forwarded-Proto"), Host: req.Host})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		control := http.NewResponseController(w)
		for i := range probeParts {
			text := []byte(fmt.Sprintf("%d", i))
			if i == 0 {
				text = seen
			}
			if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil || control.Flush() != nil {
				return
			}
			if i == probeParts-1 {
				return
			}
			select {
			case <-req.Context().Done():
				return
			case <-time.After(probePause):
			}
		}
	})
}
