package api

// Chats are the apps by which a project's assistant answers in chats. Anyone who may write to one reads the project.
type Chats struct {
	Slack   SlackApp   `json:"slack,omitzero"`
	Discord DiscordApp `json:"discord,omitzero"`
}

// A SlackApp answers in a workspace of Slack. Its tokens are files among the data directory's secrets.
type SlackApp struct {
	Team         string `json:"team,omitempty"` // what the workspace is called
	AppTokenFile string `json:"appTokenFile,omitempty"`
	BotTokenFile string `json:"botTokenFile,omitempty"`
}

// On reports whether there is an app.
func (a SlackApp) On() bool { return a != SlackApp{} }

// A DiscordApp answers in Discord. Its token is a file among the data directory's secrets.
type DiscordApp struct {
	Name      string `json:"name,omitempty"`
	PublicKey string `json:"publicKey,omitempty"` // in hex, by which requests are known to be Discord's
	TokenFile string `json:"tokenFile,omitempty"`
}

// On reports whether there is an app.
func (a DiscordApp) On() bool { return a != DiscordApp{} }
