package proof_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"docent/router/proof"
)

// Two nodes remember together which solutions were used. A challenge of before a node's start is good at it: another node
// has made it.
func TestASolutionIsTakenOnceOverAllNodes(t *testing.T) {
	start := time.Now()
	var mu sync.Mutex
	used := map[string]bool{}
	down := errors.New("the database is away")
	var broken error
	shared := func(_ context.Context, solution string, life time.Duration) (bool, func(), error) {
		mu.Lock()
		defer mu.Unlock()
		if life < proof.Life {
			t.Errorf("a solution is remembered for %v, and can be used for %v", life, proof.Life)
		}
		if broken != nil {
			return false, nil, broken
		}
		if used[solution] {
			return false, nil, nil
		}
		used[solution] = true
		return true, func() { delete(used, solution) }, nil
	}
	secret := make([]byte, 32)
	a, b := proof.New(secret, start), proof.New(secret, start.Add(time.Minute))
	a.Shared, b.Shared = shared, shared
	s := solved(t, a, "docs", start)
	now := start.Add(2 * time.Minute)
	give, err := b.Use(t.Context(), "docs", s, now)
	if err != nil {
		t.Fatalf("the other node does not take a solution: %v", err)
	}
	if _, err := a.Use(t.Context(), "docs", s, now); !errors.Is(err, proof.ErrUsed) {
		t.Errorf("used twice: %v", err)
	}
	give()
	if _, err := a.Use(t.Context(), "docs", s, start.Add(proof.Life)); !errors.Is(err, proof.ErrExpired) {
		t.Errorf("past its life: %v", err)
	}
	broken = down
	if _, err := a.Use(t.Context(), "docs", s, now); !errors.Is(err, down) {
		t.Errorf("nobody knows whether it was used, and it is taken: %v", err)
	}
}
