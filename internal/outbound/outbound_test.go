package outbound

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"golang.org/x/net/dns/dnsmessage"
)

var (
	reports = Policy{Private: true, Setting: "webhook_allow"}
	strict  = Policy{Setting: "webhook_allow"}
	nearby  = Policy{Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("127.0.0.1/32")}}
)

func TestOnlyAddressesOfThePolicyAreReached(t *testing.T) {
	t.Parallel()
	public := []string{"93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822", "172.32.0.1", "100.128.0.1"}
	inside := []string{"10.1.2.3", "172.16.0.1", "192.168.1.1", "fd12::1", "100.64.0.1", "198.18.0.1", "2002:a01:203::1",
		"64:ff9b::a01:203", "::ffff:10.1.2.3", "192.0.0.8", "240.0.0.1", "2001::1", "64:ff9b:1::a"}
	machine := []string{"127.0.0.1", "::1", "::ffff:127.0.0.1", "127.9.9.9", "64:ff9b::7f00:1", "2002:7f00:1::"}
	nowhere := []string{"169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "fe80::1",
		"0.0.0.0", "::", "224.0.0.1", "ff02::1", "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "0.1.2.3",
		"255.255.255.255", "192.0.0.192"}
	everything := Policy{Loopback: true, Private: true, Allow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"),
		netip.MustParsePrefix("::/0")}}
	for name, c := range map[string]struct {
		policy  Policy
		through [][]string
		refused [][]string
	}{
		"strict":     {strict, [][]string{public}, [][]string{inside, machine, nowhere}},
		"reports":    {reports, [][]string{public, inside}, [][]string{machine, nowhere}},
		"everything": {everything, [][]string{public, inside, machine}, [][]string{nowhere}},
		"nearby": {nearby, [][]string{public, {"10.1.2.3", "127.0.0.1", "::ffff:10.1.2.3"}},
			[][]string{nowhere, {"10.2.0.1", "127.0.0.2", "::1", "192.168.1.1"}}},
	} {
		for _, list := range c.through {
			for _, ip := range list {
				if say := c.policy.refused(netip.MustParseAddr(ip)); say != "" {
					t.Errorf("%s: %s %s", name, ip, say)
				}
			}
		}
		for _, list := range c.refused {
			for _, ip := range list {
				if c.policy.refused(netip.MustParseAddr(ip)) == "" {
					t.Errorf("%s: %s is let through", name, ip)
				}
			}
		}
	}
}

func TestAnAddressIsLookedAtWhenItIsEntered(t *testing.T) {
	t.Parallel()
	for url, ok := range map[string]bool{
		"https://hooks.example.com/x?a=b": true, "https://10.1.0.1:8443/x": true, "http://hooks.example.com": false,
		"https://169.254.169.254/latest": false, "http://127.0.0.1/": false, "https://localhost/": false,
		"https://user:pw@example.com/": false, "ftp://example.com": false, "https://": false, "": false,
		"https://example.com/#x": false, "javascript:alert(1)": false, "https://[::1]/": false, "//example.com": false,
		"https://" + strings.Repeat("a", 2000): false,
	} {
		if say := reports.CheckURL(url); (say == "") != ok {
			t.Errorf("%s: %q", url, say)
		}
	}
	for url, ok := range map[string]bool{"http://10.1.0.1/": true, "http://127.0.0.1:9/": true, "http://localhost:9/": true,
		"http://10.2.0.1/": false, "https://10.2.0.1/": false, "http://[::1]/": false, "http://example.com/": false} {
		if say := nearby.CheckURL(url); (say == "") != ok {
			t.Errorf("allowed by name: %s: %q", url, say)
		}
	}
	if say := strict.CheckURL("https://192.168.0.1/"); !strings.Contains(say, "webhook_allow") {
		t.Errorf("how that is allowed is not said: %q", say)
	}
}

// names is a resolver whose only server answers the next address of a list at each question.
func names(t *testing.T, answers ...string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Authoritative, m.Additionals = true, true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				ip := netip.MustParseAddr(answers[0])
				if len(answers) > 1 {
					answers = answers[1:]
				}
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class},
					Body: &dnsmessage.AResource{A: ip.As4()}}}
			}
			if reply, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// A name that leads to a public address when it is entered, and to this machine when something is sent.
func TestANameThatChangesItsAnswerReachesNothing(t *testing.T) {
	t.Parallel()
	reached := false
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	resolver := names(t, "93.184.216.34", "127.0.0.1")
	if ips, err := resolver.LookupNetIP(t.Context(), "ip4", "hooks.example.com."); err != nil || ips[0].String() != "93.184.216.34" {
		t.Fatalf("the first answer is %v, %v", ips, err)
	}
	s := New(strict, resolver)
	url := "https://hooks.example.com.:" + port + "/"
	if say := s.CheckURL(url); say != "" {
		t.Fatal(say)
	}
	_, err := s.Send(t.Context(), Message{URL: url, ID: "evt_1", Secrets: []string{NewSecret()}, At: time.Now()})
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1 is this machine itself") || reached {
		t.Errorf("reached %v: %v", reached, err)
	}
	// The same way leads there if it is allowed: what is refused above is the address.
	open := New(Policy{Loopback: true}, names(t, "127.0.0.1"))
	if _, err = open.Send(t.Context(), Message{URL: url, ID: "evt_1", Secrets: []string{NewSecret()}, At: time.Now()}); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("where it is allowed: %v", err)
	}
}

