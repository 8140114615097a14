// Package formats reads the JSON, YAML and TOML of documentation repositories: files that strangers write.
//
// A file that nests deeper than MaxDepth is refused with a *DepthError before a parser sees it. Parsers and what walks
// their results recurse once a level, and Go ends the process when a stack overflows: no recover catches it. So each
// file of a repository is read through this package, and cmd/docent tests that no other package calls those parsers.
package formats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// MaxDepth is how many arrays, objects, tables and parts of a dotted key may stand within each other. Files that people
// write stay below 20, OpenAPI documents below 60.
const MaxDepth = 250

// A DepthError says that a file nests too deep to be read.
type DepthError struct{ Format string }

func (e *DepthError) Error() string {
	return fmt.Sprintf("the %s is nested deeper than %d levels", e.Format, MaxDepth)
}

// Decode decodes a file into v by the ending of its name.
func Decode(name string, src []byte, v any) error {
	switch strings.ToLower(path.Ext(name)) {
	case ".json":
		return JSON(src, v)
	case ".toml":
		return TOML(src, v)
	case ".yaml", ".yml":
		return YAML(src, v)
	}
	return fmt.Errorf("%s is neither JSON, YAML nor TOML", name)
}

// JSON decodes JSON into v. Comments and commas behind the last element are allowed, as documentation sites allow them.
func JSON(src []byte, v any) error {
	if err := checkDepth(jsonSyntax, src); err != nil {
		return err
	}
	err := json.Unmarshal(src, v)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	plain, err := hujson.Standardize(bytes.Clone(src)) // it writes over comments
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, v)
}

// JSONTree reads JSON as JSON does, and keeps each value's position.
func JSONTree(src []byte) (hujson.Value, error) {
	if err := checkDepth(jsonSyntax, src); err != nil {
		return hujson.Value{}, err
	}
	return hujson.Parse(src)
}

// YAML decodes the first document of a YAML stream into v. Nothing at all decodes to nothing.
func YAML(src []byte, v any) error {
	var tooDeep *DepthError
	limits := loaderlimits.New(loaderlimits.DepthFunc(func(depth int, _ *loaderlimits.DepthContext) error {
		if depth > MaxDepth {
			tooDeep = &DepthError{Format: "YAML"}
			return tooDeep
		}
		return nil
	}))
	// The defaults of yaml.Unmarshal, which takes no options.
	loader, err := yaml.NewLoader(bytes.NewReader(src), yaml.WithV3Defaults(), yaml.WithSingleDocument(),
		yaml.WithPlugin(limits))
	if err != nil {
		return err
	}
	err = loader.Load(v)
	switch {
	case tooDeep != nil:
		return tooDeep
	case errors.Is(err, io.EOF): // no document
		return nil
	}
	return err
}

// TOML decodes TOML into v.
func TOML(src []byte, v any) error {
	if err := checkDepth(tomlSyntax, src); err != nil {
		return err
	}
	return toml.Unmarshal(src, v)
}
