package nodes

import (
	"context"
	"database/sql"

	"docent/api"
	"docent/persistence/catalog/database"
)

// A Head is the state of a source that every node is to serve at least: that of the last node that
// read it because somebody asked for it, or because it had moved.
type Head struct {
	Number int64  // rises with each change
	Commit string // as that node read it; imports of collected pages differ from node to node
}

// Heads are the states of all sources.
func (s *Shared) Heads(ctx context.Context) (map[api.ProjectID]Head, error) {
	out := map[api.ProjectID]Head{}
	return out, s.each(ctx, "list what nodes are to serve", func(rows *sql.Rows) error {
		var source api.ProjectID
		var h Head
		err := rows.Scan(&source, &h.Number, &h.Commit)
		out[source] = h
		return err
	}, "SELECT source, number, commit FROM shared_heads")
}

// HeadsNow is a number that differs when a head has changed, and is cheap to ask for.
func (s *Shared) HeadsNow(ctx context.Context) (now [2]int64, err error) {
	err = s.db.Write.DB.QueryRowContext(ctx, "SELECT COALESCE(max(number), 0), count(*) FROM shared_heads").Scan(&now[0], &now[1])
	return now, s.db.Fail("ask whether sources have changed", err)
}

// Turn makes all nodes read a source again, which this one serves at a commit.
func (s *Shared) Turn(ctx context.Context, source api.ProjectID, commit string) (number int64, err error) {
	err = s.db.Write.DB.QueryRowContext(ctx, `INSERT INTO shared_heads (source, number, commit)
		VALUES ($1, nextval('shared_numbers'), $2) ON CONFLICT (source) DO UPDATE
		SET number = excluded.number, commit = excluded.commit RETURNING number`, source, commit).Scan(&number)
	if err == nil {
		s.sayTurned(ctx)
	}
	return number, s.db.Fail("tell that a source has changed", err)
}

// sayTurned makes the other nodes look now; they do by themselves a little later.
func (s *Shared) sayTurned(ctx context.Context) {
	if err := s.db.Say(ctx, s.db.Write, database.Message{Turned: true}); err != nil {
		s.db.Log.Debug("notifying other nodes of a changed source failed", "error", err)
	}
}

// Turned receives after another node has turned or removed a source, if the catalog was opened for several nodes.
func (s *Shared) Turned() <-chan struct{} {
	return s.db.Turned()
}

// Serves says that a node answers from a source as it was at a number, or later.
func (s *Shared) Serves(ctx context.Context, node string, source api.ProjectID, number int64) error {
	_, err := s.exec(ctx, "tell what is served", `INSERT INTO shared_serving (source, node, number) VALUES ($1, $2, $3)
		ON CONFLICT (source, node) DO UPDATE SET number = GREATEST(shared_serving.number, excluded.number)`, source, node, number)
	return err
}

// Serving lists the nodes that answer from a source as it was at a number, or later.
func (s *Shared) Serving(ctx context.Context, source api.ProjectID, number int64) (nodes []string, err error) {
	err = s.each(ctx, "ask what is served", func(rows *sql.Rows) error {
		var node string
		err := rows.Scan(&node)
		nodes = append(nodes, node)
		return err
	}, "SELECT node FROM shared_serving WHERE source = $1 AND number >= $2", source, number)
	return nodes, err
}

// ForgetSource removes what is known of a source that is no more.
func (s *Shared) ForgetSource(ctx context.Context, source api.ProjectID) error {
	defer s.sayTurned(ctx)
	return s.in(ctx, "forget a source", nil, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM shared_heads WHERE source = $1", source)
		if err == nil {
			_, err = tx.ExecContext(ctx, "DELETE FROM shared_serving WHERE source = $1", source)
		}
		return err
	})
}

// ForgetNodes removes what is known of nodes that are no more.
func (s *Shared) ForgetNodes(ctx context.Context, there []string) error {
	_, err := s.exec(ctx, "forget nodes", "DELETE FROM shared_serving WHERE node <> ALL ($1)", there)
	return err
}
