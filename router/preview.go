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

// previewLife is how long the preview of the widget in the console can ask without its page being loaded again.
const previewLife = 4 * time.Hour

const previewPrefix = "dct_preview_"

// PreviewKey is an assistant key of a project, for the preview of the widget in the console: it is stored nowhere, and
// ends by itself.
func PreviewKey(secret []byte, p api.Project, now time.Time) string {
	body := binary.BigEndian.AppendUint64(nil, uint64(now.Add(previewLife).Unix()))
	body = append(body, p.ID...)
	return previewPrefix + base64.RawURLEncoding.EncodeToString(append(previewSum(secret, body), body...))
}

func previewSum(secret, body []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("preview of the widget\x00"))
	mac.Write(body)
	return mac.Sum(nil)
}

// previewed is what a preview's key stands for.
func (s *Server) previewed(ctx context.Context, key string, now time.Time) (api.Key, error) {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(key, previewPrefix))
	if err != nil || len(raw) < sha256.Size+8 {
		return api.Key{}, errBadKey
	}
	sum, body := raw[:sha256.Size], raw[sha256.Size:]
	if !hmac.Equal(sum, previewSum(s.Secret, body)) || now.Unix() >= int64(binary.BigEndian.Uint64(body)) {
		return api.Key{}, errBadKey
	}
	p, err := s.Catalog.Project(ctx, api.ProjectID(body[8:]))
	if err != nil {
		return api.Key{}, errBadKey
	}
	return api.Key{ID: api.KeyID("preview:" + p.ID), Kind: api.AssistantKey, Org: p.Org, Project: p.ID}, nil
}
