package deploy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"html"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"docent/api"
	"docent/internal/testing/need"
	"docent/tests/harness"
)

// A proxyProgram is a real proxy, which is run with the files of deploy/proxies. In these only what an operator replaces
// is replaced, as their first lines say.
type proxyProgram struct {
	name  string
	find  string   // its program, in the cache of scripts/install-proxies
	files []string // in deploy/proxies/NAME
	// setUp writes what stands around the files, and says how the proxy is run.
	setUp func(p *proxy) *exec.Cmd
	// mark is written into the files to tell one state of the configuration from the next: all answers bear it.
	mark func(p *proxy, text string) string
	// reload has the running proxy take the files as they are now.
	reload func(p *proxy) error
	waits  bool // for a server that is not there for a moment
	limits bool // the bodies of requests by itself
}

// A proxy is one that runs.
type proxy struct {
	*proxyProgram
	t            *testing.T
	dir          string
	upstream     string // HOST:PORT
	plain, https string // HOST:PORT where it listens
	url          string // of the proxy, for clients from 127.0.0.4
	roots        string // the file that its clients trust
	generation   int
	admin        string // of Caddy
	cmd          *exec.Cmd
	log          *harness.LockedBuffer
}

var proxies = []*proxyProgram{
	{name: "nginx", find: harness.NginxProgram, files: []string{"docent.conf"}, limits: true,
		setUp: func(p *proxy) *exec.Cmd {
			p.write("nginx.conf", fmt.Sprintf("daemon off;\npid %[1]s/pid;\nerror_log stderr;\nuser root;\nworker_processes 2;\nevents {}\n"+
				"http {\naccess_log off;\ngzip on;\ngzip_types *;\ngzip_min_length 1;\n"+ // as others on the machine may want it
				"client_body_temp_path %[1]s/body;\nproxy_temp_path %[1]s/proxy;\nfastcgi_temp_path %[1]s/fastcgi;\n"+
				"uwsgi_temp_path %[1]s/uwsgi;\nscgi_temp_path %[1]s/scgi;\ninclude %[1]s/docent.conf;\n}\n", p.dir))
			return exec.Command(p.program(), "-e", "stderr", "-p", p.dir, "-c", p.dir+"/nginx.conf")
		},
		mark: func(p *proxy, text string) string {
			return p.replaced(text, "listen 80;", "listen "+p.plain+";", "listen [::]:80;", "",
				"listen 443 ssl http2;", "listen "+p.https+" ssl http2;", "listen [::]:443 ssl http2;", "",
				"gzip off;", fmt.Sprintf("gzip off; add_header X-Generation %d always;", p.generation))
		},
		reload: func(p *proxy) error { return p.cmd.Process.Signal(syscall.SIGHUP) }},
	{name: "caddy", find: "caddy-*/caddy", files: []string{"Caddyfile"}, waits: true,
		setUp: func(p *proxy) *exec.Cmd {
			p.admin = harness.OwnAddress(p.t)
			_, port, _ := net.SplitHostPort(p.https)
			_, plain, _ := net.SplitHostPort(p.plain)
			// For localhost Caddy makes the certificate itself.
			p.write("around", fmt.Sprintf("{\nadmin %[1]s {\norigins %[1]s\n}\nskip_install_trust\nhttp_port %[2]s\nhttps_port %[3]s\n}\nimport %[4]s/Caddyfile\n",
				p.admin, plain, port, p.dir))
			p.roots = filepath.Join(p.dir, "caddy/pki/authorities/local/root.crt")
			return exec.Command(p.program(), "run", "--config", p.dir+"/around", "--adapter", "caddyfile")
		},
		mark: func(p *proxy, text string) string {
			host, _, _ := net.SplitHostPort(p.https)
			return p.replaced(text, "\treverse_proxy", fmt.Sprintf("\tbind %s\n\theader X-Generation %d\n\treverse_proxy", host,
				p.generation))
		},
		reload: func(p *proxy) error {
			out, err := p.environment(exec.Command(p.program(), "reload", "--config", p.dir+"/around", "--adapter", "caddyfile",
				"--address", p.admin)).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		}},
	{name: "traefik", find: "traefik-*/traefik", files: []string{"traefik.yml", "docent.yml"}, waits: true,
		setUp: func(p *proxy) *exec.Cmd {
			return exec.Command(p.program(), "--configFile="+p.dir+"/traefik.yml")
		},
		mark: func(p *proxy, text string) string {
			text = strings.NewReplacer(`":80"`, p.plain, `":443"`, p.https, "/etc/traefik/dynamic", p.dir+"/dynamic",
				"middlewares: [docent-wait]", "middlewares: [docent-wait, generation]").Replace(text)
			return p.replaced(text, "\n  middlewares:\n", fmt.Sprintf("\n  middlewares:\n    generation:\n      headers:\n"+
				"        customResponseHeaders: {X-Generation: \"%d\"}\n", p.generation))
		},
		reload: func(*proxy) error { return nil }}, // it watches its folder
}

