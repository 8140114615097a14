// Package required checks that a constructor got everything that it needs.
package required

import (
	"fmt"
	"reflect"
)

// Fields returns an error if one of the named fields of a struct is not set. A number must be positive.
func Fields(owner string, deps any, names ...string) error {
	v := reflect.ValueOf(deps)
	for _, name := range names {
		if f := v.FieldByName(name); f.IsZero() || f.CanInt() && f.Int() < 0 {
			return fmt.Errorf("%s: %s.%s is not set", owner, v.Type().Name(), name)
		}
	}
	return nil
}
