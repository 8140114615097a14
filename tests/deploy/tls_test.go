package deploy

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"docent/internal/certs/certstest"
	"docent/internal/testing/freeport"
	"docent/tests/harness"
)

// A tlsServer is the real binary with a certificate of a test's own authority.
type tlsServer struct {
	*harness.Server
	ca        *certstest.CA
	host      string
	cert, key string // files
	plain     string // URL of what sends plain HTTP on
	slow      harness.Project
}

func newTLSServer(t *testing.T) *tlsServer {
	t.Helper()
	harness.SkipShort(t)
	address := harness.OwnAddress(t)
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &tlsServer{ca: certstest.NewCA(t), host: host, cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key")}
	s.renew(t, 1)
	redirect := net.JoinHostPort(host, strconv.Itoa(freeport.On(t, host)))
	s.plain = "http://" + redirect
	config := harness.SettingsFile(t, fmt.Sprintf("tls_cert = %q\ntls_key = %q\nredirect_listen = %q\nhsts = \"24h\"\n"+
		"[models.slow]\nprovider = \"scripted\"\nrate = 40\nparts = 60\n", s.cert, s.key, redirect))
	data := filepath.Join(t.TempDir(), "data")
	s.Server = &harness.Server{T: t, Data: data, Listen: address, Flags: []string{"--config", config}, URL: "https://" +
		address, Log: new(harness.LockedBuffer)}
	s.launchTLS()
	t.Cleanup(func() { s.Kill() })
	s.slow = harness.NewProject(t, data, "slow", harness.WriteFiles(t, map[string]string{"a.md": "# Tea\n\nGreen tea is brewed at eighty degrees.\n"}),
		"--model", "slow")
	return s
}

// launchTLS starts the server and waits until it is ready.
func (s *tlsServer) launchTLS() {
	s.T.Helper()
	if err := s.Launch(); err != nil {
		s.T.Fatal(err)
	}
	client := s.client("h2")
	for {
		if res, err := client.Get(s.URL + "/readyz"); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-s.Ended:
			s.T.Fatalf("the server ended:\n%s", s.Log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// renew puts another certificate in the place of the one before.
func (s *tlsServer) renew(t *testing.T, serial int64) {
	t.Helper()
	cert, key := s.ca.Issue(t, serial, 90*24*time.Hour, s.host)
	for file, text := range map[string][]byte{s.cert: cert, s.key: key} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// client is one of HTTP/1.1 or HTTP/2 alone, which trusts the test's authority.
func (s *tlsServer) client(protocol string) *http.Client {
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.ca.Pool()}, Protocols: new(http.Protocols)}
	tr.Protocols.SetHTTP1(protocol == "http/1.1")
	tr.Protocols.SetHTTP2(protocol == "h2")
	s.T.Cleanup(tr.CloseIdleConnections)
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.T.Fatal(err)
	}
	return &http.Client{Transport: tr, Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (s *tlsServer) send(ctx context.Context, client *http.Client, method, path, body string) *http.Response {
	s.T.Helper()
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.T.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.slow.Assistant)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := client.Do(req)
	if err != nil {
		s.T.Fatalf("%v\n%s", err, s.Log)
	}
	s.T.Cleanup(func() { res.Body.Close() })
	return res
}

const slowQuestion = `{"id":"%s","fp":"user-1","messages":[{"id":"m1","role":"user","content":"Tell me slowly.","parts":[{"type":"text","text":"Tell me slowly."}]}]}`

// firstText reads a stream until its first text.
func firstText(t *testing.T, res *http.Response) *bufio.Reader {
	t.Helper()
	r := bufio.NewReader(res.Body)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: the stream ended before its first text: %v", res.Status, err)
		}
		if strings.Contains(line, "part-") {
			return r
		}
	}
}

// Over TLS, with HTTP/1.1 and HTTP/2, a reader in both wire forms takes up an answer that a kill broke off, and one that
// is being read when the server is told to stop is read to its end.
func TestStreamsOverTLSSurviveAKillAndAStop(t *testing.T) {
	t.Parallel()
	s := newTLSServer(t)
	paths := map[string][2]string{ // of the question, and of resuming it
		"v1": {"/discovery/v1/assistant/" + s.slow.Domain + "/message", "/discovery/v1/assistant/" + s.slow.Domain + "/message?chatId="},
		"v2": {"/discovery/v2/assistant/" + s.slow.Domain + "/message", "/discovery/v2/assistant/" + s.slow.Domain + "/message/%s/stream"},
	}
	clients := map[string]*http.Client{"http/1.1": s.client("http/1.1"), "h2": s.client("h2")}
	whole := func(name string, r io.Reader) {
		t.Helper()
		text, err := io.ReadAll(r)
		if err != nil || strings.Count(string(text), "part-59") != 1 {
			t.Errorf("%s: %v, %s", name, err, text)
		}
	}
	for protocol, client := range clients {
		for form, path := range paths {
			chat := form + strings.NewReplacer("/", "", ".", "").Replace(protocol)
			res := s.send(t.Context(), client, "POST", path[0], fmt.Sprintf(slowQuestion, chat))
			if want := map[string]int{"http/1.1": 1, "h2": 2}[protocol]; res.ProtoMajor != want {
				t.Errorf("the protocol is %s", res.Proto)
			}
			if res.Header.Get("Strict-Transport-Security") != "max-age=86400" {
				t.Errorf("%v", res.Header)
			}
			firstText(t, res)
		}
	}
	s.Kill()
	s.launchTLS()
	for protocol := range clients {
		client := s.client(protocol)
		for form, path := range paths {
			chat := form + strings.NewReplacer("/", "", ".", "").Replace(protocol)
			resume := path[1] + chat
			if form == "v2" {
				resume = fmt.Sprintf(path[1], chat)
			}
			res := s.send(t.Context(), client, "GET", resume, "")
			if res.StatusCode != http.StatusOK {
				t.Errorf("%s over %s: %s", form, protocol, res.Status)
				continue
			}
			whole(form+" over "+protocol+", resumed", res.Body)
		}
	}
	var open []io.Reader
	for protocol, client := range clients {
		client.CloseIdleConnections()
		res := s.send(t.Context(), client, "POST", paths["v2"][0], fmt.Sprintf(slowQuestion, "stop"+protocol[:2]))
		open = append(open, firstText(t, res))
	}
	_ = s.Cmd.Process.Signal(os.Interrupt)
	for _, r := range open {
		whole("at a stop", r)
	}
	select {
	case <-s.Ended:
	case <-time.After(time.Minute):
		t.Fatalf("the server does not stop:\n%s", s.Log)
	}
	if code := s.Cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the server ended with status %d:\n%s", code, s.Log)
	}
}

