package readertoken

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"docent/internal/outbound"
)

// Bounds of what an address publishes, and of how often it is asked: tokens with made-up key ids must not become
// requests.
const (
	maxKeySet    = 64 << 10         // bytes
	maxKeys      = 16               // that can verify: a token without a kid is tried with each
	fetchTimeout = 5 * time.Second  // for the answer, to its end
	freshFor     = 10 * time.Minute // after that the address is asked again
	keptFor      = 24 * time.Hour   // that keys are used on while the address fails
	retryAfter   = time.Minute      // least time between two requests, for an unknown kid also
)

// A fetcher fetches key sets.
type fetcher struct {
	policy outbound.Policy
	http   *http.Client
}

func newFetcher(policy outbound.Policy) *fetcher {
	return &fetcher{policy: policy, http: policy.Client(nil, fetchTimeout)}
}

// A publicKey is one that can verify ES256.
type publicKey struct {
	id  string
	key *ecdsa.PublicKey
}

// fetch reads the keys that an address publishes. Its errors are for who has entered the address.
func (f *fetcher) fetch(ctx context.Context, address string) ([]publicKey, error) {
	if say := f.policy.CheckURL(address); say != "" {
		return nil, errors.New(say)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, errors.New("is not an address")
	}
	req.Header.Set("Accept", "application/json")
	res, err := f.http.Do(req)
	if err != nil {
		if at, ok := errors.AsType[*url.Error](err); ok {
			err = at.Err
		}
		return nil, fmt.Errorf("cannot be fetched: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answers with status %d; it must answer 200 itself, without a redirect", res.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxKeySet+1))
	if err != nil {
		return nil, fmt.Errorf("cannot be fetched: %w", err)
	}
	if len(raw) > maxKeySet {
		return nil, fmt.Errorf("answers with more than %d bytes", maxKeySet)
	}
	return parseKeys(raw)
}

// parseKeys reads a JSON Web Key Set. Keys for other algorithms and uses are passed over.
func parseKeys(raw []byte) (list []publicKey, err error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &set); err != nil || set.Keys == nil {
		return nil, errors.New("is not a JSON Web Key Set: an object with the array keys is expected")
	}
	for _, one := range set.Keys {
		var k jose.JSONWebKey
		if json.Unmarshal(one, &k) != nil || k.Use != "" && k.Use != "sig" || k.Algorithm != "" && k.Algorithm != "ES256" {
			continue
		}
		key, ok := k.Key.(*ecdsa.PublicKey)
		if !ok || key.Curve != elliptic.P256() {
			continue
		}
		if len(list) == maxKeys {
			return nil, fmt.Errorf("publishes more than %d ES256 keys", maxKeys)
		}
		list = append(list, publicKey{k.KeyID, key})
	}
	if len(list) == 0 {
		return nil, errors.New("publishes no key for ES256 (kty EC, crv P-256)")
	}
	return list, nil
}

// A keySet is what an address publishes, as it was last read.
type keySet struct {
	url    string
	client *fetcher
	now    func() time.Time
	log    *slog.Logger

	reading sync.Mutex // held by who fetches

	mu    sync.Mutex
	keys  []publicKey
	read  time.Time // when the keys were read
	tried time.Time // when the address was last asked
	err   error     // of the last try
}

// find returns the keys that may have signed a token with that key id; all if it names none. It asks the address if
// the keys are old or the id is not known, at most once in a while. Others use the keys that are there meanwhile.
func (s *keySet) find(ctx context.Context, kid string) ([]jwt.VerificationKey, error) {
	found, due, err := s.look(kid)
	switch {
	case len(found) > 0 && due && s.reading.TryLock():
	case len(found) > 0:
		return found, nil
	case !due:
		return nil, err
	default:
		s.reading.Lock()
	}
	defer s.reading.Unlock()
	if found, due, err = s.look(kid); due { // nobody was faster
		s.fetch(ctx)
		found, _, err = s.look(kid)
	}
	if len(found) > 0 {
		return found, nil
	}
	return nil, err
}

// look finds keys among those that are there. due is whether the address may be asked and should be.
func (s *keySet) look(kid string) (found []jwt.VerificationKey, due bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if now.Sub(s.read) < keptFor {
		for _, k := range s.keys {
			if kid == "" || k.id == kid || k.id == "" {
				found = append(found, k.key)
			}
		}
	}
	stale := len(found) == 0 || now.Sub(s.read) >= freshFor
	return found, stale && now.Sub(s.tried) >= retryAfter, s.err
}

// fetch asks the address. What could be read last goes on to be used if it fails. The request does not end with the one
// for which it is made: others wait for it.
func (s *keySet) fetch(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	keys, err := s.client.fetch(ctx, s.url)
	if err != nil {
		s.log.Warn("could not fetch reader keys", "url", s.url, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried, s.err = s.now(), err
	if err == nil {
		s.keys, s.read = keys, s.tried
	}
}
