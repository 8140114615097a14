package people_test

import (
	"errors"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
)

// TestTheLastDeliveryToAWebhookIsRemembered keeps the newest one of each project, until the project is removed.
func TestTheLastDeliveryToAWebhookIsRemembered(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		ctx := t.Context()
		project := catalogtest.Must(c.AddProject(ctx, api.Project{ID: "docs", Domain: "docs.example.com", Source: "/src"}))(t)
		if _, err := c.LastDelivery(ctx, project.ID); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("before there is one: %v", err)
		}
		for _, status := range []int{204, 202} {
			d := api.Delivery{At: time.Now(), Sender: "GitHub", Status: status, Outcome: "taken in"}
			if err := c.SaveDelivery(ctx, project.ID, d); err != nil {
				t.Fatal(err)
			}
		}
		if d, err := c.LastDelivery(ctx, project.ID); err != nil || d.Status != 202 || !d.Accepted() {
			t.Errorf("%+v, %v", d, err)
		}
		if err := c.RemoveProject(ctx, project.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := c.LastDelivery(ctx, project.ID); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("after the project is removed: %v", err)
		}
	})
}
