package api

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"math/big"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A key's secret is a prefix that names its kind, 256 random bits in secretDigits base62 digits, and a CRC-32 of both
// in checksumDigits more: a scanner finds a leaked one by its form, and a mistyped one is refused without a lookup.
const (
	adminPrefix     = "dct_adm_"
	assistantPrefix = "dct_pub_"
	serverPrefix    = "dct_srv_"

	secretDigits   = 43 // 62^43 > 2^256
	checksumDigits = 6  // 62^6 > 2^32
	secretLength   = len(adminPrefix) + secretDigits + checksumDigits
)

// highestSecret is 2^256-1 in base62. Digits stand in ASCII order, so strings of equal width compare as their numbers
// do.
var highestSecret = base62Bytes([]byte(strings.Repeat("\xff", 32)), secretDigits)

// NewSecret makes the secret of a new key of that kind.
func NewSecret(kind KeyKind) string {
	prefix := adminPrefix
	switch kind {
	case AssistantKey:
		prefix = assistantPrefix
	case ServerKey:
		prefix = serverPrefix
	}
	var random [32]byte
	rand.Read(random[:]) // never fails: crypto/rand crashes the program instead
	s := prefix + base62Bytes(random[:], secretDigits)
	return s + checksum(s)
}

// ParseSecret tells the kind of key that s is the secret of. It is false for anything that NewSecret cannot have made;
// whether such a key exists is for the catalog to say.
func ParseSecret(s string) (KeyKind, bool) {
	if len(s) != secretLength {
		return "", false
	}
	var kind KeyKind
	switch s[:len(adminPrefix)] {
	case adminPrefix:
		kind = AdminKey
	case assistantPrefix:
		kind = AssistantKey
	case serverPrefix:
		kind = ServerKey
	default:
		return "", false
	}
	body, sum := s[:secretLength-checksumDigits], s[secretLength-checksumDigits:]
	random := body[len(adminPrefix):]
	for i := range len(random) {
		if strings.IndexByte(base62, random[i]) < 0 {
			return "", false
		}
	}
	if random > highestSecret || sum != checksum(body) {
		return "", false
	}
	return kind, true
}

// HashSecret is what is stored of a secret. The secret's 256 random bits need no salt and no slow hash.
func HashSecret(s string) [32]byte { return sha256.Sum256([]byte(s)) }

// SecretHint is what may be shown of a secret, to recognize it by: the prefix and the last four characters.
func SecretHint(s string) string {
	if _, ok := ParseSecret(s); !ok {
		return ""
	}
	return s[:len(adminPrefix)] + "…" + s[len(s)-4:]
}

func checksum(s string) string {
	return digits(uint64(crc32.ChecksumIEEE([]byte(s))), checksumDigits)
}

// base62Bytes writes the number b in exactly width digits.
func base62Bytes(b []byte, width int) string {
	n, base, digit := new(big.Int).SetBytes(b), big.NewInt(62), new(big.Int)
	out := make([]byte, width)
	for i := width - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		out[i] = base62[digit.Int64()]
	}
	return string(out)
}

// Successor is a key that takes this one's place, and its secret: it may do the same, and is good for as long.
func (k Key) Successor(now time.Time) (next Key, secret string) {
	next, secret = k, NewSecret(k.Kind)
	next.ID, next.Hint = KeyID(NewID(KeyPrefix, now)), SecretHint(secret)
	next.CreatedAt, next.LastUsed = now, nil
	if k.ExpiresAt != nil {
		ends := now.Add(k.ExpiresAt.Sub(k.CreatedAt))
		next.ExpiresAt = &ends
	}
	return next, secret
}

