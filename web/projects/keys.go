package projects

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/web/console"
)

type keysView struct {
	Active   []keyLine
	Ended    []keyLine // revoked or expired
	Project  []Allowance
	Form     keyForm
	Problems map[string]string
	Made     *madeKey // shown once
	Server   string   // where programs reach the API
	Readers  readersView
}

type keyLine struct {
	api.Key
	State string
	Left  []Allowance
	Next  string // the id of its successor if the row's form makes one: sent twice, it makes one
}

// A keyForm is what was filled in.
type keyForm struct {
	Kind                            api.KeyKind
	Name, Expires, Origins, AllowIP string
	Groups                          string // of a server key, one a line
	Read, Write                     bool
}

// A madeKey is a key that was made just now. Its secret is kept nowhere.
type madeKey struct {
	api.Key
	Secret string
	Curl   string
	Chat   string // for useChat
}

// A shownKey is what the page shows once: a key with its secret, or the secret that signs reader tokens.
type shownKey struct {
	Kind                 api.KeyKind
	Name, Secret, Server string
	Reader               string
}

func keysPath(v *console.Visit) string { return v.Base() + "/keys" }

// projectKeys are the keys that the page shows: those made for the project, and those of its organization that were
// made for none.
func (s *handler) projectKeys(v *console.Visit) ([]api.Key, error) {
	keys, err := s.Catalog.Keys(v.Context(), catalog.KeyQuery{Org: v.Org})
	return slices.DeleteFunc(keys, func(k api.Key) bool { return k.Project != "" && k.Project != v.Project.ID }), err
}

func (s *handler) keysOf(v *console.Visit) (keysView, error) {
	view := keysView{Server: s.PublicURL, Form: keyForm{Kind: api.AssistantKey, Read: true, Write: true},
		Project: s.Allowances.OfProject(v.Project)}
	if err := s.readersOf(v, &view.Readers); err != nil {
		return view, err
	}
	keys, err := s.projectKeys(v)
	if err != nil {
		return view, err
	}
	slices.Reverse(keys) // the newest first
	for _, k := range keys {
		line := keyLine{Key: k, State: "active"}
		switch {
		case k.RevokedAt != nil:
			line.State = "revoked"
		case k.ExpiresAt != nil && !v.Now.Before(*k.ExpiresAt):
			line.State = "expired"
		}
		if line.State != "active" {
			view.Ended = append(view.Ended, line)
			continue
		}
		line.Left, line.Next = s.Allowances.OfKey(v.Project, k), api.NewID(api.KeyPrefix, v.Now)
		view.Active = append(view.Active, line)
	}
	return view, nil
}

func (s *handler) showKeys(v *console.Visit) error {
	view, err := s.keysOf(v)
	if err != nil {
		return err
	}
	if kind := api.KeyKind(v.Query("kind")); kind == api.AdminKey || kind == api.ServerKey {
		view.Form.Kind = kind
	}
	var shown shownKey
	if v.TakeOnce(&shown) {
		view.Readers.Made = shown.Reader
		if shown.Secret != "" {
			view.Made = &madeKey{Key: api.Key{Kind: shown.Kind, Name: shown.Name}, Secret: shown.Secret}
			view.Made.Curl, view.Made.Chat = snippets(shown.Server, v.Project, shown.Kind, shown.Secret)
		}
	}
	return s.Render(v, "keys", "API keys", view)
}

// createKey makes a key. Its secret is on the page that it leads to, once, and nowhere else.
func (s *handler) createKey(v *console.Visit) error {
	f := keyForm{Kind: api.KeyKind(v.Form.Get("kind")), Name: strings.TrimSpace(v.Form.Get("name")),
		Expires: v.Form.Get("expires"), Origins: v.Form.Get("origins"), AllowIP: v.Form.Get("allowIp"),
		Groups: v.Form.Get("groups"), Read: v.Form.Has("read"), Write: v.Form.Has("write")}
	key, err := f.key(v)
	secret := ""
	if err == nil {
		if err := v.Who.Rights.MayGive(api.GivenKey(key)); err != nil {
			return err
		}
		secret = api.NewSecret(key.Kind)
		key.Hint = api.SecretHint(secret)
		key, err = s.Catalog.AddKey(v.Context(), key, api.HashSecret(secret))
	}
	if err != nil && !errors.Is(err, api.ErrInvalid) {
		return err
	}
	if err != nil {
		view, also := s.keysOf(v)
		if also != nil {
			return also
		}
		view.Form, view.Problems = f, fieldProblems(err)
		return s.RenderStatus(v, http.StatusBadRequest, "keys", "API keys", view)
	}
	v.Audit("key.create", string(key.ID), strings.TrimSpace(string(key.Kind)+" "+key.Name))
	return v.Once(keysPath(v), shownKey{Kind: key.Kind, Name: key.Name, Secret: secret, Server: v.Absolute("")})
}

// key is the key that a form asks for.
func (f keyForm) key(v *console.Visit) (api.Key, error) {
	k := api.Key{Kind: f.Kind, Org: v.Org, Project: v.Project.ID, Name: f.Name, AllowIP: console.Lines(f.AllowIP), CreatedAt: v.Now}
	if f.Expires != "" {
		day, err := time.Parse(time.DateOnly, f.Expires)
		if err != nil {
			return k, console.Invalid("expires", "must be a day, such as 2027-01-31")
		}
		end := day.AddDate(0, 0, 1) // the day included
		k.ExpiresAt = &end
	}
	switch f.Kind {
	case api.AssistantKey:
		k.Origins = console.Lines(f.Origins)
	case api.ServerKey:
		k.Groups = console.Lines(f.Groups)
	case api.AdminKey:
		if !f.Read && !f.Write {
			return k, console.Invalid("scopes", "choose what the key may do")
		}
		if !f.Read || !f.Write {
			k.Scopes = []string{api.ScopeRead}
			if f.Write {
				k.Scopes = []string{api.ScopeWrite}
			}
		}
	}
	return k, k.Validate(v.Now)
}

