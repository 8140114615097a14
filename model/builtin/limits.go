package builtin

import (
	"regexp"
	"strings"
)

// A question for a number begins with the line that says one of the kind: a time for "how long", a size for "what
// size", a port for "which port". A question that has none of the words is not matched with what asks for one.

var amounts = []struct {
	words      []string
	asks, says *regexp.Regexp
}{
	{[]string{"how long", "how often", "timeout", "duration", "interval"},
		caseless(`^\W*(?:how long|how often)\b|\b(?:what|which) (?:is the )?(?:\w+ )?(?:timeout|duration|interval)\b`),
		caseless(`\b\d+(?:[.,]\d+)?[ -]?(?:ms|s|secs?|m|mins?|h|hrs?|d|milliseconds?|seconds?|minutes?|hours?|days?|weeks?|`,
			`months?|years?)\b|\b(?:forever|indefinitely|never expires?|(?:two|three|four|five|six|seven|ten|thirty) `,
			`(?:seconds|minutes|hours|days|weeks|months|years)|(?:a|an|one|every|per) (?:second|minute|hour|day|week|month|year))\b`)},
	{[]string{"port"}, caseless(`^\W*(?:what|which) (?:network |tcp |udp |http )?ports?\b|\b(?:what|which)\b.{0,30}\bport(?: number)?\b`),
		caseless(`\bports?\b\D{0,30}\b\d{2,5}\b|\b\d{2,5}\b\W{0,3}(?:tcp\b|udp\b|port\b)|:\d{2,5}\b`)},
	{[]string{"size", "how big", "how large"}, caseless(`\b(?:what|which|maximum|max|minimum|min|largest) (?:is the )?(?:\w+ )?(?:file |body |upload )?sizes?\b|`,
		`^\W*how (?:big|large)\b`),
		caseless(`\b\d+(?:[.,]\d+)?\s?(?:bytes?|[kmgt]i?b|kilobytes?|megabytes?|gigabytes?|px|pixels?|characters?)\b`)},
	{[]string{"how many", "number", "amount", "count", "length", "depth", "size", "limit"}, caseless(`^\W*(?:and )?how many\b|\b(?:maximum|max|minimum|min|largest|highest|most) (?:number|amount|count|length|depth|`,
		`size)\b|\b(?:what|which)\b.{0,20}\blimits?\b|^\W*is there (?:a|any) (?:maximum |minimum |size |rate )?limits?\b`),
		caseless(`\b\d[\d,.]*\b|\b(?:unlimited|no limit|any number|as many|two|three|four|five|six|seven|eight|nine|ten|`,
			`twelve|twenty|fifty|hundred|thousand|million)\b`)},
}

var (
	// bounds match what says that a number is one that holds, rather than one of a sample.
	bounds = caseless(`\b(?:max(?:imum)?|min(?:imum)?|most|least|limit(?:s|ed)?|up to|no more than|cannot exceed|default\w*|by `,
		`default|exactly|always|listens?|there are|consists? of|expires?|kept|every)\b`)
	sampled = caseless(`\b(?:for example|e\.g\.|such as|suppose|imagine|let's say|assume|in this (?:case|example|sample)|the `,
		`(?:above|following|sample|example))\b|^\W*(?:if|when)\b`)
	// dated matches versions and dates, whose numbers are no amounts.
	dated = caseless(`\bv?\d+\.\d+(?:\.\d+)+\b|\bv\d+(?:\.\d+)*\b|\b\d{4}-\d{2}-\d{2}\b|\bversions? \d+(?:\.\d+)*|^\s*\d+[.)] `)

	aroundAmount = set(`maximum max minimum min largest highest limit limits number amount count long often large big
		size sizes length default defaults timeout`)
)

// amount is what a question for a number wants a line to say, and the words of its form; nil if it asks for none.
func amount(question string) (*lineAsked, map[string]bool) {
	lower := strings.ToLower(question)
	for _, kind := range amounts {
		if !hasAny(lower, kind.words) || !kind.asks.MatchString(question) {
			continue
		}
		byDefault := strings.Contains(lower, "default")
		return &lineAsked{onPage: true, says: func(line string) float64 {
			line = dated.ReplaceAllString(line, " ")
			if !kind.says.MatchString(line) || !bounds.MatchString(line) || sampled.MatchString(line) ||
				strings.HasSuffix(line, "?") || byDefault && !strings.Contains(strings.ToLower(line), "default") {
				return 0
			}
			return 1
		}}, aroundAmount
	}
	return nil, nil
}
