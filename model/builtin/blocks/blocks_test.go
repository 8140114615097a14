package blocks

import (
	"testing"

	"docent/model"
)

// A linked image at the top of a page, as a logo or a badge is, is no alert and leaves nothing behind.
func TestALinkedImageLeavesNothing(t *testing.T) {
	all := Parse(&model.Passage{Path: "index.md", Text: "[![Kettle](images/logo.svg)](https://kettle.example)\n\nKettle boils.\n\n> [!NOTE]\n> It is hot.\n"})
	if len(all) != 2 || all[0].Text != "Kettle boils." || all[1].Text != "**Note:** It is hot." {
		t.Errorf("%+v", all)
	}
}
