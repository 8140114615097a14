package weekly

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// errTarget refuses an address that no report is sent to.
var errTarget = errors.New("reports are not sent to that address")

// CheckURL says what is wrong with an address as that of a webhook; empty where nothing is. Which machine a name leads
// to is looked at when a report is sent.
func CheckURL(text string, loopback bool) string {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return "is required"
	case len(text) > 2000:
		return "is too long"
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return "must be an address such as https://hooks.example.com/docs"
	case u.User != nil:
		return "must hold no user name or password: receivers know Docent by the signature"
	case u.Fragment != "":
		return "must hold no “#”"
	}
	local := u.Hostname() == "localhost"
	ip, err := netip.ParseAddr(u.Hostname())
	if err == nil {
		local = ip.Unmap().IsLoopback()
		if say := refused(ip, loopback); say != "" {
			return say
		}
	}
	switch {
	case local && !loopback:
		return refusedLoopback
	case u.Scheme == "https", u.Scheme == "http" && local:
		return ""
	}
	return "must begin with https://"
}

const refusedLoopback = "is this machine itself: the operator can allow that with report_loopback = true"

// metadata are the addresses by which machines ask their cloud for credentials, where these are not link-local.
var metadata = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("192.0.0.192"),
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"),
}

var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// refused says why nothing is sent to an IP address; empty where it is.
func refused(ip netip.Addr, loopback bool) string {
	ip = ip.Unmap().WithZone("")
	if nat64.Contains(ip) { // an IPv4 address in its last four bytes
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	switch {
	case ip.IsLoopback():
		if loopback {
			return ""
		}
		return refusedLoopback
	case ip.IsLinkLocalUnicast(), ip.IsUnspecified(), ip.IsMulticast(), ip.Is4() && ip.As4()[0] == 0,
		ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "is no address of a receiver"
	}
	for _, m := range metadata {
		if ip == m {
			return "is no address of a receiver"
		}
	}
	return ""
}

// sendTimeout is how long a receiver may take to answer.
const sendTimeout = 15 * time.Second

// newClient makes requests that reach only what may be reached: each address that a name leads to is looked at in the
// moment of the connection, redirects are not followed, and no proxy is asked.
func newClient(loopback bool) *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%w: %s", errTarget, address)
		}
		if say := refused(at.Addr(), loopback); say != "" {
			return fmt.Errorf("%w: %s %s", errTarget, at.Addr(), say)
		}
		return nil
	}}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, address)
		},
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: sendTimeout, MaxResponseHeaderBytes: 64 << 10,
		DisableKeepAlives: true, ForceAttemptHTTP2: true,
	}
	return &http.Client{Transport: transport, Timeout: sendTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// failure is what went wrong with a request, in words for the operator.
func failure(err error) string {
	var timeout interface{ Timeout() bool }
	var dns *net.DNSError
	switch {
	case errors.Is(err, errTarget):
		at := strings.Index(err.Error(), errTarget.Error())
		return err.Error()[at:]
	case errors.As(err, &timeout) && timeout.Timeout():
		return "the receiver did not answer in time"
	case errors.As(err, &dns):
		return "the name " + dns.Name + " leads nowhere"
	}
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err // without the address, which may hold a token
	}
	return err.Error()
}