// A receiver remembers what it gets, and answers what a test says.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	answer func(w http.ResponseWriter)
	got    []*http.Request
	bodies []string
}

func receive(t *testing.T, answer func(w http.ResponseWriter)) *receiver {
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.got, r.bodies = append(r.got, req), append(r.bodies, string(body))
		r.mu.Unlock()
		r.answer(w)
	}))
	t.Cleanup(r.Close)
	return r
}

// While one secret takes the place of another, receivers that know either take the message.
func TestTheOfficialLibraryVerifiesWhatIsSent(t *testing.T) {
	t.Parallel()
	r := receive(t, func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) })
	s := New(Policy{Loopback: true}, nil)
	older, newer, other := NewSecret(), NewSecret(), NewSecret()
	body, _ := json.Marshal(map[string]any{"type": "job.ended", "data": map[string]string{"text": "ü <&>"}})
	m := Message{URL: r.URL, ID: "evt_1", Secrets: []string{newer, older}, Body: body, At: time.Now()}
	if answer, err := s.Send(t.Context(), m); err != nil || answer.Code != http.StatusNoContent {
		t.Fatalf("%+v, %v", answer, err)
	}
	verify := func(secret, body string, header http.Header) error {
		wh, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		return wh.Verify([]byte(body), header)
	}
	for name, secret := range map[string]string{"newer": newer, "older": older} {
		if err := verify(secret, r.bodies[0], r.got[0].Header); err != nil {
			t.Errorf("with the %s secret: %v", name, err)
		}
	}
	if verify(other, r.bodies[0], r.got[0].Header) == nil || verify(newer, r.bodies[0]+" ", r.got[0].Header) == nil {
		t.Error("another secret, or another body, verifies as well")
	}
	m.Secrets, m.At = []string{newer}, time.Now().Add(-time.Hour)
	if _, err := s.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if verify(older, r.bodies[1], r.got[1].Header) == nil || verify(newer, r.bodies[1], r.got[1].Header) == nil {
		t.Error("the old secret still signs, or an old message is taken")
	}
	if _, err := s.Send(t.Context(), Message{URL: r.URL, Secrets: []string{"whsec_!"}}); err == nil || len(r.got) != 2 {
		t.Errorf("with a damaged secret: %v", err)
	}
}

func TestWhatAReceiverSaysIsToldInFewWords(t *testing.T) {
	t.Parallel()
	send := func(answer func(w http.ResponseWriter)) (Answer, error) {
		r := receive(t, answer)
		return New(Policy{Loopback: true}, nil).Send(t.Context(), Message{URL: r.URL, ID: "evt_1", Secrets: []string{NewSecret()},
			At: time.Now()})
	}
	a, err := send(func(w http.ResponseWriter) {
		w.Header().Set("Location", "http://169.254.169.254/")
		w.WriteHeader(http.StatusFound)
	})
	if a.Code != 302 || err == nil || !strings.Contains(err.Error(), "redirects are not followed") {
		t.Errorf("a redirect: %+v, %v", a, err)
	}
	a, err = send(func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, "slow\n  down "+strings.Repeat("é", 2000))
	})
	if a.Code != 429 || err == nil || a.Pause != 10*time.Minute || !strings.HasPrefix(a.Text, "slow down é") || len(a.Text) > 310 {
		t.Errorf("too many: %+v, %v", a, err)
	}
	for header, want := range map[string]time.Duration{"-1": 0, "99999999999": maxPause, "86401": maxPause, "soon": 0,
		"Mon, 23 Nov 2026 12:00:30 GMT": 30 * time.Second, "Mon, 23 Nov 2026 11:00:30 GMT": 0} {
		if got := pauseOf(header, time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)); got != want {
			t.Errorf("Retry-After: %s is %v, want %v", header, got, want)
		}
	}
	server := httptest.NewServer(http.NotFoundHandler())
	url := server.URL
	server.Close()
	_, err = New(Policy{Loopback: true}, nil).Send(t.Context(), Message{URL: url + "/token", Secrets: []string{NewSecret()}})
	if err == nil || strings.Contains(err.Error(), "token") {
		t.Errorf("the address is told: %v", err)
	}
	if _, err := New(strict, nil).client.Get(url); !errors.Is(err, ErrTarget) {
		t.Errorf("this machine is reached: %v", err)
	}
}
