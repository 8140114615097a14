package builtin

import "testing"

func TestTwoThingsThatAreCompared(t *testing.T) {
	for question, want := range map[string]comparison{
		"What is the difference between a counter and a gauge?": {"counter", "gauge"},
		"differences between path and query parameters":         {"path parameters", "query parameters"},
		"Counter vs. gauge":                                              {"Counter", "gauge"},
		"recording rules versus alerting rules?":                         {"recording rules", "alerting rules"},
		"Should I use a histogram or a summary?":                         {"histogram", "summary"},
		"When should I use define instead of env variables?":             {"define", "env variables"},
		"How does a gauge differ from a counter?":                        {"gauge", "counter"},
		"Compare `rate()` with `irate()`":                                {"`rate()`", "`irate()`"},
		"why would I choose pull rather than push?":                      {"pull", "push"},
		"What's the difference between tabs and code groups in Mintlify": {"tabs", "code groups"},
		"which is better: npm or yarn?":                                  {"npm", "yarn"},
		"What is a counter?":                                             {},
		"How do I serve docs from / instead of /docs?":                   {},
		"Do I need Node or is the binary enough?":                        {},
	} {
		got, ok := comparisonOf(question)
		if got != want || ok != (want != comparison{}) {
			t.Errorf("%q compares %q, want %q", question, got, want)
		}
	}
}