// program is where the proxy's program is.
func (p *proxyProgram) program() string { return harness.InstalledProxy(p.find) }

// start runs the proxy before a server, and waits until it answers.
func (p *proxyProgram) start(t *testing.T, upstream string) *proxy {
	t.Helper()
	dir, err := os.MkdirTemp("", "proxy") // a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	run := &proxy{proxyProgram: p, t: t, dir: dir, upstream: upstream, plain: harness.OwnAddress(t),
		https: harness.OwnAddress(t), roots: filepath.Join(dir, "fullchain.pem"), log: new(harness.LockedBuffer)}
	host, _, _ := net.SplitHostPort(run.https)
	_, port, _ := net.SplitHostPort(run.plain)
	run.plain = net.JoinHostPort(host, port) // one host for both
	run.url = run.from("127.0.0.4")
	writeCertificate(t, dir)
	run.cmd = run.environment(run.setUp(run))
	run.cmd.Stdout, run.cmd.Stderr = run.log, run.log
	run.configure()
	if err := run.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.cmd.Process.Signal(syscall.SIGTERM)
		stop := time.AfterFunc(5*time.Second, func() { _ = run.cmd.Process.Kill() }) // streams may still be open
		defer stop.Stop()
		_ = run.cmd.Wait()
	})
	run.awaitGeneration()
	return run
}

func (p *proxy) environment(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(os.Environ(), "HOME="+p.dir, "XDG_DATA_HOME="+p.dir, "XDG_CONFIG_HOME="+p.dir)
	return cmd
}

func (p *proxy) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path+".new", []byte(text), 0o644),
		os.Rename(path+".new", path)); err != nil {
		p.t.Fatal(err)
	}
}

