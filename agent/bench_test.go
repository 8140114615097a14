package agent_test

import (
	"context"
	"testing"

	"docent/agent"
)

// How long an instruction over a whole site takes, checks and report included.
func BenchmarkEdit(b *testing.B) {
	for _, c := range []struct{ set, prompt string }{
		{"prometheus", `rename "Alertmanager" to "Alert Manager" everywhere`},
		{"mintlify", `rename "Mintlify" to "Zyxwv" everywhere`},
		{"mintlify", "add a page guides/limits.mdx titled \"Limits\" with the content:\n\nThere are none."},
		{"mintlify", `move guides/linking.mdx to create/links.mdx`},
	} {
		files := corpus(b, c.set)
		b.Run(c.set+" "+c.prompt[:6], func(b *testing.B) {
			for b.Loop() {
				res, err := agent.New(agent.Options{}).Edit(context.Background(), agent.Task{Prompt: c.prompt, Tree: tree(files)},
					nil)
				if err != nil || len(res.Changes) == 0 {
					b.Fatal(err, res.Message)
				}
			}
		})
	}
}