// Validate says everything that is wrong with the options of a key that is to be made now: an *InvalidError, or nil.
func (k Key) Validate(now time.Time) error {
	var p problems
	switch k.Kind {
	case AdminKey:
		for i := range k.Origins {
			p.add(indexed("origins", i), "only an assistant key is limited to origins")
		}
		for i, scope := range k.Scopes {
			if scope != ScopeRead && scope != ScopeWrite {
				p.add(indexed("scopes", i), "must be %q or %q", ScopeRead, ScopeWrite)
			}
		}
	case AssistantKey:
		if k.Project == "" {
			p.add("project", "an assistant key serves one project: name it")
		}
		for i := range k.Scopes {
			p.add(indexed("scopes", i), "only an admin key has scopes")
		}
		for i, origin := range k.Origins {
			if problem := originProblem(origin); problem != "" {
				p.add(indexed("origins", i), "%s", problem)
			}
		}
	case ServerKey:
		if k.Project == "" {
			p.add("project", "a server key serves one project: name it")
		}
		for i := range k.Scopes {
			p.add(indexed("scopes", i), "only an admin key has scopes")
		}
		for i := range k.Origins {
			p.add(indexed("origins", i), "a server key is never used in browsers: limit it to the addresses of your servers with allowIp")
		}
	default:
		p.add("kind", "must be %q, %q or %q", AdminKey, AssistantKey, ServerKey)
	}
	if k.Kind != ServerKey {
		for i := range k.Groups {
			p.add(indexed("groups", i), "only a server key has groups")
		}
	}
	p.groups("groups", k.Groups)
	p.text("name", k.Name, 100)
	if k.ExpiresAt != nil && !k.ExpiresAt.After(now) {
		p.add("expiresAt", "must lie in the future")
	}
	p.allowIP(k.AllowIP)
	return p.err()
}

// The widest ranges that an allow list takes: no organization has a wider one, and a few of them would be everybody.
const (
	widestIPv4 = 8
	widestIPv6 = 16
)

