package bench

import (
	"context"

	"docent/internal/background"
)

// Mixed puts several loads on one server at the same time. There is a result for each; what the server used is that of
// all of them together.
func Mixed(ctx context.Context, loads ...func(context.Context) (Result, error)) ([]Result, error) {
	results := make([]Result, len(loads))
	group, ctx := background.WithContext(ctx)
	for i, load := range loads {
		group.Go(func() (err error) {
			results[i], err = load(ctx)
			results[i].Scenario = "mixed, " + results[i].Scenario
			return err
		})
	}
	return results, group.Wait()
}
