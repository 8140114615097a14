//go:build !linux

package sandbox

// Find reports that there is none: sandboxes are made of what Linux has.
func Find(string, int) (Kind, error) {
	return "", &MissingError{Why: []string{"it is made of what Linux has, and this system is another one"}}
}
