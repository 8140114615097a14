package forge

import (
	"fmt"
	"testing"
)

func TestCodeOwners(t *testing.T) {
	const github = "# all\n*  @all\n\n*.go @go # by language\n/docs/* @docs docs@acme.example\ndocs/api/ @acme/api @ann\n" +
		"/docs/api/generated.md\n/docs/with\\ space.md @space\n^\n[\n"
	const gitlab = "* @all\n[Docs] @docs @@developer\n/docs/\n/docs/api.md @api\n^[Words][2] @words\n*.md\n"
	for _, c := range []struct{ text, file, want string }{
		{github, "readme.md", "[all]"},
		{github, "docs/a.md", "[docs]"},
		{github, "docs/deep/a.md", "[all]"},
		{github, "docs/api/v1/a.md", "[acme/api ann]"},
		{github, "docs/api/generated.md", "[]"},
		{github, "docs/with space.md", "[space]"},
		{github, "cmd/main.go", "[go]"},
		{gitlab, "docs/a.md", "[all docs words]"},
		{gitlab, "docs/api.md", "[all api words]"},
		{gitlab, "main.go", "[all]"},
		{"", "a.md", "[]"},
	} {
		if got := fmt.Sprint(readOwners(c.text).of(c.file)); got != c.want {
			t.Errorf("%s: %s, want %s", c.file, got, c.want)
		}
	}
}
