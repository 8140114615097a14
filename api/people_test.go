package api

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestEachRoleMayWhatTheOneBeforeMay(t *testing.T) {
	for i, role := range Roles {
		for j, other := range Roles {
			if got := role.AtLeast(other); got != (i >= j) {
				t.Errorf("%s at least %s: %v", role, other, got)
			}
		}
		if Role("").AtLeast(role) || Role("root").AtLeast(role) {
			t.Errorf("what is no role may what a %s may", role)
		}
	}
	if Role("").AtLeast("") {
		t.Error("no role may something")
	}
}

func TestASessionEndsByEachOfItsBounds(t *testing.T) {
	began := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	s := SignIn{SeenAt: began, ExpiresAt: began.Add(10 * time.Hour), Idle: time.Hour}
	if !s.Live(began.Add(time.Hour-1)) || s.Live(began.Add(time.Hour)) {
		t.Error("it does not end when nobody came for an hour")
	}
	s.SeenAt = began.Add(10*time.Hour - 1)
	if !s.Live(s.SeenAt) || s.Live(s.ExpiresAt) {
		t.Error("it does not end at its end")
	}
	s.EndedAt = &began
	if s.Live(began) {
		t.Error("it goes on when it was ended")
	}
}

func TestWhatBrowsersSayIsStorable(t *testing.T) {
	s := SignIn{Agent: strings.Repeat("ä\x00\xff", 200)}.Clean()
	if !utf8.ValidString(s.Agent) || strings.ContainsRune(s.Agent, 0) || len(s.Agent) > 310 {
		t.Errorf("%q", s.Agent)
	}
}

func TestTheFirstIDOfATimeSortsBeforeTheOthers(t *testing.T) {
	at := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	for range 100 {
		first, next := FirstID(AuditPrefix, at), FirstID(AuditPrefix, at.Add(time.Millisecond))
		if id := NewID(AuditPrefix, at); id < first || id >= next {
			t.Fatalf("%s is not between %s and %s", id, first, next)
		}
		at = at.Add(987654321 * time.Microsecond)
	}
	if FirstID(AuditPrefix, time.Time{}) != "aud_00000000" {
		t.Error("a time before 1970")
	}
}
