package remote

import (
	"cmp"
	"math"

	"docent/model"
)

// A Price is what a million tokens cost, in US dollars.
type Price struct {
	Prompt     float64
	Cached     float64 // of the prompt's tokens those that the provider had kept; like the others if zero
	Completion float64
}

// keeping is what a token costs that the provider puts into its cache, by a plain one of the prompt.
const keeping = 1.25

// of is what tokens cost, in millionths of a dollar, rounded up: a limit is reached too early rather than too late.
func (p Price) of(u model.Usage, kept int) int64 {
	plain := max(u.PromptTokens-u.CachedTokens-kept, 0)
	cost := p.Prompt*(float64(plain)+keeping*float64(kept)) + cmp.Or(p.Cached, p.Prompt)*float64(u.CachedTokens) +
		p.Completion*float64(u.CompletionTokens)
	return int64(math.Ceil(cost - 1e-6)) // what is left of a product's rounding is no millionth
}
