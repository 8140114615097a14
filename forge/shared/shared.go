// Package shared stores the built-in code host's repositories in PostgreSQL for several nodes: packs of
// objects, and references that move only if they still are what was expected. Objects and the references to them come in
// one transaction. What a node has on its disk is a copy; it asks for what is new since a version, as of a remote.
package shared

import (
	"context"
	"crypto/sha1"
	"database/sql"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/jackc/pgx/v5/pgconn"

	"docent/forge/failure"
	"docent/forge/git"
)

//go:embed schema.sql
var schema string

// edition marks the tables, so that they are made once and a later program knows what it finds.
const edition = "docent host 1"

const (
	partSize = 1 << 20 // bytes of a pack that are sent at a time
	fewPacks = 24      // so many are not worth joining

	// Of a pack that is joined of others: less than what a fetch may bring, so that a new node can read it.
	maxBytes    = 1 << 30
	maxInflated = 2 << 30
	maxObjects  = 400_000

	leftOver = "1 day" // after which parts that belong to nothing are removed
)

// A Store is the database. It may be used by many goroutines, and by many nodes.
type Store struct {
	db    *sql.DB
	turns chan struct{} // one token for each turn that is taken or waited for
}

// turnsAtOnce bounds the connections that wait for turns: what is done in a turn needs others.
const turnsAtOnce = 4

// Open creates the tables that are missing. The database stays the caller's to close.
func Open(ctx context.Context, db *sql.DB) (*Store, error) {
	s := &Store{db, make(chan struct{}, turnsAtOnce)}
	if there, err := made(ctx, db); err != nil || there {
		return s, failed("look for the tables of the code host", err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, failed("make the tables of the code host", err)
	}
	defer tx.Rollback()
	// Of several nodes that start at the same time, one makes them.
	if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(7234150851)"); err != nil {
		return nil, failed("make the tables of the code host", err)
	}
	there, err := made(ctx, tx)
	if err == nil && !there {
		if err = each(schema, func(statement string) error {
			_, err := tx.ExecContext(ctx, statement)
			return err
		}); err == nil {
			_, err = tx.ExecContext(ctx, "COMMENT ON TABLE host_repositories IS '"+edition+"'")
		}
	}
	if err == nil {
		err = tx.Commit()
	}
	return s, failed("make the tables of the code host", err)
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// made reports whether the tables are there, in the form that is known here.
func made(ctx context.Context, db querier) (bool, error) {
	var comment sql.NullString
	// Not to_regclass: inside a transaction it may remember that there was no such table before the lock was waited for.
	err := db.QueryRowContext(ctx, "SELECT obj_description(oid, 'pg_class') FROM pg_class "+
		"WHERE relname = 'host_repositories' AND pg_table_is_visible(oid)").Scan(&comment)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if comment.String != edition {
		return false, fmt.Errorf("the tables of the built-in code host are of the edition %q, and this program knows %q: use the version of Docent that made them, or a newer one",
			comment.String, edition)
	}
	return true, nil
}

// each calls f for every statement of a script.
func each(script string, f func(statement string) error) error {
	for rest := script; strings.TrimSpace(rest) != ""; {
		end := strings.Index(rest, ";\n\n")
		if at := strings.Index(rest, "$$"); at >= 0 && at < end { // a function holds others
			end = strings.Index(rest, "END $$;") + len("END $$")
		}
		if end < 0 {
			return f(rest)
		}
		if err := f(rest[:end]); err != nil {
			return err
		}
		rest = rest[end+1:]
	}
	return nil
}

// A Place says how far a repository has come. The zero Place is that of one which is not there.
type Place struct {
	Life    string // another one for a repository that was removed and made again
	Version int64
}

// Place is cheap: one row.
func (s *Store) Place(ctx context.Context, project string) (Place, error) {
	var p Place
	err := s.db.QueryRowContext(ctx, "SELECT life, version FROM host_repositories WHERE project = $1", project).
		Scan(&p.Life, &p.Version)
	if errors.Is(err, sql.ErrNoRows) {
		return Place{}, nil
	}
	return p, failed("look up the repository", err)
}

// Projects are those that have a repository, in order.
func (s *Store) Projects(ctx context.Context) ([]string, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT project FROM host_repositories WHERE version > 0 ORDER BY project")
	if err != nil {
		return nil, failed("list the repositories", err)
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, failed("list the repositories", err)
		}
		list = append(list, name)
	}
	return list, failed("list the repositories", rows.Err())
}

