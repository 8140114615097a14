package projects

import (
	"docent/api"
	"docent/web/console"
)

// A readersView is what signs the tokens that say who the readers of private documentation are.
type readersView struct {
	Secrets []api.ReaderSecret
	JWKS    string
	Full    bool   // no further secret can be made
	Made    string // shown once
}

// readersOf reads it of the project as it is now.
func (s *handler) readersOf(v *console.Visit, view *readersView) error {
	p, err := s.Catalog.Project(v.Context(), v.Project.ID)
	if err != nil {
		return api.Named(err, "project")
	}
	view.Secrets, view.JWKS, view.Full = p.ReaderSecrets, p.ReaderJWKS, len(p.ReaderSecrets) >= api.MaxReaderSecrets
	return nil
}

// newReaderSecret makes a secret that signs reader tokens. It is on the page that it leads to, once, and nowhere else.
func (s *handler) newReaderSecret(v *console.Visit) error {
	id, secret, err := s.Setup.NewReaderSecret(v.Context(), v.Project.ID)
	if err != nil {
		return api.Named(err, "project")
	}
	v.Audit("reader_secret.create", id, "")
	return v.Once(keysPath(v), shownKey{Reader: secret})
}

// retireReaderSecret ends a secret.
func (s *handler) retireReaderSecret(v *console.Visit) error {
	id := v.Form.Get("secret")
	if err := s.Setup.RetireReaderSecret(v.Context(), v.Project.ID, id); err != nil {
		return err
	}
	v.Audit("reader_secret.retire", id, "")
	return v.Done(keysPath(v), "The reader secret is retired. Tokens that it signed are refused.")
}
