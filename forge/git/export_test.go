package git

var DiffLines = func(a, b []byte) string { x, y := splitLines(a), splitLines(b); return unified(x, y, diffLines(x, y)) }
