package nodes

import (
	"context"
	"database/sql"
	"encoding/binary"
	"math"
)

// vectorsKept is for how many days a vector stays that no node has asked for: nodes keep copies of their own.
const vectorsKept = 30

// Vectors are those that a node has kept under the keys, in their order; nil if there is none.
func (s *Shared) Vectors(ctx context.Context, keys [][]byte) ([][]float32, error) {
	out := make([][]float32, len(keys))
	at := make(map[string][]int, len(keys))
	for i, k := range keys {
		at[string(k)] = append(at[string(k)], i)
	}
	found := 0
	err := s.each(ctx, "look for vectors", func(rows *sql.Rows) error {
		var key, raw []byte
		if err := rows.Scan(&key, &raw); err != nil {
			return err
		}
		vector := make([]float32, len(raw)/4)
		for i := range vector {
			vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		for _, i := range at[string(key)] {
			out[i] = vector
		}
		found++
		return nil
	}, "SELECT key, vector FROM shared_vectors WHERE key = ANY ($1)", keys)
	if err == nil && found > 0 {
		_, err = s.exec(ctx, "note which vectors are used",
			"UPDATE shared_vectors SET used_on = CURRENT_DATE WHERE key = ANY ($1) AND used_on < CURRENT_DATE", keys)
	}
	return out, err
}

// KeepVectors stores vectors for other nodes. One that is there stays.
func (s *Shared) KeepVectors(ctx context.Context, keys [][]byte, vectors [][]float32) error {
	raw := make([][]byte, len(vectors))
	for i, v := range vectors {
		for _, x := range v {
			raw[i] = binary.LittleEndian.AppendUint32(raw[i], math.Float32bits(x))
		}
	}
	_, err := s.exec(ctx, "keep vectors", `INSERT INTO shared_vectors (key, vector)
		SELECT * FROM unnest($1::bytea[], $2::bytea[]) ON CONFLICT (key) DO NOTHING`, keys, raw)
	return err
}

// SweepVectors removes those that no node has asked for in a long time.
func (s *Shared) SweepVectors(ctx context.Context) error {
	_, err := s.exec(ctx, "remove vectors that are not used", "DELETE FROM shared_vectors WHERE used_on < CURRENT_DATE - $1::int", vectorsKept)
	return err
}
