package script

import (
	"strings"
	"testing"
)

func TestTextsOfPythonThatAreMadeOfEachOtherAreBounded(t *testing.T) {
	t.Parallel()
	values, _, _ := Python("name = 'Tide'\nproject = f'{name} docs'\nv = 'x'\n" + strings.Repeat("v = f'{v}{v}{v}{v}{v}{v}{v}{v}'\n", 30))
	if values["project"] != "Tide docs" {
		t.Errorf("the project is %q", values["project"])
	}
	if n := len(values["v"]); n > maxFormatted {
		t.Errorf("a text has %d bytes", n)
	}
}
