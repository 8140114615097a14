package remote

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"docent/model"
)

// KnownAsOf is the day whose published figures the table of known models has: those of models.dev, a collection of what
// the providers say themselves.
const KnownAsOf = "2026-07-02"

// A known model is one whose limits and prices are published. What the configuration says goes before that.
type known struct {
	name    string // without a date behind it
	by      maker
	context int   // tokens of prompt and reply together
	input   int   // tokens of the prompt, if that is less
	output  int   // tokens of a reply
	price   Price // at its maker's, for prompts of usual lengths
	reasons bool  // thinks before it answers
	open    bool  // its weights are published: elsewhere it costs what that place costs
	sees    bool  // takes pictures
	counted bool  // takes the newer name of the bound on a reply
}

// A maker is who makes models, and serves them at these hosts.
type maker struct {
	hosts     []string
	responses bool // its models that reason are better spoken to by Responses: their reasoning is kept between calls
}

var (
	byOpenAI    = maker{hosts: []string{"api.openai.com"}, responses: true}
	byAnthropic = maker{hosts: []string{"api.anthropic.com"}}
	byGoogle    = maker{hosts: []string{"generativelanguage.googleapis.com"}}
	byDeepSeek  = maker{hosts: []string{"api.deepseek.com"}}
	byMoonshot  = maker{hosts: []string{"api.moonshot.ai", "api.moonshot.cn"}}
	byMistral   = maker{hosts: []string{"api.mistral.ai"}}
	byXAI       = maker{hosts: []string{"api.x.ai"}}
)

var knownModels = slices.Concat(
	family(byOpenAI, known{context: 1_047_576, output: 32_768, sees: true}, map[string]Price{
		"gpt-4.1": {2, 0.5, 8}, "gpt-4.1-mini": {0.4, 0.1, 1.6}, "gpt-4.1-nano": {0.1, 0.025, 0.4}}),
	family(byOpenAI, known{context: 128_000, output: 16_384, sees: true}, map[string]Price{
		"gpt-4o": {2.5, 1.25, 10}, "gpt-4o-mini": {0.15, 0.075, 0.6}}),
	family(byOpenAI, known{context: 400_000, input: 272_000, output: 128_000, reasons: true, counted: true, sees: true}, map[string]Price{
		"gpt-5": {1.25, 0.125, 10}, "gpt-5-mini": {0.25, 0.025, 2}, "gpt-5-nano": {0.05, 0.005, 0.4}, "gpt-5-pro": {15, 0, 120},
		"gpt-5-codex": {1.25, 0.125, 10}, "gpt-5.1": {1.25, 0.125, 10}, "gpt-5.1-codex": {1.25, 0.125, 10},
		"gpt-5.1-codex-max": {1.25, 0.125, 10}, "gpt-5.1-codex-mini": {0.25, 0.025, 2}, "gpt-5.2": {1.75, 0.175, 14},
		"gpt-5.2-codex": {1.75, 0.175, 14}, "gpt-5.2-pro": {21, 0, 168}, "gpt-5.3-codex": {1.75, 0.175, 14},
		"gpt-5.4-mini": {0.75, 0.075, 4.5}, "gpt-5.4-nano": {0.2, 0.02, 1.25}}),
	family(byOpenAI, known{context: 1_050_000, input: 922_000, output: 128_000, reasons: true, counted: true, sees: true}, map[string]Price{
		"gpt-5.4": {2.5, 0.25, 15}, "gpt-5.4-pro": {30, 0, 180}, "gpt-5.5": {5, 0.5, 30}, "gpt-5.5-pro": {30, 0, 180}}),
	family(byOpenAI, known{context: 200_000, output: 100_000, reasons: true, counted: true, sees: true}, map[string]Price{
		"o1": {15, 7.5, 60}, "o1-pro": {150, 0, 600}, "o3": {2, 0.5, 8}, "o3-pro": {20, 0, 80}, "o4-mini": {1.1, 0.275, 4.4}}),
	family(byOpenAI, known{context: 200_000, output: 100_000, reasons: true, counted: true}, map[string]Price{"o3-mini": {1.1, 0.55, 4.4}}),
	// Anthropic's think only if they are asked to.
	family(byAnthropic, known{context: 200_000, output: 64_000, sees: true}, map[string]Price{
		"claude-haiku-4-5": {1, 0.1, 5}, "claude-3-7-sonnet": {3, 0.3, 15}, "claude-sonnet-4": {3, 0.3, 15},
		"claude-sonnet-4-0": {3, 0.3, 15}, "claude-sonnet-4-5": {3, 0.3, 15}, "claude-opus-4-5": {5, 0.5, 25}}),
	family(byAnthropic, known{context: 200_000, output: 32_000, sees: true}, map[string]Price{
		"claude-opus-4": {15, 1.5, 75}, "claude-opus-4-0": {15, 1.5, 75}, "claude-opus-4-1": {15, 1.5, 75}}),
	family(byAnthropic, known{context: 1_000_000, output: 64_000, sees: true}, map[string]Price{"claude-sonnet-4-6": {3, 0.3, 15}}),
	family(byAnthropic, known{context: 1_000_000, output: 128_000, sees: true}, map[string]Price{"claude-sonnet-5": {2, 0.2, 10},
		"claude-opus-4-6": {5, 0.5, 25}, "claude-opus-4-7": {5, 0.5, 25}, "claude-opus-4-8": {5, 0.5, 25}}),
	family(byGoogle, known{context: 1_048_576, output: 65_536, reasons: true, sees: true}, map[string]Price{
		"gemini-2.5-flash-lite": {0.1, 0.01, 0.4}, "gemini-2.5-flash": {0.3, 0.03, 2.5}, "gemini-2.5-pro": {1.25, 0.125, 10},
		"gemini-3-flash": {0.5, 0.05, 3}, "gemini-3-pro": {2, 0.2, 12}, "gemini-3.1-flash-lite": {0.25, 0.025, 1.5},
		"gemini-3.1-pro": {2, 0.2, 12}, "gemini-3.5-flash": {1.5, 0.15, 9}}),
	family(byDeepSeek, known{context: 1_000_000, output: 384_000, reasons: true, open: true}, map[string]Price{
		"deepseek-chat": {0.14, 0.0028, 0.28}, "deepseek-reasoner": {0.14, 0.0028, 0.28}, "deepseek-v4-flash": {0.14, 0.0028, 0.28},
		"deepseek-v4-pro": {0.435, 0.003625, 0.87}}),
	family(byMoonshot, known{context: 262_144, output: 262_144, reasons: true, open: true}, map[string]Price{
		"kimi-k2-thinking": {0.6, 0.15, 2.5}, "kimi-k2.5": {0.6, 0.1, 3}, "kimi-k2.6": {0.95, 0.16, 4}, "kimi-k2.7-code": {0.95, 0.19, 4}}),
	family(byMistral, known{context: 256_000, output: 256_000, open: true}, map[string]Price{
		"mistral-large": {0.5, 0, 1.5}, "mistral-small": {0.15, 0, 0.6}, "devstral-medium": {0.4, 0, 2}}),
	family(byMistral, known{context: 128_000, output: 16_384, reasons: true, open: true}, map[string]Price{"magistral-medium": {2, 0, 5}}),
	family(byXAI, known{context: 1_000_000, output: 30_000, reasons: true, sees: true}, map[string]Price{
		"grok-4.3": {1.25, 0.2, 2.5}, "grok-4.20-0309-reasoning": {1.25, 0.2, 2.5}}),
)

