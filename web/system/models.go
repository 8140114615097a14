package system

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"docent/api"
	"docent/web/console"
)

// modelsPath is the address of the page of language models.
const modelsPath = systemPath + "/models"

// A preset is a provider that the form can begin with.
type preset struct{ Value, Label, Provider, Address, Hint string }

// presets are providers by what their documentation says of their addresses.
var presets = []preset{
	{"openai", "OpenAI", "openai", "", ""},
	{"anthropic", "Anthropic", "anthropic", "", ""},
	{"gemini", "Google Gemini", "openai", "https://generativelanguage.googleapis.com/v1beta/openai", ""},
	{"azure", "Azure OpenAI", "openai", "", "The address ends in /openai/v1; the model is the name of the deployment."},
	{"openrouter", "OpenRouter", "openai", "https://openrouter.ai/api/v1", ""},
	{"mistral", "Mistral", "openai", "https://api.mistral.ai/v1", ""},
	{"deepseek", "DeepSeek", "openai", "https://api.deepseek.com/v1", ""},
	{"ollama", "Ollama", "openai", "http://127.0.0.1:11434/v1", "Needs no key. Raise its context length to 16,000 tokens or more."},
	{"vllm", "vLLM", "openai", "http://127.0.0.1:8000/v1", "Start it with --enable-auto-tool-choice and a parser of tool calls."},
	{"llamacpp", "llama.cpp", "openai", "http://127.0.0.1:8080/v1", "Start llama-server with --jinja, so that it calls tools."},
	{"other", "Other (OpenAI-compatible)", "openai", "", ""},
}

// modelsView is the list, with the form for another model.
type modelsView struct {
	Models
	Presets []preset
	Preset  preset // that was chosen
	Setup   string // the project that is being set up meanwhile; empty if none is
	Form    modelForm
}

// A modelForm is what is asked of one model.
type modelForm struct {
	Name     string // of the model that is changed; empty for a new one
	Fields   []console.Field
	Further  []console.Field
	Open     bool // what is asked further is shown
	Setup    string
	Problems []string
}

func (s *handler) showModels(v *console.Visit) error {
	chosen := presets[0]
	for _, p := range presets {
		if p.Value == v.Query("provider") {
			chosen = p
		}
	}
	m := api.LanguageModel{Provider: chosen.Provider, BaseURL: chosen.Address}
	list, err := s.Models.List(v.Context())
	if err != nil {
		return err
	}
	first := list.Chosen == "" && !slices.ContainsFunc(list.List, func(m Model) bool { return m.Problem == "" })
	m.Answers, m.Agent = first, first // the first one that is connected is meant to be used
	form := formOf(m, nil, true)
	form.Setup = v.Query("setup")
	return s.Render(v, "models", "Models", modelsView{Models: list, Presets: presets, Preset: chosen, Setup: form.Setup, Form: form})
}

// showModel is the form of one that was connected.
func (s *handler) showModel(v *console.Visit) error {
	list, err := s.Models.List(v.Context())
	if err != nil {
		return err
	}
	name := v.Param("name")
	at := slices.IndexFunc(list.List, func(m Model) bool { return m.Name == name && !m.Configured })
	if at < 0 {
		return api.Missing("model")
	}
	form := formOf(list.List[at].LanguageModel, nil, false)
	form.Name = name
	return s.Render(v, "models.one", "Model "+name, form)
}

// saveModel connects a model, or changes one, and leads to the list.
func (s *handler) saveModel(v *console.Visit) error {
	m, err := readModel(v.Form)
	old := v.Form.Get("old")
	if old != "" {
		m.Name = old
	}
	if err == nil {
		err = s.Models.Save(v.Context(), m, strings.TrimSpace(v.Form.Get("key")), old == "")
	}
	if faults := console.Faults(err); len(faults) > 0 {
		return s.sentModel(v, m, old, nil, faults)
	}
	if err != nil {
		return err
	}
	v.Audit("model.save", m.Name, m.Provider+" "+console.HostOf(cmp.Or(m.BaseURL, "https://"+m.Provider)))
	return v.Done(afterModel(v), "The model "+m.Name+" is connected. Test it before readers ask it.")
}

// afterModel is the page that a form about models leads to.
func afterModel(v *console.Visit) string {
	if id := v.Form.Get("setup"); id != "" {
		return modelsPath + "?setup=" + url.QueryEscape(id)
	}
	return modelsPath
}

// listModels shows the form again as it was sent, with the models that its endpoint lists to choose from.
func (s *handler) listModels(v *console.Visit) error {
	m, _ := readModel(v.Form) // what is wrong with other fields can wait
	old := v.Form.Get("old")
	v.Patience()
	names, err := s.Models.Names(v.Context(), m, strings.TrimSpace(v.Form.Get("key")), old)
	faults := console.Faults(err)
	if err != nil && len(faults) == 0 {
		return err
	}
	return s.sentModel(v, m, old, names, faults)
}

