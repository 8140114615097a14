package console

import (
	"strings"
	"testing"
)

func TestMarkdownIsShownWithoutItsMarks(t *testing.T) {
	t.Parallel()
	const text = "I found this:\n\n**[Set a threshold](https://docs.example.com/a)**\n\nRun `tidepool alert`. [1]"
	if got := strings.Join(strings.Fields(plainText(text)), " "); got != "I found this: Set a threshold Run tidepool alert. [1]" {
		t.Errorf("%q", got)
	}
}
