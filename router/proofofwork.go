package router

import (
	"errors"
	"net/http"

	"github.com/uptrace/bunrouter"

	"docent/api"
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
	most := x.project.Options.ProofOfWork
	if most == 0 {
		return &api.StateError{Kind: api.ErrNotFound, Reason: "this project asks for no proof of work"}
	}
	return encode(x, http.StatusOK, s.proofs.Make(string(x.project.ID), most, s.Now()))
}

// proven refuses a question without the proof of work that its project asks for. A key that is limited to addresses is a
// server's own: whoever finds it in a page can do nothing with it. again lets the solution be used again.
func (s *Server) proven(x *exchange, req *http.Request) (again func(), err error) {
	if x.project.Options.ProofOfWork == 0 || len(x.key.AllowIP) > 0 {
		return func() {}, nil
	}
	again, err = s.proofs.Use(req.Context(), string(x.project.ID), req.Header.Get(proofHeader), s.Now())
	var refused proof.Error
	if err != nil && !errors.As(err, &refused) {
		return nil, err
	}
	if err != nil {
		s.metrics.refuse("proof_of_work")
		return nil, &workError{err, "/discovery/v1/assistant/" + x.project.Domain + "/challenge"}
	}
	return again, nil
}
