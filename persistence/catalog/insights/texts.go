package insights

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"docent/api"
	"docent/internal/backoff"
	"docent/persistence/catalog/database"
	"docent/persistence/catalog/listing"
)

const (
	textBatch  = 128                    // questions whose words are written in one transaction: less than 50 ms
	textRest   = 10 * time.Second       // let so many come together: a transaction costs as much as many rows
	textRetry  = 5 * time.Second        // after a failure
	textNow    = 200 * time.Millisecond // at most, words are written for somebody who asks for them
	textLength = 4000                   // bytes of a question, of an answer and of a comment that are found
	// begunWord is how long a word has to be, in characters, to find words that begin with it too.
	begunWord = 4
)

// keepTexts writes the words of questions some time after the questions, and in half of the time at most: readers' answers
// are listed by the thousand in a second, and cutting them into words may wait. Half of the time is enough for as many
// questions as a server answers.
func (s *Store) keepTexts(ctx context.Context) {
	for {
		began := time.Now()
		n, err := s.writeTexts(ctx, textBatch)
		pause := min(time.Since(began), textRest)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.db.Log.Warn("could not write the words of questions yet", "error", err)
			pause = textRetry
		case n < textBatch:
			select {
			case <-ctx.Done():
				return
			case <-s.texts:
				pause = textRest
			}
		}
		if backoff.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// textsQueued says that there are words to be written.
func (s *Store) textsQueued() {
	select {
	case s.texts <- struct{}{}:
	default:
	}
}

// textsNow writes the words of the newest questions for somebody who asks for them.
func (s *Store) textsNow(ctx context.Context) error {
	for began := time.Now(); time.Since(began) < textNow; {
		var waiting int
		err := s.db.Read.NewRaw("SELECT COUNT(*) FROM (SELECT 1 FROM text_queue LIMIT 1) AS q").Scan(ctx, &waiting)
		if err != nil || waiting == 0 {
			return s.db.Fail("look for questions without words", err)
		}
		if n, err := s.writeTexts(ctx, textBatch); err != nil || n < textBatch {
			return err
		}
	}
	return nil
}

// FinishTexts writes all words that wait, without a rest.
func (s *Store) FinishTexts(ctx context.Context) error {
	for {
		if n, err := s.writeTexts(ctx, listing.Batch); err != nil || n < listing.Batch {
			return err
		}
	}
}

// writeTexts writes the words of some questions, the newest first, and removes those of questions that are gone.
func (s *Store) writeTexts(ctx context.Context, most int) (n int, err error) {
	err = s.db.InTx(ctx, "write the words of questions", func(ctx context.Context, tx bun.Tx) error {
		var nums []int64
		err := database.ForUpdate(tx.NewSelect().Model((*textQueueRow)(nil)).Column("num").Order("num DESC").Limit(int64(most))).
			Scan(ctx, &nums)
		if n = len(nums); err != nil || n == 0 {
			return err
		}
		slices.Sort(nums) // SQLite's index writes what it holds in memory whenever a number is not above the one before
		var rows []questionRow
		err = tx.NewSelect().Model(&rows).Column("id", "num", "outcome", "in_doubt", "body").
			Where("num IN ?", bun.Tuple(nums)).Scan(ctx)
		if err != nil {
			return err
		}
		words := make(map[int64]string)
		for i := range rows {
			q, err := rows[i].question()
			if err != nil {
				s.db.Log.Error("could not index a question's words", "question", rows[i].ID, "error", err)
				continue
			}
			words[rows[i].Num] += " " + textOf(q, rows[i].Outcome)
		}
		if err := storeTexts(ctx, tx, nums, words); err != nil {
			return err
		}
		_, err = tx.NewDelete().Model((*textQueueRow)(nil)).Where("num IN ?", bun.Tuple(nums)).Exec(ctx)
		return err
	})
	return n, err
}

// storeTexts stores the words of questions by their numbers, and removes those of the numbers that have none.
func storeTexts(ctx context.Context, tx bun.Tx, nums []int64, words map[int64]string) error {
	remove, row := "DELETE FROM question_texts WHERE num IN ?", "(?, to_tsvector('simple', ?))"
	insert, replace := "INSERT INTO question_texts (num, words) VALUES ", " ON CONFLICT (num) DO UPDATE SET words = EXCLUDED.words"
	if tx.Dialect().Name() == dialect.SQLite {
		remove, row = "DELETE FROM question_texts WHERE rowid IN ?", "(?, ?)"
		insert, replace = "INSERT OR REPLACE INTO question_texts (rowid, words) VALUES ", ""
	}
	for chunk := range slices.Chunk(nums, questionChunk) {
		var gone []int64
		var rows []string
		var args []any
		for _, num := range chunk {
			if text, there := words[num]; there {
				rows, args = append(rows, row), append(args, num, text)
			} else {
				gone = append(gone, num)
			}
		}
		if len(gone) > 0 {
			if _, err := tx.NewRaw(remove, bun.Tuple(gone)).Exec(ctx); err != nil {
				return err
			}
		}
		if len(rows) > 0 {
			if _, err := tx.NewRaw(insert+strings.Join(rows, ", ")+replace, args...).Exec(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// textOf is what a question is found by: marks for its properties, and its words with those of the answer.
func textOf(q api.QuestionRow, outcome string) string {
	marks := []string{mark('p', string(q.Project)), mark('u', q.Caller), mark('c', string(q.Channel)), mark('o', outcome)}
	if q.InDoubt() {
		marks = append(marks, mark('o', outcomeInDoubt))
	}
	if q.Rating != "" {
		marks = append(marks, mark('r', string(q.Rating)))
	}
	if q.Page != "" {
		marks = append(marks, mark('g', pagePath(q.Page)))
	}
	for _, s := range q.Sources {
		marks = append(marks, mark('g', pagePath(s.URL)))
	}
	texts := []string{strings.Join(marks, " "), spaced(q.Question), spaced(q.Answer), spaced(q.Comment)}
	return strings.Join(texts, " ")
}

// mark is a word that stands for a property. No text has it by chance.
func mark(kind byte, value string) string {
	sum := sha256.Sum256([]byte(value))
	return "zq" + string(kind) + hex.EncodeToString(sum[:8])
}

// pagePath is what a page's address and the path that a reader was on have in common.
func pagePath(page string) string {
	if u, err := url.Parse(page); err == nil {
		page = u.Path
	}
	return strings.TrimSuffix(strings.Trim(page, "/"), ".html")
}

// spaced is a text of which only words are left, separated by spaces. A character of a script that writes without
// spaces is a word by itself.
func spaced(s string) string {
	var b strings.Builder
	for w := range words(s) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		if b.Len()+len(w) > textLength {
			break
		}
		b.WriteString(w)
	}
	return b.String()
}

// words yields the words of a text.
func words(s string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		start := -1
		for i, r := range s {
			alone := unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
			part := r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
			if start >= 0 && (alone || !part) {
				if !yield(s[start:i]) {
					return
				}
				start = -1
			}
			if alone {
				if !yield(s[i : i+utf8.RuneLen(r)]) {
					return
				}
			} else if part && start < 0 {
				start = i
			}
		}
		if start >= 0 {
			yield(s[start:])
		}
	}
}

// A phrase is words that have to stand one after the other; begun says that the last one may go on.
type phrase struct {
	words []string
	begun bool
}

// phrases reads what somebody looks for: words, each of which has to be there, and phrases in quotation marks.
func phrases(text string) (list []phrase) {
	for n, part := range strings.Split(text, `"`) {
		if n%2 == 1 {
			if p := phraseOf(part); len(p.words) > 0 {
				list = append(list, p)
			}
			continue
		}
		for _, word := range strings.Fields(part) {
			p := phraseOf(word)
			if len(p.words) == 0 {
				continue
			}
			p.begun = utf8.RuneCountInString(p.words[len(p.words)-1]) >= begunWord
			list = append(list, p)
		}
	}
	return list[:min(len(list), 16)]
}

func phraseOf(text string) (p phrase) {
	for w := range words(text) {
		p.words = append(p.words, strings.ToLower(w))
	}
	return p
}

// textMatch is a condition on the index of words: that all marks are there, and all phrases.
func textMatch(of dialect.Name, marks []string, list []phrase) string {
	var all []string
	if of == dialect.SQLite {
		all = append(all, marks...)
		for _, p := range list {
			text := `"` + strings.Join(p.words, " ") + `"`
			if p.begun {
				text += " *"
			}
			all = append(all, text)
		}
		return strings.Join(all, " AND ")
	}
	all = append(all, marks...)
	for _, p := range list {
		quoted := make([]string, len(p.words))
		for i, w := range p.words { // letters and digits alone
			quoted[i] = "'" + w + "'"
		}
		if p.begun {
			quoted[len(quoted)-1] += ":*"
		}
		all = append(all, "("+strings.Join(quoted, " <-> ")+")")
	}
	return strings.Join(all, " & ")
}
