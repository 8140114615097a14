package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func status(t *testing.T, f Finding, want Status, text string) {
	t.Helper()
	if f.Status != want || !strings.Contains(f.Found+" "+f.Fix, text) {
		t.Errorf("%s: %q, %q; want %s with %q", f.Status, f.Found, f.Fix, want, text)
	}
	if (f.Status == Problem || f.Status == Warning) && f.Fix == "" {
		t.Errorf("%q has no fix", f.Found)
	}
}

// A check that hangs or breaks holds up none of the others.
func TestChecksAreMadeTogetherAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		wait := func(d time.Duration) func(context.Context) Finding {
			return func(context.Context) Finding { time.Sleep(d); return Fine("done") }
		}
		hangs := One("hangs", wait(time.Hour))
		hangs.Limit = 3 * time.Second
		r := Examine(t.Context(), []Check{One("a", wait(5*time.Second)), hangs, One("b", wait(5*time.Second)),
			One("breaks", func(context.Context) Finding { panic("ow") })})
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("it took %s", took)
		}
		if r.OK || r.Problems != 2 || len(r.Findings) != 4 || r.Findings[0].Check != "a" || r.Findings[0].Status != OK ||
			r.Findings[1].Status != Problem || !strings.Contains(r.Findings[1].Found, "3s") || r.Findings[3].Status != Problem {
			t.Errorf("%+v", r)
		}
		var b bytes.Buffer
		if err := r.Print(&b, false); err != nil || !strings.Contains(b.String(), "PROBLEM  hangs") || !strings.Contains(b.String(), "4 checks: 2 problems, 0 warnings") {
			t.Errorf("%v\n%s", err, &b)
		}
		time.Sleep(time.Hour) // what hangs ends with the bubble
	})
}

func TestOwnersAndModesOfAFolder(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o700), os.WriteFile(filepath.Join(dir, "journal.db"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	one := func(want Status, text string) {
		t.Helper()
		found := Folder(dir, "docent")
		if len(found) != 1 {
			t.Fatalf("%+v", found)
		}
		status(t, found[0], want, text)
	}
	one(OK, "alone")
	if err := os.Chmod(filepath.Join(dir, "journal.db"), 0o644); err != nil {
		t.Fatal(err)
	}
	one(Warning, "chmod -R go-rwx "+filepath.Join(dir, "journal.db"))
	if err := errors.Join(os.Chmod(filepath.Join(dir, "journal.db"), 0o600), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	one(Problem, "chmod go-w")
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(filepath.Join(dir, "journal.db"), 54321, 54321); err != nil {
			t.Fatal(err)
		}
		one(Problem, "chown -R root")
	}
	missing := Folder(filepath.Join(dir, "none"), "docent")
	status(t, missing[0], Warning, "docent init")
}

func TestLimitsOfTheMachine(t *testing.T) {
	for i, c := range []struct {
		found Finding
		want  Status
		text  string
	}{
		{volume{free: 10 << 20, total: 1 << 30}.space("d"), Problem, "10.0 MiB free"},
		{volume{free: 300 << 20, total: 1 << 30}.space("d"), Warning, "300.0 MiB"},
		{volume{free: 2 << 30, total: 100 << 30}.space("d"), Warning, "2.0 GiB"},
		{volume{free: 50 << 30, total: 100 << 30, files: 10, all: 1000}.space("d"), Problem, "inodes"},
		{volume{free: 50 << 30, total: 100 << 30, files: 2000, all: 1_000_000}.space("d"), Warning, "2000 more files"},
		{volume{free: 50 << 30, total: 100 << 30, files: 900_000, all: 1_000_000}.space("d"), OK, "50.0 GiB"},
		{kindOf("tmpfs", "d"), Warning, "in memory"}, {kindOf("nfs", "d"), Problem, "network"},
		{kindOf("fuse", "d"), Warning, "user space"}, {kindOf("overlayfs", "d"), Warning, "mount a volume"}, {kindOf("ext4", "d"), OK, "ext4"},
		{OpenFiles(1024, 20_000), Warning, "LimitNOFILE=65536"}, {OpenFiles(65536, 20_000), OK, ""}, {OpenFiles(0, 1), Skipped, ""},
		{OpenFiles(100_000, 200_000), Warning, "LimitNOFILE=200512"},
		{Memory(64<<20, 1<<20), Warning, "256 MB"}, {Memory(1<<30, 1<<29), OK, ""},
		{Memory(0, 1), Skipped, ""},
		{latency([]time.Duration{time.Millisecond}), OK, "1ms"}, {latency([]time.Duration{50 * time.Millisecond}), Warning, "faster disk"},
		{latency([]time.Duration{time.Second}), Problem, "each question"}, {latency(nil), Skipped, ""},
	} {
		t.Logf("%d", i)
		status(t, c.found, c.want, c.text)
	}
	dir := t.TempDir()
	if f := Syncs(t.Context(), dir); !strings.HasPrefix(f.Found, "a sync takes") { // how long is the machine's
		t.Errorf("%+v", f)
	}
	status(t, Syncs(t.Context(), "/no/such/folder"), Skipped, "no folder")
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAClockThatIsWrongOrJumps(t *testing.T) {
	for _, c := range []struct {
		off, jump time.Duration
		want      Status
		text      string
	}{
		{0, 0, OK, "as elsewhere"}, {-10 * time.Second, 0, Warning, "set-ntp"}, {time.Hour, 0, Problem, "1h0m0s off"},
		{0, -time.Minute, Warning, "jumped by -1m"},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now().AddDate(26, 0, 0) // bubbles begin in 2000
			began := time.Now()
			there := func() time.Time { return start.Add(time.Since(began)) }
			here := func() time.Time {
				now := there().Add(c.off)
				if time.Since(began) > 500*time.Millisecond {
					now = now.Add(c.jump)
				}
				return now
			}
			client := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 404, Header: http.Header{"Date": {there().UTC().Format(http.TimeFormat)}}, Body: io.NopCloser(strings.NewReader(""))}, nil
			})}
			found := Clock(t.Context(), here, client, []string{"https://models.example.com"})
			if len(found) != 1 {
				t.Fatalf("%+v", found)
			}
			status(t, found[0], c.want, c.text)
		})
	}
	found := Clock(t.Context(), time.Now, &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("no network")
	})}, []string{"https://models.example.com"})
	status(t, found[0], OK, "no other clock")
}

