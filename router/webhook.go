package router

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/uptrace/bunrouter"

	"docent/api"
	"docent/router/reqbody"
)

// maxPushBody bounds what a code host may say of one push. It names up to thousands of commits.
const maxPushBody = 8 << 20

// errUnsigned refuses a push whose signature is not right. A project that takes no pushes and one that does not
// exist are refused with the same words, so that guessing tells nothing.
var errUnsigned = &keyError{kind: api.ErrUnauthorized,
	reason: "this push is not signed with the secret of a project's webhook: check the address, the secret, and that the project has one"}

// webhook takes in a push from GitHub, GitLab, Gitea or Forgejo. It needs no key: the code host signs what it sends
// with the project's secret, or sends the secret itself.
func (s *Server) webhook(x *exchange, req bunrouter.Request) error {
	id := api.ProjectID(param(req, "projectId"))
	secret, err := s.Pushes.Secret(req.Context(), id)
	if err != nil && !errors.Is(err, api.ErrNotFound) {
		return fmt.Errorf("look up a webhook's secret: %w", err)
	}
	if secret == "" {
		s.metrics.refuse("unauthorized")
		return errUnsigned
	}
	raw, release, err := s.body(x, req.Request, max(s.Bounds.BodyBytes, maxPushBody))
	if err != nil {
		return err
	}
	defer release()
	if !signed(req.Header, raw, secret) {
		s.metrics.refuse("unauthorized")
		return errUnsigned
	}
	push, ok, err := reqbody.DecodePush(req.Header, raw)
	if err != nil {
		return err
	}
	if !ok {
		x.WriteHeader(http.StatusNoContent) // a ping, a tag, a branch that was deleted, another event
		return nil
	}
	update, err := s.Pushes.Push(req.Context(), id, push)
	if err != nil {
		return named(err, "project")
	}
	out := struct {
		StatusID *api.UpdateID `json:"statusId"`
	}{}
	if update != "" {
		out.StatusID = &update
	}
	return encode(x, http.StatusAccepted, out)
}

// signed reports whether the body comes from who knows the secret. Of several signatures each must be right.
func signed(h http.Header, body []byte, secret string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	sum := mac.Sum(nil)
	found := false
	for _, name := range []string{"X-Hub-Signature-256", "X-Gitea-Signature", "X-Forgejo-Signature"} {
		for _, v := range h.Values(name) {
			got, err := hex.DecodeString(strings.TrimPrefix(v, "sha256="))
			if err != nil || !hmac.Equal(got, sum) {
				return false
			}
			found = true
		}
	}
	for _, v := range h.Values("X-Gitlab-Token") {
		have, want := sha256.Sum256([]byte(v)), sha256.Sum256([]byte(secret))
		if !hmac.Equal(have[:], want[:]) {
			return false
		}
		found = true
	}
	return found
}
