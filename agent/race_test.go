//go:build race

package agent_test

const raceDetector = true
