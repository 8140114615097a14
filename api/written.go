package api

import "time"

// A WrittenSection is the questions that a language model wrote for a section of the documentation.
type WrittenSection struct {
	Key       string   `json:"-"` // the hash of what the section says
	Questions []string `json:"questions"`
	Model     string   `json:"model"`
}

// EveryIndex stands for all indexes together.
const EveryIndex ProjectID = "*"

// A WrittenState is how the questions of an index stand, and what they cost. That of EveryIndex is what all of them used
// on its day.
type WrittenState struct {
	Index      ProjectID `json:"-"`
	Model      string    `json:"model,omitempty"`
	Generation string    `json:"generation,omitempty"` // of the index whose sections all have theirs; empty until they do
	Sections   int       `json:"sections,omitempty"`   // those that say the same count once
	Written    int       `json:"written,omitempty"`    // of them
	Asked      int       `json:"asked,omitempty"`      // sections that the model was asked about, ever
	Tokens     int64     `json:"tokens,omitempty"`     // that this took
	Cost       int64     `json:"cost,omitempty"`       // millionths of a US dollar
	Problem    string    `json:"problem,omitempty"`    // why no more are written at the moment
	UpdatedAt  time.Time `json:"updatedAt,omitzero"`

	Day       string `json:"day,omitempty"` // 2006-01-02, UTC
	DayTokens int64  `json:"dayTokens,omitempty"`
	DayCost   int64  `json:"dayCost,omitempty"`
}

// ToGo is about what the sections that have none yet will cost: as much each as those before.
func (s *WrittenState) ToGo() int64 {
	if s.Asked == 0 {
		return 0
	}
	return int64(float64(s.Cost) / float64(s.Asked) * float64(max(0, s.Sections-s.Written)))
}
