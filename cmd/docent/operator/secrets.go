package operator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"docent/api"
	"docent/persistence/secrets"
	"docent/router/discord"
	"docent/router/slack"
	"docent/search/sources"
)

type (
	// ReaderSecretParams name a secret that signs reader tokens.
	ReaderSecretParams struct {
		Project api.ProjectID `json:"project"`
		ID      string        `json:"id,omitempty"`
	}
	// ReaderSecretMade is a new one, whose text is shown once.
	ReaderSecretMade struct {
		ID     string `json:"id"`
		Secret string `json:"secret"`
	}
	// ReaderSecretLine is one without its text.
	ReaderSecretLine struct {
		ID        string    `json:"id"`
		CreatedAt time.Time `json:"createdAt"`
	}
)

// createReaderSecret gives a project a further secret to sign reader tokens with, which is shown this once.
func (o *Service) createReaderSecret(ctx context.Context, p ReaderSecretParams) (made ReaderSecretMade, err error) {
	made.ID, made.Secret = api.NewID(api.ReaderSecretPrefix, time.Now()), "dct_rds_"+rand.Text()+rand.Text()
	file, err := o.stores.Secrets.Keep(p.Project, made.Secret)
	if err != nil {
		return ReaderSecretMade{}, err
	}
	_, err = o.stores.Catalog.ChangeProject(ctx, p.Project, func(now api.Project) (api.Project, error) {
		if len(now.ReaderSecrets) >= api.MaxReaderSecrets {
			return now, &api.StateError{Kind: api.ErrConflict, Reason: fmt.Sprintf("project %s has %d reader secrets already: "+
				"retire one first (docent reader-secret list %[1]s)", p.Project, len(now.ReaderSecrets))}
		}
		now.ReaderSecrets = append(slices.Clone(now.ReaderSecrets),
			api.ReaderSecret{ID: made.ID, File: file, CreatedAt: time.Now().UTC()})
		return now, nil
	})
	if err != nil {
		return ReaderSecretMade{}, errors.Join(err, o.stores.Secrets.Drop(file))
	}
	return made, nil
}

func (o *Service) listReaderSecrets(ctx context.Context, p ReaderSecretParams) ([]ReaderSecretLine, error) {
	project, err := o.stores.Catalog.Project(ctx, p.Project)
	if err != nil {
		return nil, err
	}
	list := make([]ReaderSecretLine, 0, len(project.ReaderSecrets))
	for _, s := range project.ReaderSecrets {
		list = append(list, ReaderSecretLine{s.ID, s.CreatedAt})
	}
	return list, nil
}

// retireReaderSecret ends a secret: tokens that it has signed are refused from then on.
func (o *Service) retireReaderSecret(ctx context.Context, p ReaderSecretParams) error {
	var retired api.ReaderSecret
	_, err := o.stores.Catalog.ChangeProject(ctx, p.Project, func(now api.Project) (api.Project, error) {
		at := slices.IndexFunc(now.ReaderSecrets, func(s api.ReaderSecret) bool { return s.ID == p.ID })
		if at < 0 {
			return now, api.Missing("reader secret")
		}
		retired = now.ReaderSecrets[at]
		now.ReaderSecrets = slices.Delete(slices.Clone(now.ReaderSecrets), at, at+1)
		return now, nil
	})
	if err != nil {
		return err
	}
	return o.stores.Secrets.Drop(retired.File)
}

type (
	// SecretParams are a secret of a project, or its removal.
	SecretParams struct {
		ID     api.ProjectID `json:"id"`
		Secret string        `json:"secret,omitempty"`
		AppID  int64         `json:"appId,omitempty"`
		Remove bool          `json:"remove,omitempty"`
	}
	// WebhookMade is a new secret of a project's webhook, which is shown once.
	WebhookMade struct {
		Secret  string `json:"secret"`
		Address string `json:"address"` // behind the server's own
	}
)

// storeToken keeps what a project's repository is reached with, and looks whether the code host takes it. One that it
// refuses is not kept, and the one before goes on to be used.
func (o *Service) storeToken(ctx context.Context, p SecretParams, progress Progress) (sources.Project, error) {
	project, err := o.stores.Catalog.Project(ctx, p.ID)
	if err != nil {
		return sources.Project{}, err
	}
	if p.Remove {
		project.TokenFile = ""
		return o.setProject(ctx, project, progress)
	}
	if problem := secrets.Check(p.Secret); problem != "" {
		return sources.Project{}, invalid("token", problem)
	}
	name, err := o.stores.Secrets.Keep(p.ID, p.Secret)
	if err != nil {
		return sources.Project{}, err
	}
	project.TokenEnv, project.TokenFile = "", name
	if p.AppID != 0 {
		project.AppID = p.AppID
	}
	set, err := o.setProject(ctx, project, progress)
	if err != nil {
		err = errors.Join(err, o.dropUnused(ctx, project))
	}
	return set, err
}

