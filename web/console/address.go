package console

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// Absolute returns the address under which others reach a path of ours. If the configured address is one of this machine
// alone, the address that the visitor's connection came in on is better. What the request calls its host is repeated only
// if it is that: anybody can call it anything.
func (v *Visit) Absolute(path string) string {
	if base := v.server.PublicURL; base != "" && !Loopback(base) || !v.toOwnAddress() {
		return base + path
	}
	return v.CameBy(path)
}

// CameBy returns the address of a path of ours under the host that the request names, whatever that is.
func (v *Visit) CameBy(path string) string {
	if v.secure {
		return "https://" + v.Req.Host + path
	}
	return "http://" + v.Req.Host + path
}

// toOwnAddress reports whether the request's host is the address and port at which the connection came in.
func (v *Visit) toOwnAddress() bool {
	local, ok := v.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return false
	}
	host, err := netip.ParseAddrPort(v.Req.Host)
	if err != nil { // without the scheme's own port
		port := uint16(80)
		if v.secure {
			port = 443
		}
		addr, err := netip.ParseAddr(strings.Trim(v.Req.Host, "[]"))
		if err != nil {
			return false
		}
		host = netip.AddrPortFrom(addr, port)
	}
	return host.Port() == at.Port() && host.Addr().Unmap() == at.Addr().Unmap().WithZone("")
}

// LocalOnly reports whether links that pages show lead nowhere but on the server's own machine, while the visitor came by
// another address.
func (v *Visit) LocalOnly() bool {
	return (v.server.PublicURL == "" || Loopback(v.server.PublicURL)) && !v.toOwnAddress() && !Loopback("http://"+v.Req.Host)
}

// Loopback reports whether an address leads to the machine itself.
func Loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	if u.Hostname() == "localhost" || strings.HasSuffix(u.Hostname(), ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && net.IP(ip.AsSlice()).IsLoopback()
}

// outside reports whether an address leads to a site, and not to a page of this server.
func outside(address string) bool {
	return strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://")
}

// HostOf returns what the audit log says of an address, which may hold a token.
func HostOf(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	host, _, _ := strings.Cut(rest, "/")
	host, _, _ = strings.Cut(host, "?")
	return host
}

// APIAddress returns the address under which programs reach the service. What a request calls its host is no address to
// repeat.
func (s *Server) APIAddress() string {
	if s.PublicURL == "" {
		return "https://docent.example.com"
	}
	return s.PublicURL
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// ShellWord writes a text as one word of a shell's command.
func ShellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// webAddress reports whether a text is an address that a link may lead to.
func webAddress(s string) bool {
	return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")
}