// Fetch reads what is new since a version: pack is called for each pack, the oldest first, and reads it to its end. All
// of it is as it was at one moment. Values are the references, and what moves with them.
func (s *Store) Fetch(
	ctx context.Context, project string, since Place, pack func(io.Reader) error,
) (at Place, values map[string]string, err error) {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return at, nil, failed("fetch", err)
	}
	defer tx.Rollback()
	err = tx.QueryRowContext(ctx, "SELECT life, version FROM host_repositories WHERE project = $1", project).
		Scan(&at.Life, &at.Version)
	if errors.Is(err, sql.ErrNoRows) {
		return Place{}, nil, nil
	}
	if err != nil {
		return at, nil, failed("fetch", err)
	}
	if at.Life != since.Life || at.Version < since.Version {
		since = Place{}
	}
	if values, err = valuesOf(ctx, tx, project); err != nil {
		return at, nil, failed("fetch", err)
	}
	packs, err := packsOf(ctx, tx, project, since.Version)
	if err != nil {
		return at, nil, failed("fetch", err)
	}
	for _, p := range packs {
		from := &parts{ctx: ctx, tx: tx, pack: p.number}
		if err := pack(from); err != nil {
			return at, nil, errors.Join(err, failed("fetch", from.err))
		}
	}
	return at, values, nil
}

func valuesOf(ctx context.Context, tx *sql.Tx, project string) (map[string]string, error) {
	rows, err := tx.QueryContext(ctx, "SELECT name, value FROM host_refs WHERE project = $1", project)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	values := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		values[name] = value
	}
	return values, rows.Err()
}

type packRow struct{ number, objects, bytes, inflated int64 }

// packsOf lists the packs that came after a version, the oldest first.
func packsOf(ctx context.Context, tx *sql.Tx, project string, after int64) ([]packRow, error) {
	rows, err := tx.QueryContext(ctx, "SELECT pack, objects, bytes, inflated FROM host_packs WHERE project = $1 AND version > $2 "+
		"ORDER BY version", project, after)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var packs []packRow
	for rows.Next() {
		var p packRow
		if err := rows.Scan(&p.number, &p.objects, &p.bytes, &p.inflated); err != nil {
			return nil, err
		}
		packs = append(packs, p)
	}
	return packs, rows.Err()
}

// parts reads a pack.
type parts struct {
	ctx  context.Context
	tx   *sql.Tx
	pack int64
	next int
	rest []byte
	err  error
}

func (p *parts) Read(b []byte) (int, error) {
	if len(p.rest) == 0 && p.err == nil {
		p.err = p.tx.QueryRowContext(p.ctx, "SELECT data FROM host_parts WHERE pack = $1 AND part = $2", p.pack, p.next).
			Scan(&p.rest)
		if errors.Is(p.err, sql.ErrNoRows) {
			p.err = io.EOF
		}
		p.next++
	}
	if p.err != nil {
		return 0, p.err
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// Turn runs f while no other node has the turn of a repository. A process that is stopped in it, or takes very long,
// loses it: whatever moves in f moves by what it is expected to be.
func (s *Store) Turn(ctx context.Context, project string, f func()) error {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return failed("take the turn of the repository", err)
	}
	defer tx.Rollback()
	_, err = tx.ExecContext(ctx, "SET LOCAL idle_in_transaction_session_timeout = '20s'")
	if err == nil {
		_, err = tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(hashtextextended(current_schema || ' host ' || $1, 0))",
			project)
	}
	if err != nil {
		return failed("take the turn of the repository", err)
	}
	f()
	return nil
}

// A Move changes a reference, or what moves with them, from what it is expected to be. Empty stands for "not there".
type Move struct{ Name, Old, New string }

