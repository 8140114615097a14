package reqbody

import (
	"strconv"

	"docent/search"
)

// maxEvaluated is how many questions a conversation may have that is judged.
const maxEvaluated = 10

// An Evaluation is a conversation whose answers somebody judges.
type Evaluation struct {
	Questions []EvaluationQuestion
	Model     string // the project's if empty
}

// An EvaluationQuestion is one of its questions.
type EvaluationQuestion struct {
	Text  string
	Query search.Query
}

// DecodeEvaluation reads the body of an evaluation.
func DecodeEvaluation(raw []byte) (e Evaluation, err error) {
	var ps Problems
	m, err := ps.body(raw)
	if err != nil {
		return e, err
	}
	e.Model = ps.nullable("model", m.get("model"), length{min: 1, max: maxName})
	list := m.get("questions")
	switch {
	case is(list) == none:
		ps.Add("questions", "is required: send an array of 1 to %d questions of one conversation", maxEvaluated)
	case is(list) != brackets:
		ps.Add("questions", "must be an array, not %s", kind(list))
	default:
		e.Questions = ps.evaluated(elements(list))
	}
	return e, ps.Err()
}

func (p *Problems) evaluated(entries []value) (list []EvaluationQuestion) {
	if len(entries) == 0 || len(entries) > maxEvaluated {
		p.Add("questions", "must have 1 to %d entries, and has %d", maxEvaluated, len(entries))
		return nil
	}
	for i, entry := range entries {
		at := "questions[" + strconv.Itoa(i) + "]"
		if is(entry) != braces {
			p.Add(at, "must be an object with question, not %s", kind(entry))
			continue
		}
		m := members(entry)
		q := EvaluationQuestion{
			Text: p.required(at+".question", m.get("question"), length{min: 1, max: maxQuestion, trim: true, lines: true})}
		q.Query.Limit = 5
		q.Query.Filter = p.filter(at+".filter", m.get("filter"))
		q.Query.CurrentPath = p.nullable(at+".currentPath", m.get("currentPath"), length{max: maxPath})
		list = append(list, q)
	}
	return list
}