// What goes with TLS: plain HTTP is sent on unless it holds a key, cookies are for TLS alone, a renewed certificate is
// shown without a restart, and the commands of a client trust an authority of one's own.
func TestAServerOverTLS(t *testing.T) {
	t.Parallel()
	s := newTLSServer(t)
	client := s.client("http/1.1")

	plain := s.client("http/1.1")
	plain.Transport = http.DefaultTransport
	res, err := plain.Get(s.plain + "/console?a=b")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusPermanentRedirect || res.Header.Get("Location") != s.URL+"/console?a=b" {
		t.Errorf("%s, to %s", res.Status, res.Header.Get("Location"))
	}
	res, err = plain.Post(s.plain+"/v2/agent/slow/job", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if res.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), `"https_required"`) {
		t.Errorf("%s: %s", res.Status, text)
	}
	res, err = plain.Get("http://" + strings.TrimPrefix(s.URL, "https://") + "/healthz") // plain HTTP where TLS is spoken
	if err != nil {
		t.Fatal(err)
	}
	text, _ = io.ReadAll(res.Body)
	res.Body.Close()
	if res.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "begin the URL with https://") {
		t.Errorf("%s: %s", res.Status, text)
	}

	link := regexp.MustCompile(`https://\S+`).FindString(harness.Docent(t, "console", "--data", s.Data))
	if !strings.HasPrefix(link, s.URL) {
		t.Fatalf("the console's link is %q", link)
	}
	entered := false
	for range 3 { // the link, and where it leads
		res, err = client.Get(link)
		if err != nil {
			t.Fatal(err)
		}
		text, _ = io.ReadAll(res.Body)
		res.Body.Close()
		for _, c := range res.Cookies() {
			if !strings.HasPrefix(c.Name, "__Host-") || !c.Secure || !c.HttpOnly {
				t.Errorf("the cookie %s is not for TLS and this host alone", c)
			}
		}
		if form := regexp.MustCompile(`name="(\w+)" value="([^"]*)"`).FindAllStringSubmatch(string(text), -1); res.StatusCode == 200 &&
			!entered && len(form) > 0 && strings.Contains(string(text), `method="post"`) {
			values := make(map[string][]string)
			for _, field := range form {
				values[field[1]] = []string{field[2]}
			}
			req, _ := http.NewRequestWithContext(t.Context(), "POST", res.Request.URL.String(), strings.NewReader(encodeForm(values)))
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Origin", s.URL)
			posted, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			posted.Body.Close()
			for _, c := range posted.Cookies() {
				entered = entered || c.Name == "__Host-docent_session" && c.Secure
			}
			break
		}
		if next := res.Header.Get("Location"); next != "" {
			link = s.URL + strings.TrimPrefix(next, s.URL)
		}
		for _, c := range res.Cookies() {
			entered = entered || c.Name == "__Host-docent_session"
		}
	}
	if !entered {
		t.Errorf("nobody is signed in; the last page: %s %s", res.Status, text)
	}

	serial := func() int64 {
		c, err := tls.Dial("tcp", strings.TrimPrefix(s.URL, "https://"), &tls.Config{RootCAs: s.ca.Pool()})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 1 {
		t.Errorf("certificate %d is shown", got)
	}
	s.renew(t, 2)
	if err := s.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); serial() != 2; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the renewed certificate is not shown:\n%s", s.Log)
		}
	}

	root := filepath.Join(t.TempDir(), "root.pem")
	if err := os.WriteFile(root, s.ca.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := harness.TryDocent(t, "job", "list", "--project", "slow", "--url", s.URL, "--key",
		s.slow.Admin); err == nil {
		t.Errorf("a client trusts a certificate that nobody has told it of: %s", out)
	}
	harness.Setenv(t, "SSL_CERT_FILE", root)
	harness.Docent(t, "job", "list", "--project", "slow", "--url", s.URL, "--key", s.slow.Admin)
	harness.Docent(t, "health", "--data", s.Data, "--timeout", "1m")
}

func encodeForm(values map[string][]string) string {
	var parts []string
	for name, value := range values {
		parts = append(parts, name+"="+value[0])
	}
	return strings.Join(parts, "&")
}