// Push adds objects and moves references, all of it or nothing. Pack writes the objects and says how many there are,
// and how many bytes they have; it may be nil. A reference that is not where it is expected to be is failure.ErrMoved;
// if all are where they should go, that is done already. It returns the version then, and how many packs there are.
func (s *Store) Push(
	ctx context.Context, project string, moves []Move, pack func(io.Writer) (objects int, inflated int64, err error),
) (at Place, packs int, err error) {
	up := &upload{ctx: ctx, store: s}
	var objects int
	var inflated int64
	if pack != nil {
		if objects, inflated, err = pack(up); err == nil {
			err = up.finish()
		}
		if err != nil {
			up.drop()
			return Place{}, 0, err
		}
	}
	names, olds, news := make([]string, len(moves)), make([]string, len(moves)), make([]string, len(moves))
	for i, m := range moves {
		names[i], olds[i], news[i] = m.Name, m.Old, m.New
	}
	err = s.db.QueryRowContext(ctx, "SELECT l, v, packs FROM host_push($1, $2, $3, $4, $5, $6, $7, $8, $9)", project, names,
		olds, news, up.part, up.number, objects, up.size, inflated).Scan(&at.Life, &at.Version, &packs)
	switch {
	case err != nil:
	case at.Version == 0:
		err = failure.ErrMoved
		up.drop()
	case packs == 0: // it was done already
		up.drop()
	}
	return at, packs, failed("push", err)
}

// Remove removes a repository.
func (s *Store) Remove(ctx context.Context, project string) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return failed("remove the repository", err)
	}
	defer tx.Rollback()
	for _, statement := range []string{
		"SELECT 1 FROM host_repositories WHERE project = $1 FOR UPDATE",
		"DELETE FROM host_parts WHERE pack IN (SELECT pack FROM host_packs WHERE project = $1)",
		"DELETE FROM host_repositories WHERE project = $1",
	} {
		if _, err := tx.ExecContext(ctx, statement, project); err != nil {
			return failed("remove the repository", err)
		}
	}
	return failed("remove the repository", tx.Commit())
}

// An upload sends a pack in parts. One that fits into a single part is sent together with the references.
type upload struct {
	ctx    context.Context
	store  *Store
	number int64 // of the pack; 0 while all is in part
	parts  int
	part   []byte
	size   int64
}

func (u *upload) Write(b []byte) (int, error) {
	for n := 0; n < len(b); {
		if len(u.part) == partSize {
			if err := u.send(); err != nil {
				return n, err
			}
		}
		take := min(len(b)-n, partSize-len(u.part))
		u.part = append(u.part, b[n:n+take]...)
		n += take
		u.size += int64(take)
	}
	return len(b), nil
}

func (u *upload) send() error {
	if u.number == 0 {
		err := u.store.db.QueryRowContext(u.ctx, "SELECT nextval('host_pack_numbers')").Scan(&u.number)
		if err != nil {
			return failed("push", err)
		}
	}
	_, err := u.store.db.ExecContext(u.ctx, "INSERT INTO host_parts (pack, part, data) VALUES ($1, $2, $3)", u.number,
		u.parts, u.part)
	u.parts, u.part = u.parts+1, u.part[:0]
	return failed("push", err)
}

// finish sends the last part of a pack that has several.
func (u *upload) finish() error {
	if u.number == 0 {
		return nil
	}
	return u.send()
}

// drop removes what was sent and is of no use: an earlier call, whose answer was lost, may have made use of it. If that
// fails, Sweep removes it later.
func (u *upload) drop() {
	if u.number != 0 {
		_, _ = u.store.db.ExecContext(context.WithoutCancel(u.ctx),
			"DELETE FROM host_parts WHERE pack = $1 AND NOT EXISTS (SELECT FROM host_packs p WHERE p.pack = $1)", u.number)
	}
}

// Sweep removes what pushes that broke off have left.
func (s *Store) Sweep(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, "DELETE FROM host_parts WHERE sent < now() - INTERVAL '"+leftOver+
		"' AND pack NOT IN (SELECT pack FROM host_packs)")
	return failed("remove what is left of pushes", err)
}