// served is a server with probes behind proxies.
func served(t *testing.T, proxies ...func(http.Handler) http.Handler) (*Probes, *httptest.Server) {
	t.Helper()
	probes := new(Probes)
	server := httptest.NewServer(probes.Before(http.NotFoundHandler()))
	t.Cleanup(server.Close)
	for _, proxy := range proxies {
		target, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		through := httputil.NewSingleHostReverseProxy(target)
		through.FlushInterval = -1
		server = httptest.NewServer(proxy(through))
		t.Cleanup(server.Close)
	}
	return probes, server
}

func transparent(next http.Handler) http.Handler { return next }

// buffering collects an answer before it passes it on.
func buffering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	})
}

func TestTheWayToTheServer(t *testing.T) {
	t.Parallel()
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	type want struct {
		check string
		is    Status
		text  string
	}
	for name, c := range map[string]struct {
		proxies []func(http.Handler) http.Handler
		trusted []netip.Prefix
		want    []want
	}{
		"none": {nil, nil, []want{{"", OK, "leads to this server"}, {"proxy buffering", OK, "part by part"}, {"trusted proxies", OK, "no proxy"}}},
		"a good one": {[]func(http.Handler) http.Handler{transparent}, loopback,
			[]want{{"", OK, ""}, {"proxy buffering", OK, ""}, {"trusted proxies", OK, "is trusted"}}},
		"one that is not trusted": {[]func(http.Handler) http.Handler{transparent}, nil,
			[]want{{"", OK, ""}, {"proxy buffering", OK, ""}, {"trusted proxies", Problem, `trusted_proxies = ["127.0.0.1"]`}}},
		"one that buffers": {[]func(http.Handler) http.Handler{buffering}, loopback,
			[]want{{"", OK, ""}, {"proxy buffering", Problem, "proxy_buffering off"}, {"trusted proxies", OK, ""}}},
		"none, and one is trusted": {nil, loopback, []want{{"", OK, ""}, {"proxy buffering", OK, ""}, {"trusted proxies", Warning, "X-Forwarded-For"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			probes, server := served(t, c.proxies...)
			found := Public(t.Context(), Way{URL: server.URL + "/", Nonce: probes.New(), Trusted: c.trusted})
			if len(found) != len(c.want) {
				t.Fatalf("%+v", found)
			}
			for i, w := range c.want {
				if status(t, found[i], w.is, w.text); found[i].Check != w.check {
					t.Errorf("%+v", found[i])
				}
			}
		})
	}
}

func TestAnAddressThatDoesNotLeadToTheServer(t *testing.T) {
	t.Parallel()
	probes, server := served(t)
	_, other := served(t)
	status(t, Public(t.Context(), Way{URL: other.URL, Nonce: probes.New()})[0], Problem, "404")
	hello := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "data: hello\n\n") }))
	defer hello.Close()
	status(t, Public(t.Context(), Way{URL: hello.URL, Nonce: probes.New()})[0], Problem, "another server's")
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	status(t, Public(t.Context(), Way{URL: gone.URL, Nonce: probes.New()})[0], Problem, "proxy's log")
	gone.Close()
	status(t, Public(t.Context(), Way{URL: gone.URL, Nonce: probes.New()})[0], Warning, "cannot be reached from this machine")
	selfSigned := httptest.NewTLSServer(probes.Before(http.NotFoundHandler()))
	defer selfSigned.Close()
	status(t, Public(t.Context(), Way{URL: selfSigned.URL, Nonce: probes.New()})[0], Problem, "certificate")
	// Who does not know the word of a probe gets none.
	resp, err := http.Get(server.URL + probePath + "guessed")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("a guess is answered %s", resp.Status)
	}
}

func TestAProbeEndsAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes Probes
		nonce := probes.New()
		time.Sleep(59 * time.Second)
		if !probes.has(nonce) || probes.has("other") {
			t.Error("it is gone")
		}
		time.Sleep(2 * time.Second)
		if probes.has(nonce) {
			t.Error("it is still there")
		}
		probes.New()
		if len(probes.known) != 1 {
			t.Error("old ones are kept")
		}
	})
}

func TestTheCertificateOfAServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	until := server.Certificate().NotAfter
	status(t, Certificate(t.Context(), server.URL, until.AddDate(-1, 0, 0)), OK, "good until")
	status(t, Certificate(t.Context(), server.URL, until.AddDate(0, 0, -5)), Warning, "in 5 days")
	status(t, Certificate(t.Context(), server.URL, until.Add(time.Hour)), Problem, "expired")
	elsewhere := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	status(t, Certificate(t.Context(), elsewhere, until.AddDate(-1, 0, 0)), Problem, "not for localhost")
	status(t, Certificate(t.Context(), "http://x", until), Skipped, "not https")
}
