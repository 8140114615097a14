//go:build !race

// Package race reports whether the program was built with the race detector, which takes memory and time of its own.
package race

// Enabled reports whether the race detector is on.
const Enabled = false
