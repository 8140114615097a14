package mcp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// refusals holds back what the library refuses in plain text, which clients of the protocol do not read.
type refusals struct {
	http.ResponseWriter
	status int // of what is held back; that of the answer otherwise
	held   bool
	reason bytes.Buffer
}

func (r *refusals) WriteHeader(status int) {
	if r.status != 0 {
		return
	}
	r.status = status
	if r.held = status >= 400 && strings.HasPrefix(r.Header().Get("Content-Type"), "text/plain"); !r.held {
		r.ResponseWriter.WriteHeader(status)
	}
}

func (r *refusals) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if r.held {
		return r.reason.Write(b)
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController find deadlines and flushing.
func (r *refusals) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Codes of JSON-RPC.
const (
	parseError     = -32700
	invalidRequest = -32600
	noMethod       = -32601
)

// answer sends what was held back, in the form of JSON-RPC. A method that nobody knows is an answer to its call, and
// nothing to a notification, which is never answered.
func (r *refusals) answer(message []byte) {
	if !r.held {
		return
	}
	var call struct {
		ID json.RawMessage `json:"id"`
	}
	code, status, reason := invalidRequest, r.status, strings.TrimSpace(r.reason.String())
	switch err := json.Unmarshal(message, &call); {
	case len(message) == 0 || status != http.StatusBadRequest: // of no message, or of the protocol below it
	case err != nil && message[0] != '[':
		code = parseError
	case strings.HasPrefix(reason, "JSON RPC not handled"):
		code, status, reason = noMethod, http.StatusOK, strings.Replace(reason, "JSON RPC not handled", "method not found", 1)
		if call.ID == nil {
			r.Header().Del("Content-Type")
			r.ResponseWriter.WriteHeader(http.StatusAccepted)
			return
		}
	}
	if call.ID == nil {
		call.ID = json.RawMessage("null")
	}
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": call.ID, // what was read: cannot fail
		"error": map[string]any{"code": code, "message": reason}})
	r.Header().Set("Content-Type", "application/json")
	r.ResponseWriter.WriteHeader(status)
	r.ResponseWriter.Write(body)
}
