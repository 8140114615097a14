package health

import "fmt"

// QuestionsLine says how the questions of one index stand that a model writes, and what they cost.
func QuestionsLine(q Questions) string {
	text := fmt.Sprintf("%d of %d sections have questions by %s, $%.2f so far", q.Written, q.Sections, q.Model, q.CostCents/100)
	if q.Model == "" {
		return "waits for its turn"
	}
	if q.ToGoCents > 0 {
		text += fmt.Sprintf(", about $%.2f to go", q.ToGoCents/100)
	}
	if q.Problem != "" {
		text += "; STOPPED, tried again by itself: " + q.Problem
	}
	return text
}