// replaced replaces pairs of old and new. An old text that a file no longer has would leave the test without it.
func (p *proxy) replaced(text string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// configure writes the files of deploy/proxies with the addresses of this test.
func (p *proxy) configure() {
	p.t.Helper()
	p.generation++
	for _, name := range p.files {
		text := p.replaced(p.mark(p, deployed(p.t, p.name, name)), "127.0.0.1:8080", p.upstream,
			"/etc/letsencrypt/live/docent.example.com", p.dir, "docent.example.com", "localhost")
		if name == "docent.yml" {
			name = "dynamic/" + name
		}
		p.write(name, text)
	}
}

func deployed(t *testing.T, folder, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy/proxies", folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// awaitGeneration waits until the proxy answers by the files as they are now.
func (p *proxy) awaitGeneration() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	for {
		if resp, err := p.get(ctx); err == nil {
			resp.Body.Close()
			if resp.Header.Get("X-Generation") == fmt.Sprint(p.generation) {
				return
			}
		}
		select {
		case <-ctx.Done():
			p.t.Fatalf("%s does not answer by its configuration:\n%s", p.name, p.log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *proxy) get(ctx context.Context) (*http.Response, error) {
	roots, err := os.ReadFile(p.roots)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(roots)
	once := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/no-such-page", nil)
	if err != nil {
		return nil, err
	}
	return once.RoundTrip(req)
}

// again has the proxy read a changed configuration, and waits until it goes by it.
func (p *proxy) again() error {
	p.configure()
	if err := p.reload(p); err != nil {
		return err
	}
	p.awaitGeneration()
	return nil
}

// from is an address of the proxy whose clients come from an address of their own.
func (p *proxy) from(address string) string {
	there, _ := url.Parse(harness.FromAddress(p.t, "http://"+p.https, address))
	return "https://localhost:" + there.Port()
}

// client trusts the proxy's certificate. It speaks HTTP/2, or HTTP/1.1 alone, and takes compressed answers as they are.
func (p *proxy) client(http2 bool) *http.Client {
	p.t.Helper()
	roots, err := os.ReadFile(p.roots)
	if err != nil {
		p.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(roots)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, Protocols: protocols, DisableCompression: true}
	p.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 2 * time.Minute}
}

// writeCertificate makes a certificate for localhost, as the files of the configuration name it.
func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"},
		DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"fullchain.pem": {Type: "CERTIFICATE", Bytes: der},
		"privkey.pem": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// eachProxy runs a test behind each of the proxies.
func eachProxy(t *testing.T, test func(t *testing.T, p *proxyProgram)) {
	t.Parallel()
	for _, p := range proxies {
		t.Run(p.name, func(t *testing.T) {
			need.Peer(t, "the real proxies", "scripts/install-proxies", p.program())
			t.Parallel()
			test(t, p)
		})
	}
}

// behind are the settings of a server that stands behind a proxy of the same machine.
const behind = "trusted_proxies = [\"127.0.0.1\"]\n"

// TestChatClientsBehindRealProxies drives the server with the real chat hooks of both stream forms, through each proxy:
// with resume after the server was killed, and after the proxy was reloaded in the midst of an answer.
func TestChatClientsBehindRealProxies(t *testing.T) {
	eachProxy(t, func(t *testing.T, program *proxyProgram) {
		const dir = "../testdata/clients"
		need.Peer(t, "the real chat clients", "scripts/install-clients", dir+"/node_modules/ai7")
		for _, client := range [][]string{{"v4.mjs"}, {"modern.mjs", "7"}} {
			t.Run(strings.Join(client, " "), func(t *testing.T) {
				t.Parallel()
				config := harness.SettingsFile(t, behind+"[models.slow]\nprovider = \"scripted\"\nrate = 40\nparts = 60\n"+
					harness.EndlessModel)
				server, data, harbour, slow := harness.NewChatServerWith(t, config)
				locked := harness.NewProject(t, data, "locked", harness.WriteFiles(t, map[string]string{"a.md": "# A\n\nText.\n"}),
					"--model", "slow", "--require-thread-key")
				endless := harness.NewEndlessProject(t, data)
				front := program.start(t, server.Listen)
				operate := harness.ChatControl(server, harbour, slow)
				operate.HandleFunc("POST /reload", func(w http.ResponseWriter, _ *http.Request) {
					if err := front.again(); err != nil {
						http.Error(w, err.Error(), http.StatusInternalServerError)
					}
				})
				control := httptest.NewServer(operate)
				defer control.Close()
				settings, err := json.Marshal(map[string]any{"url": front.from("127.0.0.2"), "otherUrl": front.from("127.0.0.3"),
					"domain": harbour.Domain, "key": harbour.Assistant, "slowDomain": slow.Domain, "slowKey": slow.Assistant,
					"lockedDomain": locked.Domain, "lockedKey": locked.Assistant,
					"endlessDomain": endless.Domain, "endlessKey": endless.Assistant, "control": control.URL, "behindProxy": true})
				if err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), "node", client...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "DOCENT_CLIENTS="+string(settings), "NODE_EXTRA_CA_CERTS="+front.roots)
				out, err := cmd.CombinedOutput()
				t.Logf("%s", out)
				if err != nil {
					t.Errorf("%v\nthe proxy's log:\n%s\nthe server's log:\n%s", err, front.log, server.Log)
				}
			})
		}
	})
}

// askThrough puts a question in one of the stream forms, and gives the answer as it comes.
func askThrough(t *testing.T, client *http.Client, at, version string, p harness.Project,
	headers ...string) *http.Response {
	t.Helper()
	const body = `{"fp":"anonymous","messages":[{"id":"1","role":"user","content":"When does the ferry leave?",` +
		`"parts":[{"type":"text","text":"When does the ferry leave?"}]}]}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		at+"/discovery/"+version+"/assistant/"+p.Domain+"/message", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.Assistant)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// readTo reads a stream up to the line that has a text.
func readTo(t *testing.T, lines *bufio.Reader, text string) {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			t.Fatalf("the stream ended before %q: %v", text, err)
		}
	}
}

// TestAnswersComePieceByPieceThroughProxies has the second half of each answer written only after the reader has seen the
// first: a proxy that collects or compresses answers would wait for ever.
func TestAnswersComePieceByPieceThroughProxies(t *testing.T) {
	eachProxy(t, func(t *testing.T, program *proxyProgram) {
		model := harness.NewGatedModel(t)
		server, data, _, _ := harness.NewChatServerWith(t, harness.SettingsFile(t, behind+fmt.Sprintf("[models.slow]\nprovider = \"openai\"\n"+
			"base_url = %q\nmodel = \"gated\"\nrewrite = \"off\"\nclaims = \"off\"\nfallback = false\n", model.URL+"/v1")))
		p := harness.NewProject(t, data, "gated", harness.WriteFiles(t, map[string]string{
			"ferries.md": "# Ferries\n\nThe ferry leaves every hour from pier two.\n"}), "--model", "slow")
		front := program.start(t, server.Listen)
		reloaded := false
		for _, http2 := range []bool{true, false} {
			client := front.client(http2)
			for _, version := range []string{"v1", "v2"} {
				resp := askThrough(t, client, front.url, version, p, "Accept-Encoding", "gzip, br, zstd")
				if got := resp.Header.Get("Content-Encoding"); resp.StatusCode != http.StatusOK || got != "" ||
					http2 != (resp.ProtoMajor == 2) {
					t.Fatalf("%s over %s: %s, Content-Encoding %q", version, resp.Proto, resp.Status, got)
				}
				lines := bufio.NewReader(resp.Body)
				readTo(t, lines, "every hour")
				if !reloaded { // in the midst of an answer, which goes on
					reloaded = true
					if err := front.again(); err != nil {
						t.Fatal(err)
					}
				}
				model.Second <- struct{}{}
				readTo(t, lines, "pier two")
				readTo(t, lines, "threadId")
			}
		}
	})
}

// TestAProxyPassesOnWhoAsks has limits count each reader by his own address, which none can choose; bodies refused
// that the server would refuse; plain HTTP led to HTTPS; an editor's session; and a sign-in whose cookie is for TLS alone
// and which no other site can begin.
func TestAProxyPassesOnWhoAsks(t *testing.T) {
	eachProxy(t, func(t *testing.T, program *proxyProgram) {
		server, data, harbour, _ := harness.NewChatServerWith(t, harness.SettingsFile(t, behind+"[models.slow]\nprovider = \"scripted\"\nparts = 2\n"))
		limited := harness.NewProject(t, data, "limited", harness.WriteFiles(t,
			map[string]string{"a.md": "# Ferry\n\nThe ferry leaves.\n"}), "--limit-ip-day", "2")
		front := program.start(t, server.Listen)
		client := front.client(true)

		one, other := front.from("127.0.0.2"), front.from("127.0.0.3")
		status := func(at string, headers ...string) int {
			resp := askThrough(t, client, at, "v2", limited, headers...)
			_, _ = io.Copy(io.Discard, resp.Body)
			return resp.StatusCode
		}
		got := []int{status(one), status(one), status(one), status(one, "X-Forwarded-For", "192.0.2.9"), status(other)}
		if fmt.Sprint(got) != "[200 200 429 429 200]" {
			t.Errorf("two readers who may ask twice were answered %v", got)
		}

		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			front.url+"/discovery/v1/search/"+harbour.Domain, bytes.NewReader(bytes.Repeat([]byte("x"), 1<<20+1)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+harbour.Assistant)
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if text := harness.TextOf(t, resp); resp.StatusCode != http.StatusRequestEntityTooLarge ||
			program.limits == strings.Contains(text, `"requestId"`) {
			t.Errorf("a body that is too long: %s: %s", resp.Status, text)
		}

		plain := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		there, _ := url.Parse(harness.FromAddress(t, "http://"+front.plain, "127.0.0.2"))
		if resp, err := plain.Get("http://localhost:" + there.Port() + "/console?a=b"); err != nil {
			t.Error(err)
		} else if to := resp.Header.Get("Location"); resp.Body.Close() != nil || resp.StatusCode/100 != 3 ||
			!strings.HasPrefix(to, "https://localhost") || !strings.HasSuffix(to, "/console?a=b") {
			t.Errorf("plain HTTP: %s to %q", resp.Status, to)
		}

		editor, err := harness.Connect(t, &mcp.StreamableClientTransport{Endpoint: front.url + "/mcp/" + harbour.Domain,
			HTTPClient: &http.Client{Transport: keyed{client.Transport, harbour.Assistant}}})
		if err != nil {
			t.Fatal(err)
		}
		if tools, err := editor.ListTools(t.Context(), nil); err != nil || len(tools.Tools) == 0 {
			t.Errorf("the tools of an editor: %v, %v", tools, err)
		}
		signsIn(t, front, harbour)
	})
}

// keyed sends a key with each request.
type keyed struct {
	http.RoundTripper
	key string
}

func (k keyed) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+k.key)
	return k.RoundTripper.RoundTrip(req)
}

// signsIn signs in to the console with an admin key, through a proxy.
func signsIn(t *testing.T, front *proxy, p harness.Project) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := front.client(true)
	browser.Jar = jar
	browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	send := func(method, path, origin string, form url.Values) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), method, front.url+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/html")
		if method == http.MethodPost {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Origin", origin)
		}
		resp, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	m := harness.FormToken.FindStringSubmatch(harness.TextOf(t, send(http.MethodGet, "/login", "", nil)))
	if m == nil {
		t.Fatal("the page of the sign-in has no form")
	}
	form := url.Values{"token": {html.UnescapeString(m[1])}, "key": {p.Admin}}
	if resp := send(http.MethodPost, "/login", "https://elsewhere.example.com", form); resp.StatusCode != http.StatusForbidden {
		t.Errorf("another site signed in: %s", resp.Status)
	}
	resp := send(http.MethodPost, "/login", front.url, form)
	secure := false
	for _, c := range resp.Cookies() {
		secure = secure || strings.HasPrefix(c.Name, "__Host-") && c.Secure && c.HttpOnly
	}
	if resp.StatusCode != http.StatusSeeOther || !secure {
		t.Errorf("the sign-in: %s, cookies %v: %s", resp.Status, resp.Cookies(), harness.TextOf(t, resp))
	}
	if page := harness.TextOf(t, send(http.MethodGet, "/login", "", nil)); !strings.Contains(page, "Signed in") {
		t.Errorf("nobody is signed in: %s", page)
	}
}

// TestAProxyRepeatsNothingThatWasAccepted has the server take a question and die before it answers: it must not get it a
// second time. A question that finds no server waits for the next one, where the proxy can do that.
func TestAProxyRepeatsNothingThatWasAccepted(t *testing.T) {
	eachProxy(t, func(t *testing.T, program *proxyProgram) {
		var taken atomic.Int32
		dying := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method == http.MethodPost {
				_, _ = io.Copy(io.Discard, req.Body)
				taken.Add(1)
				panic(http.ErrAbortHandler)
			}
		}))
		defer dying.Close()
		front := program.start(t, dying.Listener.Addr().String())
		anybody := harness.Project{Domain: "docs.example.com", Assistant: api.NewSecret(api.AssistantKey)}
		for range 2 { // the second on a connection that may be kept
			if resp := askThrough(t, front.client(true), front.url, "v2", anybody); resp.StatusCode < 500 {
				t.Errorf("a server that died was answered for: %s", resp.Status)
			}
		}
		if n := taken.Load(); n != 2 {
			t.Errorf("two questions reached the server %d times", n)
		}
		if !program.waits {
			return
		}
		server, _, harbour, _ := harness.NewChatServerWith(t, harness.SettingsFile(t, behind+"[models.slow]\nprovider = \"scripted\"\nparts = 2\n"))
		front = program.start(t, server.Listen)
		client := front.client(true)
		server.Stop()
		sent, answered := make(chan struct{}), make(chan string, 1)
		go func() {
			defer close(answered)
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				WroteRequest: func(httptrace.WroteRequestInfo) { close(sent) }})
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, front.url+"/discovery/v1/search/"+harbour.Domain,
				strings.NewReader(`{"query":"ferry"}`))
			if err != nil {
				answered <- err.Error()
				return
			}
			req.Header.Set("Authorization", "Bearer "+harbour.Assistant)
			req.Header.Set("Content-Type", "application/json")
			resp, err := client.Do(req)
			if err != nil {
				answered <- err.Error()
				return
			}
			resp.Body.Close()
			answered <- resp.Status
		}()
		<-sent
		server.Start()
		if got := <-answered; got != "200 OK" {
			t.Errorf("a search while the server was away: %s\n%s", got, front.log)
		}
	})
}

// TestThePageOfProxiesShowsTheirFiles holds the page against the files that are run above: it shows each, or names it.
func TestThePageOfProxiesShowsTheirFiles(t *testing.T) {
	page, err := os.ReadFile("../../docs/deploy/reverse-proxy.mdx")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, f := range harness.ReadFences(t, "docs/deploy/reverse-proxy.mdx") {
		shown[f.Text] = true
	}
	for _, p := range proxies {
		for _, name := range p.files {
			if !shown[deployed(t, p.name, name)] && !strings.Contains(string(page), "`deploy/proxies/"+p.name+"/"+name+"`") {
				t.Errorf("docs/deploy/reverse-proxy.mdx does not show deploy/proxies/%s/%s as it is", p.name, name)
			}
		}
	}
}