// storeWebhook gives a project's webhook a new secret, which is shown this once.
func (o *Service) storeWebhook(ctx context.Context, p SecretParams, progress Progress) (WebhookMade, error) {
	project, err := o.stores.Catalog.Project(ctx, p.ID)
	if err != nil {
		return WebhookMade{}, err
	}
	project.WebhookEnv, project.WebhookFile = "", ""
	made := WebhookMade{Address: "/v1/webhook/" + string(p.ID) + "/push"}
	if !p.Remove {
		made.Secret = "whsec_" + strings.ToLower(rand.Text()+rand.Text())
		if project.WebhookFile, err = o.stores.Secrets.Keep(p.ID, made.Secret); err != nil {
			return WebhookMade{}, err
		}
	}
	if _, err := o.setProject(ctx, project, progress); err != nil {
		return WebhookMade{}, errors.Join(err, o.dropUnused(ctx, project))
	}
	return made, nil
}

type (
	// ChatParams are the tokens of a project's app in a chat, one a line, or its removal.
	ChatParams struct {
		ID     api.ProjectID `json:"id"`
		App    api.Channel   `json:"app"`
		Secret string        `json:"secret,omitempty"`
		Remove bool          `json:"remove,omitempty"`
	}
	// ChatMade is a project's app in a chat.
	ChatMade struct {
		App     api.Channel `json:"app"`
		Name    string      `json:"name,omitempty"`    // of the workspace, or of the app
		Address string      `json:"address,omitempty"` // behind the server's own, where the chat sends what people do
	}
)

// setChat has a project's assistant answer in a chat, or not any more. Tokens that the chat refuses are not kept.
func (o *Service) setChat(ctx context.Context, p ChatParams) (made ChatMade, err error) {
	old, err := o.stores.Catalog.Project(ctx, p.ID)
	if err != nil {
		return made, err
	}
	var app api.Chats // the new one
	made.App = p.App
	if !p.Remove {
		if app, made, err = o.checkedChat(ctx, p); err != nil {
			return made, err
		}
	}
	_, err = o.stores.Catalog.ChangeProject(ctx, p.ID, func(now api.Project) (api.Project, error) {
		switch p.App {
		case api.ChannelSlack:
			now.Chats.Slack = app.Slack
		case api.ChannelDiscord:
			now.Chats.Discord = app.Discord
		default:
			return now, invalid("app", "must be slack or discord")
		}
		return now, nil
	})
	return made, errors.Join(err, o.dropUnused(ctx, api.Project{ID: p.ID, Chats: app}), o.dropUnused(ctx, old))
}

// checkedChat asks a chat whether it takes the tokens, and keeps them.
func (o *Service) checkedChat(ctx context.Context, p ChatParams) (app api.Chats, made ChatMade, err error) {
	tokens, c := strings.Fields(p.Secret), o.stores.Config
	made.App = p.App
	var files []*string
	switch {
	case p.App == api.ChannelSlack && len(tokens) == 2:
		slices.Sort(tokens) // xapp-, xoxb-
		made.Name, err = slack.Check(ctx, c.SlackURL, tokens[0], tokens[1])
		app.Slack.Team, files = made.Name, []*string{&app.Slack.AppTokenFile, &app.Slack.BotTokenFile}
	case p.App == api.ChannelSlack:
		err = errors.New("must be two tokens, one a line: the app-level token (xapp-…) and the bot token (xoxb-…)")
	case p.App == api.ChannelDiscord && len(tokens) == 1:
		app.Discord, err = discord.Check(ctx, c.DiscordURL, tokens[0])
		files = []*string{&app.Discord.TokenFile}
		made.Name, made.Address = app.Discord.Name, strings.Replace(discord.Pattern, ":projectId", string(p.ID), 1)
	default:
		err = errors.New("must be the bot token of an app in slack or discord")
	}
	if err != nil {
		return app, made, invalid("secret", err.Error())
	}
	for i, to := range files {
		if *to, err = o.stores.Secrets.Keep(p.ID, tokens[i]); err != nil {
			return app, made, err
		}
	}
	return app, made, nil
}

// invalid is one problem with one field.
func invalid(field, message string) error {
	return &api.InvalidError{Problems: []api.Problem{{Field: field, Message: message}}}
}

// dropUnused removes the stored secrets of a state of a project that the project as it is now does not refer to.
func (o *Service) dropUnused(ctx context.Context, was api.Project) error {
	now, err := o.stores.Catalog.Project(ctx, was.ID)
	if err != nil && !errors.Is(err, api.ErrNotFound) {
		return err // whether it is used is not known
	}
	var errs []error
	used := now.SecretFiles()
	for _, name := range was.SecretFiles() {
		if !slices.Contains(used, name) {
			errs = append(errs, o.stores.Secrets.Drop(name))
		}
	}
	return errors.Join(errs...)
}
