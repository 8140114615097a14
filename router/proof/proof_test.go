package proof_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/internal/testing/need"
	"docent/router/proof"
)

var (
	secret = bytes.Repeat([]byte("s"), 32)
	start  = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
)

// solved is a solution of a fresh challenge.
func solved(t testing.TB, c *proof.Challenges, project string, now time.Time) string {
	t.Helper()
	s := proof.Solve(c.Make(project, 50, now))
	if s == "" {
		t.Fatal("a challenge has no solution")
	}
	return s
}

func refused(t *testing.T, c *proof.Challenges, project, solution string, now time.Time, want error) {
	t.Helper()
	if _, err := c.Use(context.Background(), project, solution, now); !errors.Is(err, want) {
		t.Errorf("it is answered %v, not %v", err, want)
	}
}

func TestASolutionIsTakenOnceInItsProjectWithinItsLife(t *testing.T) {
	t.Parallel()
	c := proof.New(secret, start)
	s := solved(t, c, "docs", start)
	refused(t, c, "other", s, start, proof.ErrInvalid)
	refused(t, c, "docs", "", start, proof.ErrNone)
	give, err := c.Use(context.Background(), "docs", s, start.Add(proof.Life-1))
	if err != nil {
		t.Fatal(err)
	}
	refused(t, c, "docs", s, start.Add(time.Second), proof.ErrUsed)
	give()
	if _, err := c.Use(context.Background(), "docs", s, start.Add(time.Second)); err != nil {
		t.Errorf("what was given back is refused: %v", err)
	}
	refused(t, c, "docs", solved(t, c, "docs", start), start.Add(proof.Life), proof.ErrExpired)
	refused(t, proof.New(bytes.Repeat([]byte("x"), 32), start), "docs", solved(t, c, "docs", start), start, proof.ErrInvalid)
}

// Each part of a solution is bound to the others.
func TestWhatIsChangedInASolutionIsRefused(t *testing.T) {
	t.Parallel()
	c := proof.New(secret, start)
	raw, err := base64.StdEncoding.DecodeString(solved(t, c, "docs", start))
	if err != nil {
		t.Fatal(err)
	}
	var is map[string]any
	if err := json.Unmarshal(raw, &is); err != nil {
		t.Fatal(err)
	}
	salt := is["salt"].(string)
	other := c.Make("docs", 50, start)
	for what, change := range map[string]map[string]any{
		"number": {"number": is["number"].(float64) + 1}, "negative": {"number": -1}, "fraction": {"number": 1.5},
		"algorithm": {"algorithm": "SHA-1"}, "salt": {"salt": strings.Replace(salt, "expires=", "expires=9", 1)},
		"time": {"salt": strings.Replace(salt, "at=", "at=9", 1)}, "spliced": {"salt": strings.TrimSuffix(salt, "&")},
		"signature": {"signature": other.Signature}, "challenge": {"challenge": other.Challenge, "signature": other.Signature},
	} {
		sent := map[string]any{}
		maps.Copy(sent, is)
		maps.Copy(sent, change)
		text, err := json.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Use(context.Background(), "docs", base64.StdEncoding.EncodeToString(text), start); !errors.Is(err, proof.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, s := range []string{"x", "e30=", "bnVsbA==", strings.Repeat("A", 100_000)} {
		refused(t, c, "docs", s, start, proof.ErrInvalid)
	}
	if _, err := c.Use(context.Background(), "docs", base64.StdEncoding.EncodeToString(raw), start); err != nil {
		t.Errorf("unchanged it is refused: %v", err)
	}
}

func TestASolutionOfBeforeARestartIsNotTakenAgain(t *testing.T) {
	t.Parallel()
	c := proof.New(secret, start)
	s := solved(t, c, "docs", start)
	again := proof.New(secret, start.Add(time.Second))
	refused(t, again, "docs", s, start.Add(time.Minute), proof.ErrExpired)
	if _, err := again.Use(context.Background(), "docs", solved(t, again, "docs", start.Add(time.Second)), start.Add(time.Minute)); err != nil {
		t.Error(err)
	}
}

// However many come, memory is bounded and nothing is taken twice, even if the clock goes back.
func TestNothingIsTakenTwiceWithinBoundedMemory(t *testing.T) {
	t.Parallel()
	c := proof.New(secret, start)
	c.Bound(20)
	var all []string
	taken := 0
	for i := range 200 {
		now := start.Add(time.Duration(i) * time.Second)
		if i > 100 {
			now = now.Add(-time.Minute)
		}
		s := solved(t, c, "docs", now)
		all = append(all, s)
		switch _, err := c.Use(context.Background(), "docs", s, now); {
		case err == nil:
			taken++
		case !errors.Is(err, proof.ErrExpired): // of while the clock was back
			t.Fatal(err)
		}
		for _, before := range all {
			if _, err := c.Use(context.Background(), "docs", before, now); err == nil {
				t.Fatalf("after %d, one is taken again", i)
			}
		}
		if n := c.Remembered(); n > 40 {
			t.Fatalf("%d are kept", n)
		}
	}
	if taken < 120 {
		t.Errorf("only %d are taken", taken)
	}
}

func TestOfManyAtOnceOneHasTheSolution(t *testing.T) {
	t.Parallel()
	c := proof.New(secret, start)
	s := solved(t, c, "docs", start)
	var took atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, err := c.Use(context.Background(), "docs", s, start); err == nil {
				took.Add(1)
			}
		})
	}
	all.Wait()
	if n := took.Load(); n != 1 {
		t.Errorf("%d have it", n)
	}
}

// TestAltchaSolvesIt has altcha's own library, in each of its two versions, solve and check what is made here.
func TestAltchaSolvesIt(t *testing.T) {
	t.Parallel()
	need.Installed(t, "altcha's own library", "scripts/install-clients", "../../tests/testdata/clients/node_modules/altcha-lib")
	c := proof.New(secret, time.Now())
	challenges := []proof.Challenge{c.Make("docs", 2000, time.Now()), c.Make("docs", 2000, time.Now())}
	in, err := json.Marshal(challenges)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "altcha.mjs")
	cmd.Dir, cmd.Stdin = filepath.Join("..", "..", "tests", "testdata", "clients"), bytes.NewReader(in)
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, wrong.String())
	}
	solutions := strings.Fields(string(out))
	if len(solutions) != 2 {
		t.Fatalf("it gave %q", out)
	}
	for _, s := range solutions {
		if _, err := c.Use(context.Background(), "docs", s, time.Now()); err != nil {
			t.Errorf("%v: %s", err, s)
		}
	}
}

func BenchmarkUse(b *testing.B) {
	c := proof.New(secret, start)
	s := solved(b, c, "docs", start)
	for b.Loop() {
		give, err := c.Use(context.Background(), "docs", s, start)
		if err != nil {
			b.Fatal(err)
		}
		give()
	}
}
