package config

import "docent/model"

// Questions is the [questions] table: a language model writes, for each section, the questions that it answers.
type Questions struct {
	Model     string  `toml:"model" usage:"model from [models] that writes questions for each section"`
	DayCost   float64 `toml:"day_cost" usage:"US cents per day (UTC); 0: no limit"`
	DayTokens int64   `toml:"day_tokens" usage:"tokens per day (UTC); 0: no limit"`
}

func (c Questions) check(list *Problems, models map[string]Model) {
	if m, ok := models[c.Model]; c.Model != "" && (!ok || m.Provider != model.OpenAI && m.Provider != model.Anthropic) {
		list.add("questions.model", "there is no language model [models.%s]", c.Model)
	}
	if !(c.DayCost >= 0 && c.DayCost <= 1e9) || c.DayTokens < 0 {
		list.add("questions", "a limit is not negative")
	}
}