// sentModel shows a form as it was sent, with what is wrong with it. Names are those to choose from.
func (s *handler) sentModel(v *console.Visit, m api.LanguageModel, old string, names []string, faults map[string]string) error {
	form := formOf(m, v.Form, old == "")
	form.Name, form.Setup, form.Open = old, v.Form.Get("setup"), form.Open || len(faults) > 0
	for i, f := range form.Fields {
		if f.Name == "model" && len(names) > 0 {
			form.Fields[i] = chooseModel(f, names)
		}
	}
	all := slices.Concat(form.Fields, form.Further)
	form.Problems = console.PlaceFaults(all, faults)
	form.Fields, form.Further = all[:len(form.Fields)], all[len(form.Fields):]
	status := http.StatusOK
	if len(faults) > 0 {
		status = http.StatusBadRequest
	}
	if old != "" {
		return s.RenderStatus(v, status, "models.one", "Model "+old, form)
	}
	list, err := s.Models.List(v.Context())
	if err != nil {
		return err
	}
	return s.RenderStatus(v, status, "models", "Models", modelsView{Models: list, Presets: presets, Setup: form.Setup, Form: form})
}

// chooseModel offers the names of an endpoint's models in the place of a field to type one into.
func chooseModel(f console.Field, names []string) console.Field {
	f.Kind, f.Hint = "select", "From the endpoint's list."
	if f.Value != "" && !slices.Contains(names, f.Value) {
		names = append([]string{f.Value}, names...)
	}
	for _, name := range names {
		f.Options = append(f.Options, console.Option{Value: name, Label: name, On: name == f.Value})
	}
	return f
}

func (s *handler) testModel(v *console.Visit) error {
	name := v.Form.Get("name")
	v.Patience()
	found, well, err := s.Models.Test(v.Context(), name)
	if err != nil {
		return err
	}
	v.Audit("model.test", name, found)
	if !well {
		return v.Done(afterModel(v), name+" can't be used: "+found)
	}
	return v.Done(afterModel(v), name+": "+found)
}

func (s *handler) removeModel(v *console.Visit) error {
	name := v.Form.Get("name")
	if err := s.Models.Remove(v.Context(), name); err != nil {
		return err
	}
	v.Audit("model.remove", name, "")
	return v.Done(modelsPath, "The model "+name+" and its key were removed.")
}

