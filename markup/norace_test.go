//go:build !race

package markup

const RaceDetector = false
