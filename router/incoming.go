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
	d := delivery(req.Header)
	err = s.delivered(x, req, id, secret, &d)
	if err != nil {
		said := read(err, http.Header{})
		d.Status, d.Outcome = said.status, said.message
	}
	if req.Header.Get(WebhookTest) == "" { // the page that sent it shows what came of it
		s.Pushes.Delivered(req.Context(), id, d)
	}
	return err
}

// WebhookTest is a header of what the console sends to try a webhook: it is no delivery of a code host's.
const WebhookTest = "X-Docent-Test"

// delivery is what a code host says of itself and the event in its headers.
func delivery(h http.Header) api.Delivery {
	d := api.Delivery{Sender: text(h.Get("User-Agent"), 100)}
	for _, host := range []string{"GitHub", "Gitea", "Forgejo", "Gitlab"} {
		if event := h.Get("X-" + host + "-Event"); event != "" { // of several the last: Gitea sends GitHub's too
			d.Sender, d.Event = host, text(event, 100)
		}
	}
	return d
}

// text is a header's value as it may be shown: cut, and in characters that are text.
func text(s string, most int) string {
	s = strings.ToValidUTF8(s, "")
	return s[:min(len(s), most)]
}

// delivered takes in one request to a webhook.
func (s *Server) delivered(x *exchange, req bunrouter.Request, id api.ProjectID, secret string, d *api.Delivery) error {
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
		return s.hinted(x, req, id, raw, d)
	}
	d.Repository, d.Branch, d.Commit = push.Repository, push.Branch, push.Commit
	update, err := s.Pushes.Push(req.Context(), id, push)
	if err != nil {
		return api.Named(err, "project")
	}
	out := struct {
		StatusID *api.UpdateID `json:"statusId"`
	}{}
	d.Status = http.StatusAccepted
	d.Outcome = "taken in, and not to the documentation's branch: automations that wait for it run"
	if update != "" {
		out.StatusID, d.Update, d.Outcome = &update, update, "taken in: the documentation is read again"
	}
	return encode(x, http.StatusAccepted, out)
}

// hinted takes in what is no push to a branch. If it is about a pull request, that is looked at soon: what was said
// there, and by whom, the code host is asked.
func (s *Server) hinted(x *exchange, req bunrouter.Request, id api.ProjectID, raw []byte, d *api.Delivery) error {
	d.Status, d.Outcome = http.StatusNoContent, "taken in, and it is no push to a branch: nothing is to be done"
	if hint, ok := reqbody.DecodeHint(req.Header, raw); ok {
		d.Repository = hint.Repository
		ours, err := s.Reviews.Hint(req.Context(), id, hint)
		if err != nil {
			return api.Named(err, "project")
		}
		checked, err := s.Pushes.Pull(req.Context(), id, hint)
		if err != nil {
			return api.Named(err, "project")
		}
		d.Outcome = fmt.Sprintf("taken in, and #%d is no pull request of a job's: nothing is to be done", hint.Number)
		if checked {
			d.Outcome = fmt.Sprintf("taken in: the pages that pull request #%d concerns are looked for", hint.Number)
		}
		if ours {
			d.Outcome = fmt.Sprintf("taken in: pull request #%d is looked at", hint.Number)
		}
	}
	x.WriteHeader(d.Status) // otherwise a ping, a tag, a branch that was deleted, another event
	return nil
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