// fieldProblems are problems by the name of the form's field: of a list, those of all its entries.
func fieldProblems(err error) map[string]string {
	out := map[string]string{}
	var wrong *api.InvalidError
	if !errors.As(err, &wrong) {
		return out
	}
	for _, p := range wrong.Problems {
		name, _, _ := strings.Cut(p.Field, "[")
		if name == "expiresAt" {
			name = "expires"
		}
		text := p.Message
		if _, entry, ok := strings.Cut(p.Field, "["); ok {
			text = "entry " + ordinal(entry) + " " + text
		}
		out[name] = strings.TrimPrefix(out[name]+"; "+text, "; ")
	}
	return out
}

// ordinal is which entry of a list "2]" means, as people count.
func ordinal(index string) string {
	n, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
	if err != nil {
		return index
	}
	return strconv.Itoa(n + 1)
}

// snippets show a key at work.
func snippets(server string, p api.Project, kind api.KeyKind, secret string) (curl, chat string) {
	if kind == api.AdminKey {
		return "curl " + server + "/v2/agent/" + string(p.ID) + "/job \\\n  -H 'Authorization: Bearer " + secret +
			"' \\\n  -H 'Content-Type: application/json' \\\n" +
			"  -d '{\"prompt\": \"Fix the typos on the start page\"}'", ""
	}
	address := server + "/discovery/v2/assistant/" + p.Domain + "/message"
	curl = "curl -N " + address + " \\\n  -H 'Authorization: Bearer " + secret +
		"' \\\n  -H 'Content-Type: application/json' \\\n  -d '{\"fp\": \"anonymous\", \"messages\": " +
		"[{\"role\": \"user\", \"parts\": [{\"type\": \"text\", \"text\": \"How do I begin?\"}]}]}'"
	if kind == api.ServerKey { // secret: never in a page
		return curl, ""
	}
	chat = `import { useRef } from "react";
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";

const transport = (thread) => new DefaultChatTransport({
  api: "` + address + `",
  headers: { Authorization: "Bearer ` + secret + `" },
  body: () => ({ fp: "anonymous", threadId: thread.id ?? null }),
});

export function Chat() {
  const thread = useRef({});
  const { messages, sendMessage, status } = useChat({
    transport: transport(thread.current),
    onFinish: ({ message }) => { thread.current.id = message.metadata?.threadId; },
  });
  // Render message.parts: "text" parts hold the answer, "source-url" parts the sources.
}`
	return curl, chat
}

// sentKey is the key of the page that a form is about.
func (s *handler) sentKey(v *console.Visit) (api.Key, error) {
	keys, err := s.projectKeys(v)
	if err != nil {
		return api.Key{}, err
	}
	at := slices.IndexFunc(keys, func(k api.Key) bool { return string(k.ID) == v.Form.Get("key") })
	if at < 0 {
		return api.Key{}, api.Missing("key")
	}
	return keys[at], nil
}

func (s *handler) revokeKey(v *console.Visit) error {
	key, err := s.sentKey(v)
	if err != nil {
		return err
	}
	if err := s.Catalog.RevokeKey(v.Context(), key.ID, v.Now); err != nil {
		return err
	}
	v.Audit("key.revoke", string(key.ID), strings.TrimSpace(string(key.Kind)+" "+key.Name))
	return v.Done(keysPath(v), "The key "+cmp.Or(key.Name, key.Hint)+" is revoked: the next request with it is refused.")
}

// overlap is how long a key goes on beside its successor.
const overlap = 24 * time.Hour

// rotateKey makes the successor of a key, which ends in a day, or now if it has leaked. A form that is sent twice makes one,
// whose secret the page shows if the browser has kept the first response.
func (s *handler) rotateKey(v *console.Visit) error {
	key, err := s.sentKey(v)
	if err != nil {
		return err
	}
	if err := v.Who.Rights.MayGive(api.GivenKey(key)); err != nil {
		return err
	}
	until := v.Now
	if !v.Form.Has("now") {
		until = until.Add(overlap)
	}
	secret, form := "", v.Form.Get("next")
	next, err := s.Catalog.RotateKey(v.Context(), key.ID, func(old api.Key) (next api.Key, _ [32]byte) {
		if next, secret = old.Successor(v.Now); api.ValidID(api.KeyPrefix, form) {
			next.ID = api.KeyID(form)
		}
		return next, api.HashSecret(secret)
	}, until)
	if errors.Is(err, api.ErrConflict) && form != "" {
		if now, also := s.sentKey(v); also == nil && now.RotatedTo == api.KeyID(form) {
			return v.Done(keysPath(v), "The key "+cmp.Or(key.Name, key.Hint)+" is rotated: its successor is "+form+
				". If you have not seen its secret, rotate the successor.")
		}
	}
	if err != nil {
		return err
	}
	v.Audit("key.rotate", string(key.ID), "by "+string(next.ID))
	return v.Once(keysPath(v), shownKey{Kind: next.Kind, Name: next.Name, Secret: secret, Server: v.Absolute("")})
}
