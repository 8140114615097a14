package people

import (
	"context"
	"database/sql"
	"errors"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog/database"
)

// The language models that were connected in the console are one setting.
const modelsSetting = "language-models"

// LanguageModels are those that were connected in the console, by their names.
func (s *Store) LanguageModels(ctx context.Context) ([]api.LanguageModel, error) {
	var list []api.LanguageModel
	err := database.ReadSetting(ctx, s.db.Read, modelsSetting, &list)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return list, s.db.Fail("read the language models", err)
}

// ChangeLanguageModels replaces the connected models by what change makes of them as they stand. Change may be called again.
func (s *Store) ChangeLanguageModels(ctx context.Context,
	change func([]api.LanguageModel) ([]api.LanguageModel, error)) ([]api.LanguageModel, error) {
	var list []api.LanguageModel
	err := s.db.Change(ctx, "change the language models", func(ctx context.Context, tx bun.Tx) error {
		list = nil // the change may be tried again
		if err := database.MakeSetting(ctx, tx, modelsSetting, list); err != nil {
			return err
		}
		err := database.ReadSetting(ctx, tx, modelsSetting, &list)
		if err == nil {
			list, err = change(list)
		}
		if err != nil {
			return err
		}
		return database.SaveSetting(ctx, tx, modelsSetting, list)
	})
	return list, err
}
