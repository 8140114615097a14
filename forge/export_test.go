package forge

// Failing makes a hub fail after the steps for which fault returns an error.
func Failing(o Options, fault func(step string) error) Options {
	o.fault = fault
	return o
}

var (
	Merge3    = merge3
	DiffLines = func(a, b []byte) string { x, y := splitLines(a), splitLines(b); return unified(x, y, diffLines(x, y)) }
)
