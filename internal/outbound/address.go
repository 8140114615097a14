package outbound

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ErrTarget refuses an address that the policy does not let anything go to.
var ErrTarget = errors.New("nothing is sent to that address")

// A Policy says which addresses messages may go to, beside public ones.
type Policy struct {
	Loopback bool           // this machine
	Private  bool           // private networks
	Allow    []netip.Prefix // of this machine and of private networks
	Setting  string         // that lets more through, for what people are told
}

// CheckURL says what is wrong with an address as that of a webhook; empty if nothing is. Which machine a name leads
// to is looked at when something is sent.
func (p Policy) CheckURL(text string) string {
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
	near := false // it is of a network that is allowed by name: what is sent there needs no encryption
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		if say := p.refused(ip); say != "" {
			return say
		}
		near = kindOf(plain(ip)) == thisMachine || p.allowed(plain(ip))
	} else if u.Hostname() == "localhost" {
		if p.refused(netip.IPv6Loopback()) != "" && p.refused(netip.AddrFrom4([4]byte{127, 0, 0, 1})) != "" {
			return p.say("is this machine itself")
		}
		near = true
	}
	if u.Scheme == "https" || u.Scheme == "http" && near {
		return ""
	}
	return "must begin with https://"
}

// say is a refusal that the operator can lift.
func (p Policy) say(what string) string {
	return what + ": the operator can allow that with " + p.Setting
}

// kinds of addresses
const (
	public = iota
	private
	thisMachine
	never
)

// metadata are the addresses by which machines ask their cloud for credentials, where these are not link-local.
var metadata = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("192.0.0.192"),
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"),
}

// within are networks that are private, beside those that netip knows as such.
var within = []netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("fec0::/10"),
	netip.MustParsePrefix("2001::/32"), // Teredo, which hides where it leads
}

var (
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
	sixTo = netip.MustParsePrefix("2002::/16")
)

// plain is the IPv4 address that an IPv6 address stands for, if it stands for one.
func plain(ip netip.Addr) netip.Addr {
	ip = ip.Unmap().WithZone("")
	b := ip.As16()
	switch {
	case nat64.Contains(ip):
		return netip.AddrFrom4([4]byte(b[12:]))
	case sixTo.Contains(ip):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return ip
}

func kindOf(ip netip.Addr) int {
	if slices.Contains(metadata, ip) {
		return never
	}
	switch {
	case ip.IsLoopback():
		return thisMachine
	case ip.IsLinkLocalUnicast(), ip.IsUnspecified(), ip.IsMulticast(), ip.Is4() && ip.As4()[0] == 0,
		ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return never
	case ip.IsPrivate():
		return private
	}
	for _, p := range within {
		if p.Contains(ip) {
			return private
		}
	}
	return public
}

func (p Policy) allowed(ip netip.Addr) bool {
	return slices.ContainsFunc(p.Allow, func(a netip.Prefix) bool { return a.Contains(ip) })
}

// refused says why nothing is sent to an IP address; empty if it is.
func (p Policy) refused(ip netip.Addr) string {
	ip = plain(ip)
	switch kindOf(ip) {
	case never:
		return "is no address of a receiver"
	case thisMachine:
		if !p.Loopback && !p.allowed(ip) {
			return p.say("is this machine itself")
		}
	case private:
		if !p.Private && !p.allowed(ip) {
			return p.say("is in a private network")
		}
	}
	return ""
}

// timeout is how long a receiver may take to answer.
const timeout = 15 * time.Second

// Transport connects only to what may be reached: each address that a name leads to is looked at in the moment of the
// connection, and no proxy is asked. Names are looked up with the resolver; nil is the machine's own.
func (p Policy) Transport(resolver *net.Resolver) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Resolver: resolver,
		Control: func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("%w: %s", ErrTarget, address)
			}
			if say := p.refused(at.Addr()); say != "" {
				return fmt.Errorf("%w: %s %s", ErrTarget, at.Addr(), say)
			}
			return nil
		}}
	return &http.Transport{
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: timeout, MaxResponseHeaderBytes: 64 << 10,
		ForceAttemptHTTP2: true,
	}
}

// Client makes single requests: redirects are not followed, and no connection is kept.
func (p Policy) Client(resolver *net.Resolver, timeout time.Duration) *http.Client {
	transport := p.Transport(resolver)
	transport.DisableKeepAlives = true
	return &http.Client{Transport: transport, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// failure is what went wrong with a request, in words for the operator.
func failure(err error) string {
	var late interface{ Timeout() bool }
	var dns *net.DNSError
	switch {
	case errors.Is(err, ErrTarget):
		at := strings.Index(err.Error(), ErrTarget.Error())
		return err.Error()[at:]
	case errors.As(err, &late) && late.Timeout():
		return "the receiver did not answer in time"
	case errors.As(err, &dns):
		return "the name " + dns.Name + " leads nowhere"
	}
	return Cause(err).Error()
}

// Cause is an error of a request without the address, which url.Error repeats and which may hold a token.
func Cause(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