// Join puts packs together if there are many: the newest ones, up to one that is larger than those after it taken
// together, so that a repository has about as many as the number of its objects has digits, and each byte is written
// again that often at most. Packs hold whole objects, so one follows the other.
func (s *Store) Join(ctx context.Context, project string) error {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return failed("join packs", err)
	}
	defer tx.Rollback()
	packs, err := packsOf(ctx, tx, project, 0)
	if err != nil || len(packs) < fewPacks {
		return failed("join packs", err)
	}
	if packs = newest(packs); len(packs) < 2 {
		return nil
	}
	up := &upload{ctx: ctx, store: s}
	objects, inflated, err := joined(up, packs, func(p packRow) io.Reader { return &parts{ctx: ctx, tx: tx, pack: p.number} })
	if err == nil {
		err = up.send() // even if there is one part: it has a number then
	}
	if err != nil {
		up.drop()
		return failed("join packs", err)
	}
	tx.Rollback() // it holds back the removal of what was read
	numbers := make([]int64, len(packs))
	for i, p := range packs {
		numbers[i] = p.number
	}
	var done bool // if not, another node was faster
	err = s.db.QueryRowContext(ctx, "SELECT host_join($1, $2, $3, $4, $5, $6)", project, numbers, up.number, objects, up.size,
		inflated).Scan(&done)
	return failed("join packs", err)
}

// newest are those that are to be joined; of two that are as large at least.
func newest(packs []packRow) []packRow {
	from := len(packs) - 1
	sum := packs[from]
	for from > 0 && (packs[from-1].bytes <= 2*sum.bytes || len(packs)-from < 2) {
		p := packs[from-1]
		sum.bytes, sum.objects, sum.inflated = sum.bytes+p.bytes, sum.objects+p.objects, sum.inflated+p.inflated
		if sum.bytes > maxBytes || sum.objects > maxObjects || sum.inflated > maxInflated {
			break
		}
		from--
	}
	return packs[from:]
}

// joined writes one pack that holds what several do, each object once: in how many an object stands depends on what
// branches had in common, and git refuses a pack in which one stands twice. It reads the packs two times, since how many
// objects there are stands first.
func joined(w io.Writer, packs []packRow, open func(packRow) io.Reader) (objects, inflated int64, err error) {
	type object struct {
		length int64
		kept   bool
	}
	seen := map[plumbing.Hash]bool{}
	content := make([][]object, len(packs))
	for i, p := range packs {
		err := git.EachObject(open(p), func(name plumbing.Hash, size, length int64) error {
			content[i] = append(content[i], object{length, !seen[name]})
			if !seen[name] {
				seen[name] = true
				objects, inflated = objects+1, inflated+size
			}
			return nil
		})
		if err != nil {
			return 0, 0, fmt.Errorf("pack %d is damaged: %w", p.number, err)
		}
		if int64(len(content[i])) != p.objects {
			return 0, 0, fmt.Errorf("pack %d is damaged: it holds %d objects and should hold %d", p.number, len(content[i]),
				p.objects)
		}
	}
	sum := sha1.New()
	out := io.MultiWriter(w, sum)
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(objects))
	if _, err := out.Write(head); err != nil {
		return 0, 0, err
	}
	for i, p := range packs {
		r := open(p)
		_, err := io.CopyN(io.Discard, r, git.PackHead)
		for _, o := range content[i] {
			to := io.Discard
			if o.kept {
				to = out
			}
			if err == nil {
				_, err = io.CopyN(to, r, o.length)
			}
		}
		if err != nil {
			return 0, 0, fmt.Errorf("pack %d: %w", p.number, err)
		}
	}
	_, err = w.Write(sum.Sum(nil))
	return objects, inflated, err
}

// failed sorts an error of the database: one that a retry may help against is failure.ErrTemporary.
func failed(doing string, err error) error {
	var said *pgconn.PgError
	switch {
	case err == nil, errors.Is(err, failure.ErrMoved), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &said) && !passing(said.Code):
		return fmt.Errorf("%s, in the database: %w", doing, err)
	}
	return fmt.Errorf("%w: %s, in the database: %w", failure.ErrTemporary, doing, err)
}

// passing reports whether an error of PostgreSQL's goes by: connections, resources, shutdowns, conflicts of transactions.
func passing(code string) bool {
	for _, class := range []string{"08", "25006", "40", "53", "55P03", "57", "58"} {
		if strings.HasPrefix(code, class) {
			return true
		}
	}
	return false
}
