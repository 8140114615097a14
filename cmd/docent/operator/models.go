package operator

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"docent/api"
	"docent/cmd/docent/config"
	"docent/cmd/docent/doctor"
	"docent/model"
	"docent/model/remote"
	"docent/web/system"
)

// modelTrialTime is how long a model may take to answer when it is tested.
const modelTrialTime = 45 * time.Second

// embeddingsName names the endpoint of embeddings of the configuration among the models.
const embeddingsName = "embeddings"

// namesTime is how long an endpoint may take to list its models.
const namesTime = 10 * time.Second

// languageModels lets an operator connect models in the console.
type languageModels struct{ ops *Service }

// List are the models of the configuration and the connected ones, by their names.
func (l languageModels) List(ctx context.Context) (system.Models, error) {
	c := l.ops.stores.Config
	connected, err := l.ops.stores.Catalog.LanguageModels(ctx)
	if err != nil {
		return system.Models{}, err
	}
	out := system.Models{}
	if c.ChoosesModel() {
		out.Chosen = c.Model
	}
	known := map[string]model.Choice{}
	for _, choice := range l.ops.server.Models.Choices() {
		known[choice.Name] = choice
	}
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		m := c.Models[name]
		out.List = append(out.List, system.Model{Configured: true, Answers: known[name].Default, Agent: known[name].Agent,
			LanguageModel: api.LanguageModel{Name: name, Provider: m.Provider, BaseURL: m.BaseURL, Model: m.Model}})
	}
	if e := c.Embeddings; e.Model != "" {
		out.List = append(out.List, system.Model{Configured: true, LanguageModel: api.LanguageModel{Name: embeddingsName, Embeds: true,
			Provider: model.OpenAI, BaseURL: e.BaseURL, Model: e.Model}})
	}
	for _, m := range connected {
		line := system.Model{LanguageModel: m, Answers: known[m.Name].Default, Agent: known[m.Name].Agent}
		if _, err := config.Usable(c, m, l.ops.stores.Secrets.Read); err != nil {
			line.Problem = err.Error()
		}
		out.List = append(out.List, line)
	}
	return out, nil
}

// Save connects a model, or changes one. An empty key keeps the one that is stored, unless the address changes: a key goes
// to nobody it was not entered for.
func (l languageModels) Save(ctx context.Context, m api.LanguageModel, key string, isNew bool) error {
	stores := l.ops.stores
	was, err := l.before(ctx, m.Name, isNew)
	if err != nil {
		return err
	}
	table, err := l.entered(&m, was, key)
	if err != nil {
		return err
	}
	if err := config.Unusable(m, table); err != nil {
		return err
	}
	if key != "" {
		if m.KeyFile, err = stores.Secrets.Keep(api.LanguageModelSecrets, key); err != nil {
			return err
		}
	}
	m.Revision = rand.Text()
	drop := m.KeyFile
	if _, err = stores.Catalog.ChangeLanguageModels(ctx, func(now []api.LanguageModel) ([]api.LanguageModel, error) {
		return replaceModel(now, was, m)
	}); err == nil {
		drop, err = was.KeyFile, l.ops.UseModels(ctx)
	}
	if m.KeyFile != was.KeyFile {
		err = errors.Join(err, stores.Secrets.Drop(drop))
	}
	return err
}

// entered is a model as a form describes it, as a table of the configuration would have it. It keeps the stored key of the
// model that it was if none was entered.
func (l languageModels) entered(m *api.LanguageModel, was api.LanguageModel, key string) (config.Model, error) {
	if m.KeyFile = ""; key == "" && m.BaseURL == was.BaseURL && m.Provider == was.Provider {
		m.KeyFile = was.KeyFile
	} else if key == "" && was.KeyFile != "" {
		return config.Model{}, invalid("key", "has to be entered again for another address")
	}
	as, read := *m, l.ops.stores.Secrets.Read
	if key != "" {
		as.KeyFile, read = "entered", func(string) (string, error) { return key, nil }
	}
	table, err := config.Connected(as, read)
	if err != nil {
		return table, invalid("key", "is not stored any more: enter it again")
	}
	return table, nil
}

// Names are the models that the endpoint of a form lists. Old is the name of the model that the form changes.
func (l languageModels) Names(ctx context.Context, m api.LanguageModel, key, old string) ([]string, error) {
	var was api.LanguageModel
	if old != "" {
		var err error
		if was, err = l.before(ctx, old, false); err != nil {
			return nil, err
		}
	}
	t, err := l.entered(&m, was, key)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, namesTime)
	defer cancel()
	names, err := remote.Names(ctx, t.Provider, remote.Config{BaseURL: t.BaseURL, Key: t.Key.Value, ExtraHeaders: t.ExtraHeaders})
	if err != nil {
		return nil, invalid("model", "the endpoint lists no models: "+err.Error()+". Check the address and the key, or enter the model's name")
	}
	return names, nil
}

