//go:build race

package builtin

const raceDetector = true
