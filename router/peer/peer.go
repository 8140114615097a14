// Package peer tells who sent a request, where proxies stand between.
package peer

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Of is who sent the request: the other end of the connection, or where that is a trusted proxy, the right-most
// address in X-Forwarded-For that is not one. What stands left of it may be invented.
func Of(req *http.Request, trusted []netip.Prefix) (addr netip.Addr, secure bool) {
	secure = req.TLS != nil
	addr = Address(req.RemoteAddr)
	if !In(trusted, addr) {
		return addr, secure
	}
	if proto := req.Header.Values("X-Forwarded-Proto"); len(proto) > 0 {
		all := strings.Split(proto[len(proto)-1], ",")
		secure = strings.EqualFold(strings.TrimSpace(all[len(all)-1]), "https")
	}
	chain := strings.Join(req.Header.Values("X-Forwarded-For"), ",")
	for chain != "" {
		var entry string
		if i := strings.LastIndexByte(chain, ','); i >= 0 {
			chain, entry = chain[:i], chain[i+1:]
		} else {
			chain, entry = "", chain
		}
		next := Address(strings.TrimSpace(entry))
		if !next.IsValid() {
			return addr, secure // what a trusted proxy did not write is not followed
		}
		addr = next
		if !In(trusted, addr) {
			return addr, secure
		}
	}
	return addr, secure
}

// In reports whether one of the prefixes has an address.
func In(prefixes []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// Address reads an address with or without a port, and gives an IPv4 address one form. It is invalid for anything else.
func Address(s string) netip.Addr {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone("")
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}
