// Package openapi holds the machine-readable contract of the HTTP API, an OpenAPI 3.1 document. The running service
// serves it, and the router's tests hold every request and response against it.
package openapi

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"go.yaml.in/yaml/v4"
)

// YAML is the document as it is written.
//
//go:embed openapi.yaml
var YAML []byte

// JSON is the same document as JSON.
var JSON = sync.OnceValue(func() []byte {
	var doc any
	if err := yaml.Unmarshal(YAML, &doc); err != nil {
		panic(fmt.Sprintf("openapi.yaml, which is a part of this program, is not YAML: %v", err)) // a test reads it
	}
	out, err := json.Marshal(doc)
	if err != nil {
		panic(fmt.Sprintf("openapi.yaml, which is a part of this program, has no JSON form: %v", err))
	}
	return out
})