// formOf asks for a model as it is, or as it was sent.
func formOf(m api.LanguageModel, sent url.Values, isNew bool) modelForm {
	value := func(name, now string) string {
		if sent.Has(name) {
			return sent.Get(name)
		}
		return now
	}
	text := func(name, label, now, hint string) console.Field {
		return console.Field{Name: name, Label: label, Value: value(name, now), Hint: hint}
	}
	number := func(name, label string, now float64, hint string) console.Field {
		shown := ""
		if now != 0 {
			shown = strconv.FormatFloat(now, 'f', -1, 64)
		}
		return text(name, label, shown, hint)
	}
	var f modelForm
	if isNew {
		f.Fields = append(f.Fields, console.Field{Name: "name", Label: "Name", Value: value("name", m.Name), Required: true,
			Hint: "Identifies the model in projects and in this console."})
	}
	provider := value("provider", m.Provider)
	keyHint := "Stored on this server only, and never shown again. Leave empty if your endpoint needs none."
	switch {
	case !isNew:
		keyHint = "Leave empty to keep the stored key."
	case sent.Get("key") != "":
		keyHint = "Enter it again: keys are never shown."
	}
	kind := value("kind", map[bool]string{true: "embeddings"}[m.Embeds])
	f.Fields = append(f.Fields,
		console.Field{Name: "kind", Label: "Kind", Kind: "select", Options: []console.Option{
			{Value: "", Label: "language model: answers and jobs", On: kind == ""},
			{Value: "embeddings", Label: "embeddings model: search by meaning", On: kind == "embeddings"}}},
		console.Field{Name: "provider", Label: "Protocol", Kind: "select", Options: []console.Option{
			{Value: "openai", Label: "OpenAI-compatible", On: provider == "openai"},
			{Value: "anthropic", Label: "Anthropic", On: provider == "anthropic"}}},
		text("base_url", "Address", m.BaseURL, "Leave empty for the provider's own. Otherwise the full URL, such as https://api.example.com/v1."),
		console.Field{Name: "key", Label: "API key", Kind: "password", Hint: keyHint},
		console.Field{Name: "model", Label: "Model", Value: value("model", m.Model), Required: true, Hint: "The name that the provider uses."},
		console.Field{Name: "answers", Label: "Use for answers, unless a project names another", Kind: "check",
			On: m.Answers},
		console.Field{Name: "agent", Label: "Use for jobs, unless a project names another", Kind: "check", On: m.Agent})
	body, headers := "", ""
	if len(m.ExtraBody) > 0 {
		text, _ := json.MarshalIndent(m.ExtraBody, "", "  ") // it came from JSON
		body = string(text)
	}
	for _, name := range slices.Sorted(maps.Keys(m.ExtraHeaders)) {
		headers += name + ": " + m.ExtraHeaders[name] + "\n"
	}
	f.Further = []console.Field{
		text("reasoning_effort", "Reasoning effort", m.Effort, "Such as low, medium, or high, for reasoning models. Default: the provider's."),
		{Name: "api", Label: "API", Kind: "select", Options: []console.Option{
			{Value: "", Label: "what the model is known for", On: value("api", m.API) == ""},
			{Value: "chat", Label: "chat completions", On: value("api", m.API) == "chat"},
			{Value: "responses", Label: "Responses", On: value("api", m.API) == "responses"}}},
		number("max_tokens", "Max tokens per answer", float64(m.MaxTokens), "Default: known for common models."),
		number("window", "Context window (tokens)", float64(m.Window), "As above."),
		number("prompt_price", "Price per million prompt tokens", m.PromptPrice, "In US dollars. Default: known for common models. Cost limits need prices."),
		number("cached_price", "Price per million cached prompt tokens", m.CachedPrice, "As above."),
		number("completion_price", "Price per million completion tokens", m.CompletionPrice, "As above."),
		number("dimensions", "Dimensions", float64(m.Dimensions), "Vector length, for embeddings models that support shorter ones. Default: the model's own."),
		text("section_prefix", "Section prefix", m.SectionPrefix, `If an embeddings model needs one, such as "passage: ".`),
		text("question_prefix", "Question prefix", m.QuestionPrefix, `If an embeddings model needs one, such as "query: ".`),
		number("day_tokens", "Embedding tokens per day", float64(m.DayTokens), "A day is in UTC. Default: no limit."),
		{Name: "extra_body", Label: "Extra request fields", Kind: "area", Value: value("extra_body", body), Hint: "A JSON object, merged into each request."},
		{Name: "extra_headers", Label: "Extra headers", Kind: "area", Value: value("extra_headers", headers), Hint: "One per line, such as X-Team: docs. Operators can see them; put keys above."},
	}
	f.Open = m.Embeds || m.Effort != "" || m.API != "" || m.MaxTokens+m.Window > 0 || body+headers != "" || m.PromptPrice+m.CompletionPrice > 0
	return f
}

// readModel is the model that a form describes, and what of it cannot be read.
func readModel(form url.Values) (m api.LanguageModel, _ error) {
	var wrong []api.Problem
	at := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	number := func(name string, whole bool) float64 {
		text := at(name)
		if text == "" {
			return 0
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n < 0 || n > 1e9 || whole && n != float64(int(n)) {
			wrong = append(wrong, api.Problem{Field: name, Message: "must be a number, or empty"})
			return 0
		}
		return n
	}
	m = api.LanguageModel{Name: at("name"), Provider: at("provider"), BaseURL: at("base_url"), Model: at("model"), API: at("api"),
		Effort: at("reasoning_effort"), MaxTokens: int(number("max_tokens", true)), Window: int(number("window", true)),
		PromptPrice: number("prompt_price", false), CachedPrice: number("cached_price", false),
		CompletionPrice: number("completion_price", false), Answers: form.Get("answers") == "on", Agent: form.Get("agent") == "on",
		Embeds: form.Get("kind") == "embeddings", Dimensions: int(number("dimensions", true)), SectionPrefix: form.Get("section_prefix"),
		QuestionPrefix: form.Get("question_prefix"), DayTokens: int64(number("day_tokens", true))}
	if m.Embeds {
		m.Answers, m.Agent = false, false
	}
	if text := at("extra_body"); text != "" {
		if err := json.Unmarshal([]byte(text), &m.ExtraBody); err != nil {
			wrong = append(wrong, api.Problem{Field: "extra_body", Message: `must be a JSON object, such as {"seed": 1}`})
		}
	}
	for _, line := range console.Lines(form.Get("extra_headers")) {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			wrong = append(wrong, api.Problem{Field: "extra_headers", Message: "must be lines such as X-Team: docs"})
			break
		}
		if m.ExtraHeaders == nil {
			m.ExtraHeaders = map[string]string{}
		}
		m.ExtraHeaders[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	if len(wrong) > 0 {
		return m, &api.InvalidError{Problems: wrong}
	}
	return m, nil
}
