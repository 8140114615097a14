package people_test

import (
	"errors"
	"testing"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
)

func TestConnectedModelsAreKept(t *testing.T) {
	t.Parallel()
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		if list, err := c.LanguageModels(t.Context()); len(list) > 0 || err != nil {
			t.Fatal(list, err)
		}
		add := func(name string) {
			t.Helper()
			_, err := c.ChangeLanguageModels(t.Context(), func(now []api.LanguageModel) ([]api.LanguageModel, error) {
				return append(now, api.LanguageModel{Name: name, Provider: "openai", ExtraBody: map[string]any{"seed": 1.0}}), nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		add("first")
		add("second")
		refused := errors.New("refused")
		if _, err := c.ChangeLanguageModels(t.Context(), func([]api.LanguageModel) ([]api.LanguageModel, error) {
			return nil, refused
		}); !errors.Is(err, refused) {
			t.Error(err)
		}
		list, err := c.LanguageModels(t.Context())
		if err != nil || len(list) != 2 || list[0].Name != "first" || list[1].ExtraBody["seed"] != 1.0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}
