package server

import (
	"net/http"

	"docent/api"
	"docent/router/chatapp"
	"docent/router/discord"
	"docent/router/oauth"
	"docent/router/slack"
)

// chats are the apps that answer in chats.
type chats struct {
	slack   *slack.Slack
	discord *discord.Discord
	apps    []*chatapp.App
}

// openChats makes the apps, which ask and answer once there is an entrance.
func (a *Server) openChats(secret []byte) {
	app := func(kind api.Channel) *chatapp.App {
		one := chatapp.New(kind, secret, a.config.Now)
		a.chats.apps = append(a.chats.apps, one)
		return one
	}
	catalog := a.Stores.Catalog
	a.chats.slack = slack.New(slack.Deps{App: app(api.ChannelSlack), Projects: catalog.Projects, Project: catalog.Project,
		Secret: a.Stores.Secrets.Read, Tasks: a.System.Tasks(), Log: a.Log, URL: a.config.SlackURL})
	a.chats.discord = &discord.Discord{Deps: discord.Deps{App: app(api.ChannelDiscord), Project: catalog.Project,
		Secret: a.Stores.Secrets.Read, Now: a.config.Now, Log: a.Log, URL: a.config.DiscordURL}}
}

// routes are what chats send to this server.
func (c *chats) routes() []oauth.Route {
	return []oauth.Route{{Method: http.MethodPost, Pattern: discord.Pattern, Serve: c.discord.Serve}}
}

// chatsOver says where questions go. What is being said ends before that does.
func (a *Server) chatsOver(entrance http.Handler) {
	for _, app := range a.chats.apps {
		app.Over(entrance)
		a.closers = append(a.closers, app.Close)
	}
}
