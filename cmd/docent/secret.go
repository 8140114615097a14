package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"docent/api"
	"docent/ingest"
	"docent/secrets"
)

const (
	opProjectToken = "project.token"
	opProjectHook  = "project.webhook"
)

type (
	secretParams struct {
		ID     api.ProjectID `json:"id"`
		Secret string        `json:"secret,omitempty"`
		AppID  int64         `json:"appId,omitempty"`
		Remove bool          `json:"remove,omitempty"`
	}
	webhookMade struct {
		Secret  string `json:"secret"`
		Address string `json:"address"` // behind the server's own
	}
)

// storeToken keeps what a project's repository is reached with, and looks whether the code host takes it. One that it
// refuses is not kept, and the one before goes on to be used.
func (o *operations) storeToken(ctx context.Context, p secretParams, progress Progress) (ingest.Project, error) {
	project, err := o.stores.catalog.Project(ctx, p.ID)
	if err != nil {
		return ingest.Project{}, err
	}
	if p.Remove {
		project.TokenFile = ""
		return o.setProject(ctx, project, progress)
	}
	if problem := secrets.Check(p.Secret); problem != "" {
		return ingest.Project{}, invalid("token", problem)
	}
	name, err := o.stores.secrets.Keep(p.ID, p.Secret)
	if err != nil {
		return ingest.Project{}, err
	}
	project.TokenEnv, project.TokenFile = "", name
	if p.AppID != 0 {
		project.AppID = p.AppID
	}
	set, err := o.setProject(ctx, project, progress)
	if err != nil {
		err = errors.Join(err, o.stores.dropUnused(ctx, project))
	}
	return set, err
}

// storeWebhook gives a project's webhook a new secret, which is shown this once.
func (o *operations) storeWebhook(ctx context.Context, p secretParams, progress Progress) (webhookMade, error) {
	project, err := o.stores.catalog.Project(ctx, p.ID)
	if err != nil {
		return webhookMade{}, err
	}
	project.WebhookEnv, project.WebhookFile = "", ""
	made := webhookMade{Address: "/v1/webhook/" + string(p.ID) + "/push"}
	if !p.Remove {
		made.Secret = "whsec_" + strings.ToLower(rand.Text()+rand.Text())
		if project.WebhookFile, err = o.stores.secrets.Keep(p.ID, made.Secret); err != nil {
			return webhookMade{}, err
		}
	}
	if _, err := o.setProject(ctx, project, progress); err != nil {
		return webhookMade{}, errors.Join(err, o.stores.dropUnused(ctx, project))
	}
	return made, nil
}

// invalid is one problem with one field.
func invalid(field, message string) error {
	return &api.InvalidError{Problems: []api.Problem{{Field: field, Message: message}}}
}

// dropUnused removes the stored secrets of a state of a project that the project as it is now does not refer to.
func (s *stores) dropUnused(ctx context.Context, was api.Project) error {
	now, err := s.catalog.Project(ctx, was.ID)
	if err != nil && !errors.Is(err, api.ErrNotFound) {
		return err // whether it is used is not known
	}
	var errs []error
	for _, name := range []string{was.TokenFile, was.WebhookFile} {
		if name != "" && name != now.TokenFile && name != now.WebhookFile {
			errs = append(errs, s.secrets.Drop(name))
		}
	}
	return errors.Join(errs...)
}

// secretsInUse are the names of the stored secrets that projects, their webhooks and those of their reports refer to.
func (s *stores) secretsInUse(ctx context.Context) (map[string]bool, error) {
	projects, err := s.catalog.Projects(ctx)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, p := range projects {
		for _, part := range p.Parts() {
			for _, name := range []string{part.TokenFile, part.WebhookFile} {
				if name != "" {
					used[name] = true
				}
			}
		}
	}
	hooks, err := s.catalog.ReportHooks(ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range hooks {
		used[h.Secret] = true
	}
	outgoing, err := s.catalog.Webhooks(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, w := range outgoing {
		used[w.Secret], used[w.OldSecret] = true, true
	}
	return used, nil
}

// sweepSecrets removes the stored secrets that no project refers to.
func (s *stores) sweepSecrets(ctx context.Context) error {
	used, err := s.secretsInUse(ctx)
	if err != nil {
		return err
	}
	return s.secrets.Sweep(func(name string) bool { return used[name] })
}

func newProjectTokenCommand(o *operator) *cobra.Command {
	var p secretParams
	cmd := &cobra.Command{
		Use: "token NAME", Short: "Store the code host's token of a project, which is read from standard input",
		Long: "Store the token that a project's repository is reached with in the data directory, in a file that only its owner can read.\n" +
			"It is read from standard input, so that it is in no list of processes and in no shell's history. The code host is asked whether it\n" +
			"takes it. It is not shown again, and it is not in backups. With --app-id it is the private key of a GitHub App.",
		Example: `  docent project token docs <<< "$DOCS_TOKEN"`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !p.Remove {
				text, err := readSecretText(cmd)
				if err != nil {
					return err
				}
				p.Secret = text
			}
			var set ingest.Project
			if err := o.run(cmd, opProjectToken, p, &set); err != nil {
				return err
			}
			if p.Remove {
				return o.did(cmd, map[string]string{"removed": string(p.ID)}, "the stored token of %s is removed", p.ID)
			}
			return o.did(cmd, map[string]string{"stored": string(p.ID)}, "the token of %s is stored, and its source was read with it", p.ID)
		},
	}
	cmd.Flags().BoolVar(&p.Remove, "remove", false, "remove the stored token")
	cmd.Flags().Int64Var(&p.AppID, "app-id", 0, "id of a GitHub App whose private key it is")
	named(cmd, (*string)(&p.ID), "id", "the project's NAME", false)
	return cmd
}

// readHidden asks for a line at a terminal and reads it without showing it. The terminal stops showing what is typed before it
// asks: who answers at once, or pastes, is not seen either.
func readHidden(terminal *os.File, out io.Writer, prompt string) (_ string, err error) {
	before, err := term.MakeRaw(int(terminal.Fd()))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, term.Restore(int(terminal.Fd()), before)) }()
	return term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{terminal, out}, "").ReadPassword(prompt)
}

// readSecretText reads a secret from standard input; from a terminal it reads a line that is not shown.
func readSecretText(cmd *cobra.Command) (string, error) {
	if file, ok := cmd.InOrStdin().(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return readHidden(file, cmd.ErrOrStderr(), "Token: ")
	}
	text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), secrets.Most+2))
	return string(text), err
}

func newProjectWebhookCommand(o *operator) *cobra.Command {
	var p secretParams
	cmd := &cobra.Command{
		Use: "webhook NAME", Short: "Make a new secret for the code host's webhook of a project; it is shown once",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(o, cmd, opProjectHook, p, func(w io.Writer, made webhookMade) error {
				if p.Remove {
					_, err := fmt.Fprintf(w, "project %s takes no pushes any more\n", p.ID)
					return err
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "The secret is shown once; the webhook's address is the server's, and behind it %s:\n", made.Address)
				_, err := fmt.Fprintln(w, made.Secret)
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&p.Remove, "remove", false, "remove the secret: pushes are refused then")
	named(cmd, (*string)(&p.ID), "id", "the project's NAME", false)
	return cmd
}
