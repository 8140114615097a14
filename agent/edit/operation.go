package edit

import (
	"strings"
)

// An Operation is one thing that the rules can do.
type Operation interface {
	Todo() string  // what is to be done, in one line
	Where() *Scope // where; nil for what is about things that it names itself
	Run(r *Run) error
}

// A Scoped operation can be done again in another place.
type Scoped interface {
	Operation
	Within(s Scope) Operation
}

// again is an operation as it is done again: in the places of another scope.
func again[T any, P interface {
	*T
	Operation
}](op P, s Scope) Operation {
	other := *op
	where := P(&other).Where()
	*where = where.elsewhere(s)
	return P(&other)
}

// Many are the operations of one instruction.
type Many []Operation

// Members are the operations that one instruction asks for.
func Members(op Operation) []Operation {
	if list, ok := op.(*Many); ok {
		return *list
	}
	return []Operation{op}
}

func (l *Many) Todo() string {
	var out []string
	for _, op := range *l {
		out = append(out, op.Todo())
	}
	return strings.Join(out, "; ")
}

func (l *Many) Where() *Scope { return nil } // each has its own

func (l *Many) Run(r *Run) error {
	for _, op := range *l {
		if err := r.Do(op); err != nil {
			return err
		}
	}
	return nil
}
