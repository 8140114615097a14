package meaning

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"docent/search/index"
)

// A Mark says which generation of an index has all its vectors, so that a process that starts need not open it to know.
type Mark struct {
	Generation string `json:"generation"`
	Model      string `json:"model"`
	Sections   int    `json:"sections"`
}

// Complete reports whether the generation that a project serves has all its vectors of a model.
func (m Mark) Complete(project string, model Model) bool {
	current, err := os.ReadFile(filepath.Join(project, "CURRENT"))
	return err == nil && m.Generation != "" && strings.TrimSpace(string(current)) == m.Generation && m.Model == model.ID()
}

func markFile(dir string) string { return filepath.Join(dir, "complete") }

// ReadMark returns the mark in a folder of vectors; the zero one if there is none.
func ReadMark(dir string) (m Mark) {
	raw, err := os.ReadFile(markFile(dir))
	if err != nil || json.Unmarshal(raw, &m) != nil {
		return Mark{}
	}
	return m
}

// WriteMark replaces the mark in a folder of vectors.
func WriteMark(dir string, m Mark) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return index.ReplaceFile(markFile(dir), raw)
}
