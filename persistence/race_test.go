//go:build race

package persistence

const raceDetector = true
