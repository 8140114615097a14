//go:build !race

package builtin

const raceDetector = false
