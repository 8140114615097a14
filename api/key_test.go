package api

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSecretTellsItsKind(t *testing.T) {
	seen := map[string]bool{}
	for _, kind := range []KeyKind{AdminKey, AssistantKey, ServerKey} {
		form := regexp.MustCompile(map[KeyKind]string{
			AdminKey:     `^dct_adm_[0-9A-Za-z]{49}$`,
			AssistantKey: `^dct_pub_[0-9A-Za-z]{49}$`,
			ServerKey:    `^dct_srv_[0-9A-Za-z]{49}$`,
		}[kind])
		for range 200 {
			s := NewSecret(kind)
			if !form.MatchString(s) {
				t.Fatalf("%s secret has the form %q", kind, s)
			}
			if got, ok := ParseSecret(s); !ok || got != kind {
				t.Fatalf("ParseSecret of a %s secret = %q, %v", kind, got, ok)
			}
			if seen[s] {
				t.Fatalf("the same secret was made twice")
			}
			seen[s] = true
		}
	}
}

func TestMistypedSecretIsRefused(t *testing.T) {
	secret := NewSecret(AdminKey)
	for i := range len(secret) {
		for _, c := range []byte("0aZ_- \x00") {
			if secret[i] == c {
				continue
			}
			wrong := []byte(secret)
			wrong[i] = c
			if _, ok := ParseSecret(string(wrong)); ok {
				t.Fatalf("accepted with %q at %d", c, i)
			}
		}
		if i > 0 && secret[i] != secret[i-1] {
			wrong := []byte(secret)
			wrong[i], wrong[i-1] = wrong[i-1], wrong[i]
			if _, ok := ParseSecret(string(wrong)); ok {
				t.Fatalf("accepted with the characters at %d and %d swapped", i-1, i)
			}
		}
	}
	tooBig := adminPrefix + strings.Repeat("z", secretDigits)
	other := assistantPrefix + secret[len(adminPrefix):]
	for _, s := range []string{"", "dct_adm_", secret[1:], secret[:len(secret)-1], secret + "0", " " + secret, other,
		tooBig + checksum(tooBig)} {
		if _, ok := ParseSecret(s); ok {
			t.Errorf("accepted %q", s)
		}
	}
}

func TestHintShowsNoMoreThanFourCharacters(t *testing.T) {
	s := NewSecret(AssistantKey)
	if got, want := SecretHint(s), "dct_pub_…"+s[len(s)-4:]; got != want {
		t.Errorf("hint %q, want %q", got, want)
	}
	if got := SecretHint("hunter2"); got != "" {
		t.Errorf("a text that is no secret has the hint %q", got)
	}
}

func FuzzParseSecret(f *testing.F) {
	f.Add(NewSecret(AdminKey))
	f.Add(NewSecret(AssistantKey))
	f.Add("dct_adm_" + strings.Repeat("0", 49))
	f.Add("Bearer x")
	f.Fuzz(func(t *testing.T, s string) {
		kind, ok := ParseSecret(s)
		if !ok {
			if SecretHint(s) != "" {
				t.Errorf("%q is no secret but has a hint", s)
			}
			return
		}
		// What is accepted is what NewSecret makes: re-encoding gives the same text.
		if kind != AdminKey && kind != AssistantKey {
			t.Errorf("%q has the kind %q", s, kind)
		}
		body := s[:len(s)-checksumDigits]
		if body+checksum(body) != s {
			t.Errorf("%q was accepted with a wrong checksum", s)
		}
		if again, ok := ParseSecret(strings.Clone(s)); !ok || again != kind {
			t.Errorf("%q is not accepted twice", s)
		}
	})
}

// fields are the names of the offending fields of an *InvalidError, sorted.
func fields(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var invalid *InvalidError
	if !errors.As(err, &invalid) || !errors.Is(err, ErrInvalid) {
		t.Fatalf("error %v is not an InvalidError", err)
	}
	var out []string
	for _, p := range invalid.Problems {
		if p.Message == "" {
			t.Errorf("%s has no message", p.Field)
		}
		out = append(out, p.Field)
	}
	slices.Sort(out)
	return out
}

