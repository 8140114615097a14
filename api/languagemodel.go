package api

// MaxLanguageModels is how many language models can be connected on the console's page.
const MaxLanguageModels = 50

// LanguageModelSecrets begins the names of the stored keys of connected models, as a project's name begins those of its own.
const LanguageModelSecrets ProjectID = "language-models"

// A LanguageModel is one that an operator connected in the console, beside those of the configuration. Its fields are those of a
// [models.NAME] table.
type LanguageModel struct {
	Name            string            `json:"name"`
	Provider        string            `json:"provider"`
	BaseURL         string            `json:"baseUrl,omitempty"`
	Model           string            `json:"model"`
	KeyFile         string            `json:"keyFile,omitempty"` // the name of its stored key
	API             string            `json:"api,omitempty"`
	Effort          string            `json:"effort,omitempty"`
	ExtraBody       map[string]any    `json:"extraBody,omitempty"`
	ExtraHeaders    map[string]string `json:"extraHeaders,omitempty"`
	MaxTokens       int               `json:"maxTokens,omitempty"`
	Window          int               `json:"window,omitempty"`
	PromptPrice     float64           `json:"promptPrice,omitempty"`
	CachedPrice     float64           `json:"cachedPrice,omitempty"`
	CompletionPrice float64           `json:"completionPrice,omitempty"`
	Answers         bool              `json:"answers,omitempty"` // it answers readers of projects that name no model
	Agent           bool              `json:"agent,omitempty"`   // it does the jobs that name no model
	Revision        string            `json:"revision"`          // another for each change

	// It answers nobody: its vectors find sections by what they mean. Then these are those of the [embeddings] table.
	Embeds         bool   `json:"embeds,omitempty"`
	Dimensions     int    `json:"dimensions,omitempty"`
	SectionPrefix  string `json:"sectionPrefix,omitempty"`
	QuestionPrefix string `json:"questionPrefix,omitempty"`
	DayTokens      int64  `json:"dayTokens,omitempty"`
}
