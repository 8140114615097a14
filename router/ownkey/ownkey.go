// Package ownkey makes and reads the keys that the server signs for its own pages and commands. They are stored nowhere, and
// end by themselves.
package ownkey

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"docent/api"
)

// life is how long a key is good: the preview of the widget can ask for so long without its page being loaded again.
const life = 4 * time.Hour

type kind struct {
	prefix, label string // label is signed too, so that no key is taken for one of another kind
	kind          api.KeyKind
	id            string
}

var kinds = []kind{
	{"dct_preview_", "preview of the widget\x00", api.AssistantKey, "preview:"},
	{"dct_ask_", "question of the operator\x00", api.AssistantKey, "operator:"},
	{"dct_job_", "job of the operator\x00", api.AdminKey, "operator:"},
	{"dct_slack_", "question in Slack\x00", api.AssistantKey, string(api.ChannelSlack) + ":"},
	{"dct_discord_", "question in Discord\x00", api.AssistantKey, string(api.ChannelDiscord) + ":"},
}

// Preview returns an assistant key of a project for the preview of the widget in the console.
func Preview(secret []byte, p api.Project, now time.Time) string {
	return kinds[0].sign(secret, p, now)
}

// Operator returns a key of a project for a command that the operator runs on the server's machine.
func Operator(secret []byte, of api.KeyKind, p api.Project, now time.Time) string {
	if of == api.AdminKey {
		return kinds[2].sign(secret, p, now)
	}
	return kinds[1].sign(secret, p, now)
}

// chats is where the addresses are that people in chats have here: questions come from nowhere else with their keys.
const chats = "fd00::/8"

// Chat returns an assistant key of a project for what is asked in a kind of chat.
func Chat(secret []byte, in api.Channel, p api.Project, now time.Time) string {
	if in == api.ChannelSlack {
		return kinds[3].sign(secret, p, now)
	}
	return kinds[4].sign(secret, p, now)
}

// Channel returns the kind of chat that a key is for, or that it is a program's.
func Channel(id api.KeyID) api.Channel {
	for _, k := range kinds[3:] {
		if strings.HasPrefix(string(id), k.id) {
			return api.Channel(strings.TrimSuffix(k.id, ":"))
		}
	}
	return api.ChannelAPI
}

func (k kind) sign(secret []byte, p api.Project, now time.Time) string {
	body := binary.BigEndian.AppendUint64(nil, uint64(now.Add(life).Unix()))
	body = append(body, p.ID...)
	return k.prefix + base64.RawURLEncoding.EncodeToString(append(k.sum(secret, body), body...))
}

func (k kind) sum(secret, body []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(k.label))
	mac.Write(body)
	return mac.Sum(nil)
}

// Read is what a key stands for, but for the project's organization. It is of these kinds if ours is true, and to be refused
// then unless it is good.
func Read(secret []byte, key string, now time.Time) (_ api.Key, ours, good bool) {
	for _, k := range kinds {
		rest, ok := strings.CutPrefix(key, k.prefix)
		if !ok {
			continue
		}
		raw, err := base64.RawURLEncoding.DecodeString(rest)
		if err != nil || len(raw) < sha256.Size+8 {
			return api.Key{}, true, false
		}
		sum, body := raw[:sha256.Size], raw[sha256.Size:]
		if !hmac.Equal(sum, k.sum(secret, body)) || now.Unix() >= int64(binary.BigEndian.Uint64(body)) {
			return api.Key{}, true, false
		}
		project := api.ProjectID(body[8:])
		key := api.Key{ID: api.KeyID(k.id + string(project)), Kind: k.kind, Project: project}
		if Channel(key.ID) != api.ChannelAPI {
			key.AllowIP = []string{chats}
		}
		return key, true, true
	}
	return api.Key{}, false, false
}