func TestKeyOptions(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time { t := now.Add(d); return &t }
	admin := func(k Key) Key { k.Kind = AdminKey; return k }
	assistant := func(k Key) Key { k.Kind, k.Project = AssistantKey, "docs"; return k }
	for name, c := range map[string]struct {
		key  Key
		want []string
	}{
		"a plain admin key":      {admin(Key{}), nil},
		"a plain assistant key":  {assistant(Key{}), nil},
		"no kind":                {Key{}, []string{"kind"}},
		"unknown kind":           {Key{Kind: "root"}, []string{"kind"}},
		"assistant, no project":  {Key{Kind: AssistantKey}, []string{"project"}},
		"scopes":                 {admin(Key{Scopes: []string{"read", "write"}}), nil},
		"unknown scope":          {admin(Key{Scopes: []string{"read", "delete"}}), []string{"scopes[1]"}},
		"scopes of an assistant": {assistant(Key{Scopes: []string{"read"}}), []string{"scopes[0]"}},
		"expires later":          {admin(Key{ExpiresAt: at(time.Second)}), nil},
		"expires now":            {admin(Key{ExpiresAt: at(0)}), []string{"expiresAt"}},
		"expired":                {admin(Key{ExpiresAt: at(-time.Hour)}), []string{"expiresAt"}},
		"addresses": {admin(Key{AllowIP: []string{"203.0.113.7", "2001:db8::1", "10.0.0.0/8", "2001:db8::/32",
			"10.1.2.3/16"}}), nil},
		"catch-all": {admin(Key{AllowIP: []string{"0.0.0.0/0", "::/0", "1.2.3.4/0"}}),
			[]string{"allowIp[0]", "allowIp[1]", "allowIp[2]"}},
		"no addresses": {admin(Key{AllowIP: []string{"", "localhost", "1.2.3", "10.0.0.0/33", "fe80::1%eth0",
			"::ffff:1.2.3.4", "1.2.3.4:80"}}), []string{"allowIp[0]", "allowIp[1]", "allowIp[2]", "allowIp[3]", "allowIp[4]",
			"allowIp[5]", "allowIp[6]"}},
		"origins": {assistant(Key{Origins: []string{"https://docs.example.com", "http://localhost:3000",
			"http://127.0.0.1:8080", "http://[::1]:3000", "https://xn--bcher-kva.example"}}), nil},
		"bad origins": {assistant(Key{Origins: []string{"*", "docs.example.com", "https://docs.example.com/",
			"https://Docs.example.com", "https://*.example.com",
			"https://docs.example.com:443", "ftp://docs.example.com", "https://u@docs.example.com", "null",
			"https://docs.example.com:99999", "https://"}}),
			[]string{"origins[0]", "origins[10]", "origins[1]", "origins[2]", "origins[3]", "origins[4]", "origins[5]",
				"origins[6]", "origins[7]", "origins[8]", "origins[9]"}},
		"origins of an admin key": {admin(Key{Origins: []string{"https://docs.example.com"}}), []string{"origins[0]"}},
		"a server key":            {Key{Kind: ServerKey, Project: "docs", Groups: []string{"staff"}, AllowIP: []string{"203.0.113.7"}}, nil},
		"a server key for nobody": {Key{Kind: ServerKey, Groups: []string{""}}, []string{"groups[0]", "project"}},
		"a server key in pages":   {Key{Kind: ServerKey, Project: "docs", Origins: []string{"https://docs.example.com"}}, []string{"origins[0]"}},
		"groups of an assistant":  {assistant(Key{Groups: []string{"staff"}}), []string{"groups[0]"}},
		"everything at once": {Key{Kind: AdminKey, Name: "two\nlines", Scopes: []string{"x"}, Origins: []string{"x"},
			AllowIP: []string{"x"}, ExpiresAt: at(-1)},
			[]string{"allowIp[0]", "expiresAt", "name", "origins[0]", "scopes[0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fields(t, c.key.Validate(now)); !slices.Equal(got, c.want) {
				t.Errorf("problems with %q, want %q", got, c.want)
			}
		})
	}
}

// An allow list never lets in nearly everybody, even if it is written in pieces.
func TestAnAllowListIsNeverNearlyEverybody(t *testing.T) {
	eights := func(n int) (list []string) { // the first n ranges of IPv4 with a prefix of 8 bits
		for i := range n {
			list = append(list, fmt.Sprintf("%d.0.0.0/8", i))
		}
		return list
	}
	for name, c := range map[string]struct {
		list    []string
		refused []string
	}{
		"one half":   {[]string{"0.0.0.0/1"}, []string{"allowIp[0]"}},
		"two halves": {[]string{"0.0.0.0/1", "128.0.0.0/1"}, []string{"allowIp[0]", "allowIp[1]"}},
		"a bit too wide": {[]string{"10.0.0.0/7", "2000::/15", "::/1"},
			[]string{"allowIp[0]", "allowIp[1]", "allowIp[2]"}},
		"the widest ranges":  {[]string{"11.0.0.0/8", "2001::/16"}, nil},
		"everybody in 256":   {append(eights(256), "1.1.1.1"), []string{"allowIp"}},
		"all but one of 256": {eights(255), nil},
	} {
		err := Key{Kind: AdminKey, AllowIP: c.list}.Validate(time.Now())
		var fields []string
		if invalid := new(InvalidError); errors.As(err, &invalid) {
			for _, p := range invalid.Problems {
				fields = append(fields, p.Field)
			}
		}
		if !slices.Equal(fields, c.refused) {
			t.Errorf("%s: problems with %v, want %v", name, fields, c.refused)
		}
	}
}
