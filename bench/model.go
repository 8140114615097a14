package bench

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Model answers as an OpenAI-compatible endpoint, from a script: so can any assistant be measured with a model whose
// speed is known. Its pieces are "part-0 ", "part-1 " …, which a reader can check.
type Model struct {
	Script
	Jitter time.Duration // by how much a piece may come later
}

// Handler serves the endpoint: chat completions, whole or as a stream, and the list of models.
func (m Model) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	for _, prefix := range []string{"/v1", ""} {
		mux.HandleFunc("GET "+prefix+"/models", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			// the caller may be gone
			_, _ = w.Write([]byte(`{"object":"list","data":[{"id":"scripted","object":"model","owned_by":"docent"}]}`))
		})
		mux.HandleFunc("POST "+prefix+"/chat/completions", m.complete)
	}
	return mux
}

func (m Model) complete(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Model         string `json:"model"`
		Stream        bool   `json:"stream"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<20)).Decode(&body); err != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"message": "the body is no JSON object: " +
			err.Error(), "type": "invalid_request_error"}})
		return
	}
	name, err := json.Marshal(body.Model)
	if err != nil {
		name = []byte(`"scripted"`)
	}
	begin := time.Now()
	head := fmt.Sprintf(`{"id":"chatcmpl-%d","object":"chat.completion`, begin.UnixNano())
	usage := fmt.Sprintf(`"usage":{"prompt_tokens":1,"completion_tokens":%d,"total_tokens":%d}`, m.Parts, m.Parts+1)
	if !body.Stream {
		if m.sleep(r, begin, max(m.Parts-1, 0)) != nil {
			return
		}
		var text strings.Builder
		for n := range m.Parts {
			fmt.Fprintf(&text, "part-%d ", n)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `%s","created":%d,"model":%s,"choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],%s}`,
			head, begin.Unix(), name, text.String(), usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	flush := http.NewResponseController(w).Flush
	before := fmt.Appendf(nil,
		`data: %s.chunk","created":%d,"model":%s,"choices":[{"index":0,"delta":{"role":"assistant","content":"part-`, head,
		begin.Unix(), name)
	event := make([]byte, 0, len(before)+64)
	for n := range m.Parts {
		if m.sleep(r, begin, n) != nil {
			return
		}
		event = append(event[:0], before...)
		event = strconv.AppendInt(event, int64(n), 10)
		event = append(event, " \"},\"finish_reason\":null}]}\n\n"...)
		if _, err := w.Write(event); err != nil || flush() != nil {
			return
		}
	}
	fmt.Fprintf(w, "data: %s.chunk\",\"created\":%d,\"model\":%s,\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n", head, begin.Unix(), name)
	if body.StreamOptions.IncludeUsage {
		fmt.Fprintf(w, "data: %s.chunk\",\"created\":%d,\"model\":%s,\"choices\":[],%s}\n\n", head, begin.Unix(), name, usage)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// sleep waits until piece n is due.
func (m Model) sleep(r *http.Request, begin time.Time, n int) error {
	due := begin.Add(m.Delay + time.Duration(n)*m.Interval)
	if m.Jitter > 0 {
		due = due.Add(rand.N(m.Jitter))
	}
	return wait(r.Context(), due)
}
