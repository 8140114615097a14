package router

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/uptrace/bunrouter"

	"docent/api"
	"docent/internal/grant"
	"docent/persistence/quota"
	"docent/router/proof"
)

// proofHeader brings the solution of a challenge, as altcha's clients encode it.
const proofHeader = "X-Altcha"

// A workError refuses a question for its proof of work.
type workError struct {
	reason    error
	challenge string // where there is one
}

// Chat clients show their readers what they are answered.
func (e *workError) Error() string {
	return "This site asks browsers for a small proof of work with each question, and the question was not taken: " +
		e.reason.Error() + ". Please reload the page and ask again. Programs get a challenge with GET " + e.challenge +
		" and send its solution in the header " + proofHeader + "."
}

func (e *workError) Unwrap() error { return api.ErrForbidden }

// challenge gives a proof of work to solve.
func (s *Server) challenge(x *exchange, _ bunrouter.Request) error {
	most := cmp.Or(x.project.Options.ProofOfWork, pressedProof)
	return encode(x, http.StatusOK, s.proofs.Make(string(x.project.ID), most, s.Now()))
}

// pressedProof is the largest number of a challenge if the project names none: a phone finds it within a second.
const pressedProof = 200_000

// proven refuses a question without a proof of work if its project asks for one, or if the client's network has asked
// as many as it may without one. A server's own key needs none: it is of no use to somebody who finds it in a page. A
// solution that the grant does not keep can be used again.
func (s *Server) proven(g *grant.Grant, x *exchange, req *http.Request, uses []quota.Use, unproven int) error {
	if ofServer(x.key) || x.project.Options.ProofOfWork == 0 && !s.pressed(uses, unproven) {
		return nil
	}
	again, err := s.proofs.Use(req.Context(), string(x.project.ID), req.Header.Get(proofHeader), s.Now())
	var refused proof.Error
	switch {
	case errors.As(err, &refused):
		s.metrics.refuse("proof_of_work")
		return &workError{err, "/discovery/v1/assistant/" + x.project.Domain + "/challenge"}
	case err != nil:
		return err
	}
	g.Add(again)
	return nil
}

// pressed reports whether a network has asked as many questions today as it may without a proof of work.
func (s *Server) pressed(uses []quota.Use, unproven int) bool {
	if unproven < 0 {
		return false
	}
	share := uses[len(uses)-1]
	left, _ := s.Quotas.Remaining(s.Now(), share)
	return share.Limit-left >= unproven
}
