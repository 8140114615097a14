package doctor

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"docent/internal/outbound"
)

// A Way is how clients reach a server.
type Way struct {
	URL     string         // its public address
	Nonce   string         // of a probe of this very server
	Trusted []netip.Prefix // its trusted proxies
	Client  *http.Client   // http.DefaultClient if nil
}

// Public asks for a probe under the server's public address: whether it leads to this server, whether what the server
// writes arrives as it is written, and what proxies on the way say of clients.
func Public(ctx context.Context, w Way) []Finding {
	client := w.Client
	if client == nil {
		client = http.DefaultClient
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(w.URL, "/")+probePath+w.Nonce, nil)
	if err != nil {
		return []Finding{Wrong(`public_url = "https://…" in the configuration`, "%v", err)}
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := client.Do(req)
	if err != nil {
		return []Finding{unreached(w.URL, err)}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		fix := "have the proxy send every path to the server, or set public_url to the address that leads to it"
		if resp.StatusCode >= 500 {
			fix = "look at the proxy's log: it does not reach the server"
		}
		return []Finding{Wrong(fix, "%s answers %s: it does not lead to this server", w.URL, resp.Status)}
	}
	var seen Seen
	var arrived []time.Duration
	began := time.Now()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		text, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is {
			continue
		}
		if len(arrived) == 0 && (json.Unmarshal([]byte(text), &seen) != nil || seen.Nonce != w.Nonce) {
			break
		}
		arrived = append(arrived, time.Since(began))
	}
	if seen.Nonce != w.Nonce {
		return []Finding{Wrong("set public_url to the address that leads to this server", "%s is another server's", w.URL)}
	}
	found := []Finding{Fine("%s leads to this server", w.URL)}
	return append(found, streamed(arrived, lines.Err()), forwarded(seen, w))
}

// unreached says why an address could not be asked.
func unreached(address string, err error) Finding {
	var cert *tls.CertificateVerificationError
	var dns *net.DNSError
	u, _ := url.Parse(address)
	host := address
	if u != nil {
		host = u.Hostname()
	}
	switch {
	case errors.As(err, &cert):
		return Wrong("renew the certificate, or add the missing ones of its chain to it", "%s: %v", address, cert.Err)
	case errors.As(err, &dns):
		return Doubt("make a DNS record for "+host+" or correct public_url", "the name %s is not known here", host)
	}
	// Behind a firewall a machine may not reach its own public address, and clients do all the same.
	return Doubt("curl -v "+address+"/healthz from where clients are", "%s cannot be reached from this machine: %v", address, outbound.Cause(err))
}

// streamed says whether parts arrived when they were written.
func streamed(arrived []time.Duration, err error) Finding {
	const fix = "turn buffering and compression of text/event-stream off in the proxy: `proxy_buffering off;` in nginx, `flush_interval -1` in Caddy; docs/deploy/reverse-proxy has whole examples"
	f := Finding{Check: "proxy buffering"}
	switch whole := (probeParts - 1) * probePause; {
	case err != nil || len(arrived) < probeParts:
		f.Status, f.Fix, f.Found = Problem, "raise the proxy's time limits for answers", fmt.Sprintf("a stream broke off after %d of %d parts", len(arrived), probeParts)
	case arrived[len(arrived)-1]-arrived[0] < whole/2:
		f.Status, f.Fix, f.Found = Problem, fix, fmt.Sprintf("a stream of %s arrives in one piece: readers see nothing until an answer is whole", whole)
	default:
		f.Status, f.Found = OK, "a stream arrives part by part, as it is written"
	}
	return f
}

// forwarded says whether addresses of clients are known behind a proxy.
func forwarded(seen Seen, w Way) Finding {
	f := Finding{Check: "trusted proxies", Status: OK}
	host, _, err := net.SplitHostPort(seen.Remote)
	if err != nil {
		host = seen.Remote
	}
	addr, err := netip.ParseAddr(host)
	addr = addr.Unmap()
	trusts := err == nil && slices.ContainsFunc(w.Trusted, func(p netip.Prefix) bool { return p.Contains(addr) })
	switch {
	case seen.Forwarded == "" && trusts:
		f.Status, f.Found = Warning, fmt.Sprintf("the proxy at %s is trusted and sends no X-Forwarded-For: all clients count as that address", host)
		f.Fix = "`proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;` in nginx"
	case seen.Forwarded == "":
		f.Found = "there is no proxy on the way"
	case !trusts:
		f.Status, f.Found = Problem, fmt.Sprintf("a proxy at %s says who its clients are and is not trusted: all of them count as one address, and share its limits", host)
		f.Fix = fmt.Sprintf("trusted_proxies = [%q] in the configuration", host)
	default:
		f.Found = "the proxy at " + host + " is trusted and says who its clients are"
	}
	return f
}

// Certificate looks at the certificate that a server shows under its public address.
func Certificate(ctx context.Context, address string, now time.Time) Finding {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" {
		return Left("%s is not https", address)
	}
	port := cmp.Or(u.Port(), "443")
	// What is shown is judged below: a certificate that has expired is to be seen, not refused.
	dialer := tls.Dialer{Config: &tls.Config{ServerName: u.Hostname(), InsecureSkipVerify: true}} //nolint:gosec // nothing is sent
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return Left("%s cannot be reached: %v", address, outbound.Cause(err))
	}
	defer conn.Close()
	secured, ok := conn.(*tls.Conn)
	if !ok || len(secured.ConnectionState().PeerCertificates) == 0 {
		return Wrong("give the server or its proxy a certificate", "%s shows no certificate", address)
	}
	leaf := secured.ConnectionState().PeerCertificates[0]
	left := leaf.NotAfter.Sub(now)
	until := leaf.NotAfter.UTC().Format("2006-01-02 15:04 MST")
	switch {
	case leaf.VerifyHostname(u.Hostname()) != nil:
		return Wrong("make a certificate for "+u.Hostname(), "the certificate is not for %s", u.Hostname())
	case left <= 0:
		return Wrong("renew the certificate", "the certificate has expired, on %s", until)
	case left < 14*24*time.Hour && left < leaf.NotAfter.Sub(leaf.NotBefore)/4:
		return Doubt("renew the certificate", "the certificate expires on %s, in %d days", until, int(left.Hours()/24))
	}
	return Fine("the certificate is good until %s", until)
}
