package password

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docent/api"
)

func TestAPasswordIsKnownAgain(t *testing.T) {
	h := NewHasher()
	one, err := h.Hash(t.Context(), "correct horse ä")
	if err != nil || !strings.HasPrefix(one, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Fatalf("%q, %v", one, err)
	}
	other, err := h.Hash(t.Context(), "correct horse ä")
	if err != nil || other == one {
		t.Errorf("the same password twice gives the same: %q, %v", other, err)
	}
	for password, want := range map[string]bool{"correct horse ä": true, "correct horse a": false, "": false} {
		if got, err := h.Verify(t.Context(), one, password); got != want || err != nil {
			t.Errorf("%q: %v, %v", password, got, err)
		}
	}
	if ok, err := h.Verify(t.Context(), "", ""); ok || err != nil {
		t.Errorf("where nothing is kept: %v, %v", ok, err)
	}
}

func TestWhatIsKeptElsewhereIsRead(t *testing.T) {
	// Made by the reference implementation: argon2 somesalt -id -t 2 -m 16 -p 1 -l 24, of "password".
	const kept = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	if ok, err := NewHasher().Verify(t.Context(), kept, "password"); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

func TestADamagedHashIsRefused(t *testing.T) {
	h := NewHasher()
	for _, kept := range []string{
		"x", "$argon2i$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=4294967295,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=0,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$", "$argon2id$v=19$m=19456,t=2,p=1$$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8",
	} {
		if ok, err := h.Verify(t.Context(), kept, "password"); ok || err == nil {
			t.Errorf("%q: %v, %v", kept, ok, err)
		}
	}
}

// Who has no password costs as much work as who has one: the time does not tell who is known.
func TestNobodysPasswordIsAsMuchWork(t *testing.T) {
	h := NewHasher()
	one, err := h.Hash(t.Context(), "correct horse ä")
	if err != nil {
		t.Fatal(err)
	}
	real, err := parse(one)
	nobody, also := parse(h.dummy)
	if err != nil || also != nil || real.memory != nobody.memory || real.passes != nobody.passes ||
		real.lanes != nobody.lanes || len(real.hash) != len(nobody.hash) || len(real.salt) != len(nobody.salt) {
		t.Errorf("%+v and %+v, %v, %v", real, nobody, err, also)
	}
}

// A flood of sign-ins waits for a place, and who would wait long is told to come back.
func TestHashingManyAtOnceIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHasher(1, 5*time.Second)
		release, err := h.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var busy *api.BusyError
		if _, err := h.Verify(t.Context(), "", "x"); !errors.As(err, &busy) || busy.RetryAfter != 5*time.Second {
			t.Errorf("with no place left: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := h.Hash(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who goes away: %v", err)
		}
		release()
		if _, err := h.Hash(t.Context(), "x"); err != nil {
			t.Errorf("with a place: %v", err)
		}
	})
}

func TestWeakPasswordsAreRefused(t *testing.T) {
	for password, good := range map[string]bool{
		"tall ships in fog": true, "kurz": false, "Password123": false, "aaaaaaaaaaaaa": false, "ää ö ü ß é": true,
		"maria@example.com": false, "Maria Lindqvist": false, strings.Repeat("ab", 101): false, "ten chars \xff": false,
	} {
		if problem := Problem(password, "maria@example.com", "maria lindqvist"); (problem == "") != good {
			t.Errorf("%q: %q", password, problem)
		}
	}
}
