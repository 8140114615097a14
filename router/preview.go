package router

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"docent/api"
)

// ownLife is how long a key is good that the server signs for its own pages and commands: the preview of the widget can
// ask for so long without its page being loaded again.
const ownLife = 4 * time.Hour

// An ownKey is a kind of key that the server signs for its own pages and commands. It is stored nowhere, and ends by
// itself.
type ownKey struct {
	prefix, label string // label is signed too, so that no key is taken for one of another kind
	kind          api.KeyKind
	id            string
}

var ownKeys = []ownKey{
	{"dct_preview_", "preview of the widget\x00", api.AssistantKey, "preview:"},
	{"dct_ask_", "question of the operator\x00", api.AssistantKey, "operator:"},
	{"dct_job_", "job of the operator\x00", api.AdminKey, "operator:"},
}

// PreviewKey returns an assistant key of a project for the preview of the widget in the console.
func PreviewKey(secret []byte, p api.Project, now time.Time) string {
	return ownKeys[0].sign(secret, p, now)
}

// OperatorKey returns a key of a project for a command that the operator runs on the server's machine.
func OperatorKey(secret []byte, kind api.KeyKind, p api.Project, now time.Time) string {
	if kind == api.AdminKey {
		return ownKeys[2].sign(secret, p, now)
	}
	return ownKeys[1].sign(secret, p, now)
}

func (k ownKey) sign(secret []byte, p api.Project, now time.Time) string {
	body := binary.BigEndian.AppendUint64(nil, uint64(now.Add(ownLife).Unix()))
	body = append(body, p.ID...)
	return k.prefix + base64.RawURLEncoding.EncodeToString(append(k.sum(secret, body), body...))
}

func (k ownKey) sum(secret, body []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(k.label))
	mac.Write(body)
	return mac.Sum(nil)
}

// signed is what a key stands for that the server has signed; false if it is none of these.
func (s *Server) signed(ctx context.Context, key string, now time.Time) (_ api.Key, ours bool, err error) {
	for _, k := range ownKeys {
		rest, ok := strings.CutPrefix(key, k.prefix)
		if !ok {
			continue
		}
		raw, err := base64.RawURLEncoding.DecodeString(rest)
		if err != nil || len(raw) < sha256.Size+8 {
			return api.Key{}, true, errBadKey
		}
		sum, body := raw[:sha256.Size], raw[sha256.Size:]
		if !hmac.Equal(sum, k.sum(s.Secret, body)) || now.Unix() >= int64(binary.BigEndian.Uint64(body)) {
			return api.Key{}, true, errBadKey
		}
		p, err := s.Catalog.Project(ctx, api.ProjectID(body[8:]))
		if err != nil {
			return api.Key{}, true, errBadKey
		}
		return api.Key{ID: api.KeyID(k.id + string(p.ID)), Kind: k.kind, Org: p.Org, Project: p.ID}, true, nil
	}
	return api.Key{}, false, nil
}
