package deploy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docent/cmd/docent/config"
	"docent/tests/harness"
)

// What the operator's listener serves without a key: metrics, health and /debug. The public listener has no /debug,
// however it is spelled.
func TestOnlyTheOperatorsListenerHasDebug(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	operator := harness.OwnAddress(t)
	config := filepath.Join(t.TempDir(), "docent.toml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "operator_listen = %q\n", operator), 0o600); err != nil {
		t.Fatal(err)
	}
	server := harness.NewServer(t, data, "--config", config)
	for path, want := range map[string]string{"/": "/debug/pprof/", "/healthz": "ok", "/readyz": "ready",
		"/metrics": "docent_queue_seconds", "/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "goroutine profile",
		"/debug/build": "path\t", "/debug/pprof/symbol": "num_symbols"} {
		if status, body := harness.Served(t, http.DefaultClient, "http://"+operator+path); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s of the operator's listener: %d %.100q, want %q", path, status, body, want)
		}
	}
	// The command line may hold a password of the database.
	for _, path := range []string{"/debug/pprof/cmdline", "/debug/vars", "/v1/agent", "/console"} {
		if status, body := harness.Served(t, http.DefaultClient, "http://"+operator+path); status != 404 {
			t.Errorf("%s of the operator's listener: %d %.100q", path, status, body)
		}
	}
	for _, method := range []string{"GET", "POST", "HEAD", "OPTIONS"} {
		for _, target := range []string{"/debug", "/debug/", "/debug/pprof", "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline",
			"/debug/pprof/profile?seconds=1", "/debug/build", "/debug/vars", "//debug/pprof/", "/./debug/pprof/", "/healthz/../debug/pprof/",
			"/%64ebug/pprof/", "/debug%2Fpprof%2F", "/%2e/debug/pprof/", "/DEBUG/pprof/", "/debug/pprof/heap/", "/debug;x/pprof/",
			"/console/../debug/pprof/heap", "/widget/..%2fdebug/pprof/heap",
			"http://" + server.Listen + "/debug/pprof/", "http://" + operator + "/debug/pprof/"} {
			status, body := rawRequest(t, server.Listen, method, target, operator)
			if status != 404 {
				t.Errorf("%s %s of the public listener: %d %.100q", method, target, status, body)
			}
			if strings.Contains(body, "goroutine") || strings.Contains(body, "pprof/") && !strings.Contains(body, `"code"`) {
				t.Errorf("%s %s of the public listener shows profiles: %.200q", method, target, body)
			}
		}
	}
	server.Stop()
	if log := server.Log.String(); strings.Contains(log, "requires no key") || strings.Contains(log, "deprecated") {
		t.Errorf("a listener on this machine is warned of:\n%s", log)
	}
}

// rawRequest sends a request's line as it is.
func rawRequest(t testing.TB, address, method, target, host string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", method, target, host)
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// A setting of an earlier version has no effect. Who still sets it is told once what to use, and the server starts.
func TestARemovedSettingIsTold(t *testing.T) {
	t.Parallel()
	settings := harness.SettingsFile(t, "profile_listen = '127.0.0.1:1'")
	const told = "the setting profile_listen is gone and has no effect: remove the line: operator_listen"
	server := harness.NewServer(t, filepath.Join(t.TempDir(), "data"), "--config", settings)
	server.Stop()
	if log := server.Log.String(); strings.Count(log, told) != 1 {
		t.Errorf("the log does not tell once %q:\n%s", told, log)
	}
	c, err := config.Load(settings, harness.NoEnvironment, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lines := c.Removed(); len(lines) != 1 || !strings.HasPrefix(lines[0], told) {
		t.Errorf("%q", lines)
	}
}
