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
	list, err := readModels(ctx, s.db.Read)
	return list, s.db.Fail("read the language models", err)
}

// ChangeLanguageModels replaces the connected models by what change makes of them as they stand. Change may be called again.
func (s *Store) ChangeLanguageModels(ctx context.Context,
	change func([]api.LanguageModel) ([]api.LanguageModel, error)) ([]api.LanguageModel, error) {
	var list []api.LanguageModel
	err := s.db.Change(ctx, "change the language models", func(ctx context.Context, tx bun.Tx) error {
		// The row is there before it is read, so that it is locked even for the first model.
		first, err := modelsRow(nil)
		if err != nil {
			return err
		}
		if _, err := tx.NewInsert().Model(first).On("CONFLICT (name) DO NOTHING").Exec(ctx); err != nil {
			return err
		}
		if list, err = readModels(ctx, tx); err != nil {
			return err
		}
		if list, err = change(list); err != nil {
			return err
		}
		row, err := modelsRow(list)
		if err != nil {
			return err
		}
		_, err = tx.NewUpdate().Model(row).WherePK().Exec(ctx)
		return err
	})
	return list, err
}

func modelsRow(list []api.LanguageModel) (*database.SettingRow, error) {
	body, err := database.EncodeBody(list)
	row := &database.SettingRow{Name: modelsSetting, Value: body}
	database.SetChecksum(row)
	return row, err
}

func readModels(ctx context.Context, db bun.IDB) (list []api.LanguageModel, err error) {
	row := database.SettingRow{Name: modelsSetting}
	query := db.NewSelect().Model(&row).WherePK()
	if _, writes := db.(bun.Tx); writes {
		query = database.ForUpdate(query)
	}
	err = query.Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err == nil {
		err = database.CheckRow(&row)
	}
	if err != nil {
		return nil, err
	}
	err = database.DecodeBody(row.Value, &list, modelsSetting)
	return list, err
}