// before is a model as it stands, and the zero one for a new one's name, which has to be free.
func (l languageModels) before(ctx context.Context, name string, isNew bool) (was api.LanguageModel, err error) {
	if problem := modelNameProblem(name); problem != "" {
		return was, invalid("name", problem)
	}
	if _, taken := l.ops.stores.Config.Models[name]; taken {
		return was, invalid("name", "is taken by a model of the configuration")
	}
	connected, err := l.ops.stores.Catalog.LanguageModels(ctx)
	if err != nil {
		return was, err
	}
	switch at := modelAt(connected, name); {
	case at >= 0 && isNew:
		return was, invalid("name", "is taken: change the model of this name, or choose another")
	case at >= 0:
		return connected[at], nil
	case !isNew:
		return was, api.Missing("model")
	case len(connected) >= api.MaxLanguageModels:
		return was, invalid("name", fmt.Sprintf("is one too many: %d models can be connected", api.MaxLanguageModels))
	}
	return was, nil
}

// replaceModel puts a model in the place of what it was, or among the others. What it is used for is taken from them.
func replaceModel(now []api.LanguageModel, was, m api.LanguageModel) ([]api.LanguageModel, error) {
	at := modelAt(now, m.Name)
	if at < 0 && was.Revision != "" || at >= 0 && now[at].Revision != was.Revision {
		return nil, &api.StateError{Kind: api.ErrConflict, Reason: "someone else has changed this model: reload it"}
	}
	for i := range now {
		if m.Embeds && now[i].Embeds && i != at {
			return nil, invalid("kind", "is that of "+now[i].Name+" already: change that one, or remove it")
		}
		now[i].Answers, now[i].Agent = now[i].Answers && !m.Answers, now[i].Agent && !m.Agent
	}
	if at >= 0 {
		now[at] = m
	} else {
		now = append(now, m)
	}
	slices.SortFunc(now, func(a, b api.LanguageModel) int { return cmp.Compare(a.Name, b.Name) })
	return now, nil
}

// Remove forgets a connected model. Projects that name it are answered by the built-in one.
func (l languageModels) Remove(ctx context.Context, name string) error {
	var was api.LanguageModel
	_, err := l.ops.stores.Catalog.ChangeLanguageModels(ctx, func(now []api.LanguageModel) ([]api.LanguageModel, error) {
		at := modelAt(now, name)
		if at < 0 {
			return nil, api.Missing("model")
		}
		was = now[at]
		return slices.Delete(now, at, at+1), nil
	})
	if err != nil {
		return err
	}
	return errors.Join(l.ops.UseModels(ctx), l.ops.stores.Secrets.Drop(was.KeyFile))
}

// Test asks a model one question that a tool answers.
func (l languageModels) Test(ctx context.Context, name string) (found string, well bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, modelTrialTime)
	defer cancel()
	var f doctor.Finding
	if m, configured := l.ops.stores.Config.Models[name]; configured {
		f = doctor.AskModel(ctx, name, m)
	} else if e := l.ops.stores.Config.Embeddings; name == embeddingsName && e.Model != "" {
		f = doctor.AskEmbeddings(ctx, e)
	} else {
		connected, err := l.ops.stores.Catalog.LanguageModels(ctx)
		if err != nil {
			return "", false, err
		}
		at := modelAt(connected, name)
		if at < 0 {
			return "", false, api.Missing("model")
		}
		f = doctor.AskConnected(ctx, connected[at], l.ops.stores.Secrets.Read)
	}
	return f.Found + ".", f.Status != doctor.Problem, nil
}

// UseModels has the server answer with the models that are connected now.
func (o *Service) UseModels(ctx context.Context) error {
	o.using.Lock()
	defer o.using.Unlock() // what was read last is used last
	connected, err := o.stores.Catalog.LanguageModels(ctx)
	if err != nil {
		return err
	}
	return errors.Join(o.server.Models.Configure(config.WithConnected(o.stores.Config, connected, o.stores.Secrets.Read)),
		o.stores.UseEmbeddings(connected))
}

func modelAt(list []api.LanguageModel, name string) int {
	return slices.IndexFunc(list, func(m api.LanguageModel) bool { return m.Name == name })
}

// modelNameProblem says what is wrong with a name; empty if nothing is.
func modelNameProblem(name string) string {
	switch {
	case name == "" || len(name) > 40:
		return "must have 1 to 40 characters"
	case name == model.Builtin || name == embeddingsName:
		return "is taken: choose another"
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") != "":
		return "may have letters, digits, hyphens, points, and underscores"
	}
	return ""
}

// checkModel refuses a model that is neither configured nor connected.
func (o *Service) checkModel(ctx context.Context, field, name string) error {
	if _, ok := o.stores.Config.Models[name]; ok || name == "" || name == model.Builtin {
		return nil
	}
	connected, err := o.stores.Catalog.LanguageModels(ctx)
	if at := modelAt(connected, name); err != nil || at >= 0 && !connected[at].Embeds {
		return err
	}
	return invalid(field, fmt.Sprintf("there is no model %q: use builtin, connect one in the console (System, Models), or add "+
		"[models.%s] to the configuration", name, name))
}
