package router_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"docent/actors/thread"
	"docent/router"
	"docent/stream"
)

// BenchmarkAnswer is what the edge adds to an answer of 200 parts that is there already: key, quotas, decoding,
// encoding, one connection over loopback, the client's share included.
func BenchmarkAnswer(b *testing.B) {
	h := build(b)
	h.threads.answer = func(cmd thread.Ask, log *stream.Log) {
		for range 200 {
			log.Append(stream.Part{Kind: stream.Text, Text: "some words "})
		}
		log.Append(stream.Part{Kind: stream.Finish})
		log.Close()
	}
	p := h.catalog.projects["acme"]
	p.Limits.KeyMonth, p.Limits.OrgHour, p.Limits.IPDay = -1, -1, -1
	h.catalog.projects["acme"] = p
	client := http.Client{}
	b.ReportAllocs()
	for b.Loop() {
		req, _ := http.NewRequest("POST", h.url+v2, strings.NewReader(ask))
		req.Header.Set("Authorization", "Bearer "+h.assistant)
		req.Header.Set("Content-Type", "application/json")
		res, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
}

// BenchmarkPoll is one poll of a job that has not changed.
func BenchmarkPoll(b *testing.B) {
	h := build(b)
	id := h.json(201, "POST", "/v2/agent/acme/job", h.admin, `{"prompt":"p"}`)["id"].(string)
	tag := h.do("GET", "/v2/agent/acme/job/"+id, h.admin, "").Header.Get("ETag")
	client := http.Client{}
	b.ReportAllocs()
	for b.Loop() {
		req, _ := http.NewRequest("GET", h.url+"/v2/agent/acme/job/"+id, nil)
		req.Header.Set("Authorization", "Bearer "+h.admin)
		req.Header.Set("If-None-Match", tag)
		res, err := client.Do(req)
		if err != nil || res.StatusCode != 304 {
			b.Fatal(res, err)
		}
		res.Body.Close()
	}
}

// BenchmarkRefusal is a question that is refused, on a connection that stays. The client's share is two system calls
// and the reading of a head.
func BenchmarkRefusal(b *testing.B) {
	h := buildWith(b, router.Filled, func(d *router.Deps) { d.Log = nil })
	conn := h.dial()
	request := []byte(h.posed(v2, ""))
	in := bufio.NewReader(conn)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := conn.Write(request); err != nil {
			b.Fatal(err)
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil || res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
			b.Fatal(res, err)
		}
		io.Copy(io.Discard, res.Body)
	}
}
