package health

import (
	"fmt"
	"time"
)

// MeaningLine says how the vectors of one index stand.
func MeaningLine(m Meaning) string {
	text := fmt.Sprintf("%d of %d sections have vectors of %s", m.Embedded, m.Sections, m.Model)
	switch {
	case m.Model == "":
		text = "waits for its turn"
	case m.Serving == "":
		text += "; searches go by words alone until most have one"
	case m.Serving != m.Model:
		text += "; searches use those of " + m.Serving + " meanwhile"
	}
	if m.Problem != "" {
		text += fmt.Sprintf("; STOPPED, tried again in %s: %s",
			time.Duration(m.Again*float64(time.Second)).Round(time.Second), m.Problem)
	}
	return text
}