// family lists models that differ in their prices alone.
func family(by maker, like known, prices map[string]Price) (list []known) {
	like.by = by
	for name, price := range prices {
		like.name, like.price = name, price
		list = append(list, like)
	}
	return list
}

// dated is what stands behind the name of a model to tell one of its versions.
var dated = regexp.MustCompile(`^(?:[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|\d{2}-\d{2}|latest|preview|v\d+(?::\d+)?))*$`)

// countedFamilies are families of which also unknown members take the newer name of the bound on a reply, and think.
var countedFamilies = []string{"o1", "o3", "o4", "gpt-5", "gpt-6"}

// lookUp finds what is known of a model by the name that an endpoint has for it: gateways put its maker before the name,
// and write dots where Anthropic writes dashes.
func lookUp(name string) known {
	name = strings.ToLower(name)
	name = name[strings.LastIndexByte(name, '/')+1:]
	if rest, ok := strings.CutPrefix(name, "anthropic."); ok { // as Bedrock says it
		name = rest
	}
	if strings.HasPrefix(name, "claude-") {
		name = strings.ReplaceAll(name, ".", "-")
	}
	for _, k := range knownModels {
		if rest, ok := strings.CutPrefix(name, k.name); ok && dated.MatchString(rest) {
			return k
		}
	}
	for _, start := range countedFamilies {
		if strings.HasPrefix(name, start) {
			return known{reasons: true, counted: true}
		}
	}
	return known{}
}

// widestWindow bounds the window of a model that is known to have a wider one, and whose configuration does not ask for
// it: what goes with each turn is paid for each time.
const widestWindow = 200_000

// KnownPrice reports whether it is published what the tokens of a model cost at this address.
func KnownPrice(base, provider, name string) bool {
	base = cmp.Or(base, publicURL[provider])
	u, err := url.Parse(base)
	k := lookUp(name)
	return err == nil && k.price != (Price{}) && (!k.open || slices.Contains(k.by.hosts, u.Hostname()))
}

// fill puts what is known of a model in the places that its configuration leaves out. It returns how long a turn of a
// conversation may be.
func (k known) fill(n *Config, provider string, at *url.URL) (turn int) {
	if n.Window == 0 && k.context > 0 {
		n.Window = min(k.context, widestWindow)
	}
	n.Window = cmp.Or(n.Window, defaultWindow)
	answer, turn := defaultMaxTokens, defaultTurn
	if k.reasons || n.Effort != "" {
		answer, turn = min(leastReasoning, max(defaultMaxTokens, n.Window/4)), 2*defaultTurn
	}
	turn = cmp.Or(n.MaxTokens, turn)
	n.MaxTokens = cmp.Or(n.MaxTokens, answer)
	home := slices.Contains(k.by.hosts, at.Hostname())
	if n.Price == (Price{}) && (home || !k.open) {
		n.Price = k.price
	}
	if n.API == "" && provider == model.OpenAI && home && k.by.responses && k.reasons {
		n.API = Responses
	}
	return turn
}
