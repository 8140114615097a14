package modeltest_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"docent/model"
	"docent/model/modeltest"
)

// BenchmarkTwoHundredConversations holds 200 conversations of 20 turns at once, with a model that takes 50 ms a turn: a
// second is what the model alone takes. The stand-in runs in the same process.
func BenchmarkTwoHundredConversations(b *testing.B) {
	for _, provider := range []string{model.OpenAI, model.Anthropic} {
		b.Run(provider, func(b *testing.B) {
			s := modeltest.New()
			s.Answer = func(modeltest.Asked) modeltest.Step {
				return modeltest.Step{Delay: 50 * time.Millisecond, Text: "On we go.",
					Calls: []modeltest.Call{{Name: "read", Arguments: `{"path":"guide/setup.md"}`}}}
			}
			r := serve(b, provider, s, nil)
			for b.Loop() {
				var wg sync.WaitGroup
				for n := range 200 {
					wg.Go(func() {
						c := user(fmt.Sprint("Go ", n))
						for range 20 {
							reply, err := r.Chat(b.Context(), "", c)
							if err != nil {
								b.Error(err)
								return
							}
							c = then(c, reply, "a line of text\n")
						}
					})
				}
				wg.Wait()
				s.Load()
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/round")
		})
	}
}
