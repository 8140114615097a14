package client_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/api/client"
	"docent/api/openapi"
)

type object = map[string]any

func document(t *testing.T) object {
	t.Helper()
	var doc object
	if err := json.Unmarshal(openapi.JSON(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestEveryOperationHasAMethod holds the client against the document: a method for each operationId, but for HEAD, what
// browsers ask before they call, and the second address of the operations under /discovery.
func TestEveryOperationHasAMethod(t *testing.T) {
	t.Parallel()
	paths := document(t)["paths"].(object)
	of := reflect.TypeFor[*client.Client]()
	found := 0
	for path, item := range paths {
		if _, twin := paths["/discovery"+path]; twin {
			continue
		}
		for verb, operation := range item.(object) {
			o, ok := operation.(object)
			if !ok || verb == "head" || verb == "options" {
				continue
			}
			if strings.HasPrefix(path, "/v1/chat/") || strings.HasPrefix(path, "/v1/models") || path == "/v1/responses" ||
				strings.HasPrefix(path, "/v1/ag-ui/") {
				continue // the clients of OpenAI and of AG-UI have them
			}
			id := o["operationId"].(string)
			if _, ok := of.MethodByName(strings.ToUpper(id[:1]) + id[1:]); !ok {
				t.Errorf("%s %s has no method %s", strings.ToUpper(verb), path, strings.ToUpper(id[:1])+id[1:])
			}
			found++
		}
	}
	if found < 30 {
		t.Errorf("only %d operations were looked at", found)
	}
}

// properties are those of a schema, references and alternatives followed.
func properties(t *testing.T, doc object, schema any, into object) object {
	t.Helper()
	s, ok := schema.(object)
	if !ok {
		return into
	}
	if ref, ok := s["$ref"].(string); ok {
		var at any = doc
		for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			at = at.(object)[name]
		}
		if at == nil {
			t.Fatalf("%s leads nowhere", ref)
		}
		properties(t, doc, at, into)
	}
	for _, several := range []string{"allOf", "oneOf", "anyOf"} {
		list, _ := s[several].([]any)
		for _, one := range list {
			properties(t, doc, one, into)
		}
	}
	named, _ := s["properties"].(object)
	for name, p := range named {
		if into[name] == nil { // what is narrowed later keeps its first form
			into[name] = p
		}
	}
	if items, ok := s["items"]; ok {
		properties(t, doc, items, into)
	}
	return into
}

// fields are the JSON names of a type and the types of their values.
func fields(typ reflect.Type) map[string]reflect.Type {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	out := map[string]reflect.Type{}
	if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[time.Time]() {
		return out
	}
	for f := range fieldsOf(typ) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			maps.Copy(out, fields(f.Type))
		case name != "-":
			out[name] = f.Type
		}
	}
	return out
}

func fieldsOf(typ reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range typ.NumField() {
			if !yield(typ.Field(i)) {
				return
			}
		}
	}
}

// same compares a type with a schema, and their fields' with each other.
func same(t *testing.T, doc object, at string, schema any, typ reflect.Type) (compared int) {
	t.Helper()
	want, have := properties(t, doc, schema, object{}), fields(typ)
	if typ.Kind() == reflect.String {
		return 0 // of several forms the simplest: a message's text
	}
	names, own := slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(have))
	if !slices.Equal(names, own) {
		t.Errorf("%s: %v has the fields %q, the document %q", at, typ, own, names)
		return 0
	}
	for name, p := range want {
		compared += 1 + same(t, doc, at+"."+name, p, have[name])
	}
	return compared
}

// TestTypesAreThoseOfTheDocument compares the fields of requests and answers, all the way down.
func TestTypesAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	doc := document(t)
	schemas := doc["components"].(object)["schemas"].(object)
	compared := 0
	for name, typ := range map[string]reflect.Type{
		"Job":                reflect.TypeFor[client.Job](),
		"CreateJob":          reflect.TypeFor[client.CreateJob](),
		"FollowUp":           reflect.TypeFor[client.FollowUp](),
		"JobList":            reflect.TypeFor[client.JobList](),
		"Session":            reflect.TypeFor[client.Session](),
		"SessionList":        reflect.TypeFor[client.SessionList](),
		"CreateSession":      reflect.TypeFor[client.CreateSession](),
		"SessionMessage":     reflect.TypeFor[client.SessionMessage](),
		"AskContext":         reflect.TypeFor[client.AskContext](),
		"Filter":             reflect.TypeFor[client.Filter](),
		"Search":             reflect.TypeFor[client.Search](),
		"SearchHit":          reflect.TypeFor[client.SearchHit](),
		"ReadPage":           reflect.TypeFor[client.ReadPage](),
		"Page":               reflect.TypeFor[client.Page](),
		"RateAnswer":         reflect.TypeFor[client.RateAnswer](),
		"Update":             reflect.TypeFor[client.Update](),
		"UpdateCommit":       reflect.TypeFor[client.UpdateCommit](),
		"ChangedFiles":       reflect.TypeFor[client.ChangedFiles](),
		"ConversationList":   reflect.TypeFor[client.ConversationList](),
		"Conversation":       reflect.TypeFor[client.Conversation](),
		"ConversationTotals": reflect.TypeFor[client.ConversationTotals](),
		"Thread":             reflect.TypeFor[client.Thread](),
		"ThreadMessage":      reflect.TypeFor[client.ThreadMessage](),
		"CallerStats":        reflect.TypeFor[client.CallerStats](),
		"Caller":             reflect.TypeFor[client.Caller](),
		"SearchList":         reflect.TypeFor[client.SearchList](),
		"SearchCount":        reflect.TypeFor[client.SearchCount](),
		"FeedbackList":       reflect.TypeFor[client.FeedbackList](),
		"Feedback":           reflect.TypeFor[client.Feedback](),
		"Evaluate":           reflect.TypeFor[client.Evaluate](),
		"EvaluateQuestion":   reflect.TypeFor[client.EvaluateQuestion](),
		"Evaluation":         reflect.TypeFor[client.Evaluation](),
		"EvaluatedAnswer":    reflect.TypeFor[client.EvaluatedAnswer](),
		"EvaluatedSource":    reflect.TypeFor[client.EvaluatedSource](),
		"PageFeedbackList":   reflect.TypeFor[client.PageFeedbackList](),
		"PageFeedback":       reflect.TypeFor[client.PageFeedback](),
		"Status":             reflect.TypeFor[client.Status](),
		"Challenge":          reflect.TypeFor[client.Challenge](),
		"ToolUse":            reflect.TypeFor[client.ToolUse](),
		"FileChange":         reflect.TypeFor[client.FileChange](),
		"JobEvent":           reflect.TypeFor[client.Event](), "AskV2": reflect.TypeFor[client.Ask](), "MessageV2": reflect.TypeFor[client.Message](),
		"WidgetSettings": reflect.TypeFor[client.WidgetSettings](),
		"Citation":       reflect.TypeFor[client.Source](),
	} {
		if schemas[name] == nil {
			t.Errorf("the document has no schema %s", name)
			continue
		}
		compared += same(t, doc, name, schemas[name], typ)
	}
	if compared < 150 {
		t.Errorf("only %d fields were compared", compared)
	}
	if wrong := new(
		testing.T,
	); same(wrong, doc, "Job", schemas["Job"], reflect.TypeFor[client.Status]()) != 0 ||
		!wrong.Failed() {
		t.Error("a type with other fields is not noticed")
	}
}