// allowIP checks a list of addresses and CIDR ranges. A list that lets in every address, or nearly so, is refused, also
// if it does so in pieces: its author believes that the key is protected.
func (p *problems) allowIP(list []string) {
	ranges := make(map[netip.Prefix]bool)
	for i, entry := range list {
		field := indexed("allowIp", i)
		prefix, err := netip.ParsePrefix(entry)
		if err != nil {
			addr, err := netip.ParseAddr(entry)
			if err != nil || addr.Zone() != "" {
				p.add(field, "must be an IPv4 or IPv6 address or a CIDR range, such as 203.0.113.0/24")
				continue
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		if prefix.Addr().Is4In6() {
			p.add(field, "must be written in IPv4's own form, such as 203.0.113.0/24")
			continue
		}
		if prefix.Bits() == 0 {
			p.add(field, "lets in every address; leave the list empty if that is meant")
			continue
		}
		widest := widestIPv6
		if prefix.Addr().Is4() {
			widest = widestIPv4
		}
		if prefix.Bits() < widest {
			p.add(field, "is wider than /%d; name the ranges that are meant, or leave the list empty to let in every address",
				widest)
			continue
		}
		ranges[prefix.Masked()] = true
	}
	if joinsToAll(ranges) {
		p.add("allowIp", "the ranges together let in every address; leave the list empty if that is meant")
	}
}

// joinsToAll reports whether the ranges cover all of IPv4 or all of IPv6, by joining halves until none are left to
// join.
func joinsToAll(ranges map[netip.Prefix]bool) bool {
	for bits := 128; bits > 0; bits-- {
		for r := range ranges {
			if r.Bits() != bits {
				continue
			}
			whole := netip.PrefixFrom(r.Addr(), bits-1).Masked()
			if ranges[sibling(r)] {
				ranges[whole] = true
				if whole.Bits() == 0 {
					return true
				}
			}
		}
	}
	return false
}

// sibling is the other half of the range that r is one half of.
func sibling(r netip.Prefix) netip.Prefix {
	b := r.Addr().AsSlice()
	at := r.Bits() - 1
	b[at/8] ^= 0x80 >> (at % 8)
	addr, _ := netip.AddrFromSlice(b)
	return netip.PrefixFrom(addr, r.Bits())
}

// originProblem says why no browser would send this text as its Origin, or nothing.
func originProblem(origin string) string {
	const form = "must be an origin as a browser sends it, such as https://docs.example.com"
	if origin == "*" {
		return form + "; leave the list empty to allow every origin"
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Opaque != "" {
		return form
	}
	if u.Path != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(origin, "#") {
		return form + ", without a path"
	}
	if u.Scheme == "http" && u.Port() == "80" || u.Scheme == "https" && u.Port() == "443" {
		return "leave out :" + u.Port() + ": browsers do not send the scheme's own port"
	}
	if !validPort(u) {
		return form + "; the port is not one"
	}
	if host := u.Hostname(); !validHostname(host) {
		if _, err := netip.ParseAddr(host); err != nil {
			if strings.Contains(host, "*") {
				return "wildcards are not known here: name each origin"
			}
			return form + ", in lower case and ASCII (an international name in its xn-- form)"
		}
	}
	if u.Scheme+"://"+u.Host != origin {
		return form + ", in lower case"
	}
	return ""
}

func validPort(u *url.URL) bool {
	port := u.Port()
	if port == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n := 0
	for _, c := range []byte(port) {
		if n = n*10 + int(c-'0'); n > 65535 {
			return false
		}
	}
	return n > 0 && port[0] != '0'
}

// validHostname reports whether s is a lower-case DNS name. Underscores do occur in names that are in use.
func validHostname(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
	}
	return true
}

// problems collects everything that is wrong.
type problems []Problem

func (p *problems) add(field, format string, args ...any) {
	*p = append(*p, Problem{Field: field, Message: fmt.Sprintf(format, args...)})
}

// What groups may be, wherever they are named.
const (
	MaxGroups = 100 // of one reader, key or source
	MaxGroup  = 200 // characters of a group's name
)

// groups checks the names of groups.
func (p *problems) groups(field string, list []string) {
	if len(list) > MaxGroups {
		p.add(field, "must have at most %d entries", MaxGroups)
		return
	}
	for i, g := range list {
		if strings.TrimSpace(g) == "" {
			p.add(indexed(field, i), "must not be empty")
		}
		p.text(indexed(field, i), g, MaxGroup)
	}
}

// text checks a text for people: one line, not longer than it can be shown.
func (p *problems) text(field, s string, longest int) {
	switch {
	case !utf8.ValidString(s):
		p.add(field, "must be valid UTF-8")
	case strings.ContainsFunc(s, unicode.IsControl):
		p.add(field, "must not contain control characters")
	case utf8.RuneCountInString(s) > longest:
		p.add(field, "must have at most %d characters", longest)
	}
}

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return &InvalidError{Problems: p}
}

func indexed(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

// Good says whether the key may be used now, from that address: nil, ErrUnauthorized if it is revoked or expired, or
// ErrForbidden if it is for other addresses.
func (k Key) Good(now time.Time, client netip.Addr) error {
	if k.RevokedAt != nil || k.ExpiresAt != nil && !now.Before(*k.ExpiresAt) {
		return ErrUnauthorized
	}
	if len(k.AllowIP) > 0 && !slices.ContainsFunc(k.AllowIP, func(entry string) bool { return lets(entry, client) }) {
		return ErrForbidden
	}
	return nil
}

// lets reports whether an entry of an allow list lets an address in. What cannot be read lets nobody in.
func lets(entry string, client netip.Addr) bool {
	if p, err := netip.ParsePrefix(entry); err == nil {
		if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
		}
		return p.Contains(client)
	}
	a, err := netip.ParseAddr(entry)
	return err == nil && client.IsValid() && a.Unmap().WithZone("") == client
}

// Reads reports whether the key is for what readers do: to ask, search, read pages and rate.
func (k Key) Reads() bool { return k.Kind == AssistantKey || k.Kind == ServerKey }

// Allows reports whether an admin key has a scope. A key without scopes has all of them.
func (k Key) Allows(scope string) bool { return len(k.Scopes) == 0 || slices.Contains(k.Scopes, scope) }

// Network is an address as quotas and attempts count it: the holder of one IPv6 address has its /64.
func Network(addr netip.Addr) string {
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.String()
		}
	}
	return addr.String()
}

// Sign is a signature that only who has the secret can make, for that purpose.
func Sign(secret []byte, purpose string, payload []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(purpose))
	mac.Write([]byte{0})
	mac.Write(payload)
	return mac.Sum(nil)
}
