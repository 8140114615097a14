package router_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"docent/actors/thread"
	"docent/api/stream"
	"docent/router"
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

// BenchmarkAdmission is a request for a small resource in this process: of an address that nothing is counted for, and
// of one that has a share.
func BenchmarkAdmission(b *testing.B) {
	h := build(b, func(d *router.Deps) { d.Log = nil })
	for name, client := range map[string]string{"unlimited": "127.0.0.1", "client": attacker} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req := httptest.NewRequest("GET", "/discovery/v1/assistant/docs.acme.example/challenge", nil)
				req.Header.Set("Authorization", "Bearer "+h.assistant)
				req.Header.Set("X-Forwarded-For", client)
				req.RemoteAddr = "127.0.0.1:1"
				res := httptest.NewRecorder()
				if h.server.ServeHTTP(res, req); res.Code != http.StatusOK {
					b.Fatal(res.Code)
				}
			}
		})
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

// BenchmarkPartOnSockets is a part of text for each of many open streams, the client's share included: cpu-µs is the
// processor time of a part, which a busy machine changes less than its duration.
func BenchmarkPartOnSockets(b *testing.B) {
	const streams = 200
	h := build(b, func(d *router.Deps) { d.Models, d.Log = fakeModels{}, nil })
	p := h.catalog.projects["acme"]
	p.Limits.KeyMonth, p.Limits.OrgHour, p.Limits.IPDay = -1, -1, -1
	h.catalog.projects["acme"] = p
	logs := h.slow()
	var readers [streams]*bufio.Reader
	var all [streams]*stream.Log
	for i := range streams {
		conn := h.dial()
		fmt.Fprint(conn, h.raw("POST", v2, h.assistant, len(ask))+ask)
		readers[i], all[i] = bufio.NewReader(conn), <-logs
		res, err := http.ReadResponse(readers[i], nil)
		if err != nil {
			b.Fatal(err)
		}
		readers[i] = bufio.NewReader(res.Body)
		write(b, all[i], say("begun"))
		readUntil(b, readers[i], "begun")
	}
	before := cpuTime(b)
	for b.Loop() {
		for i := range streams {
			write(b, all[i], say("a few words more"))
		}
		for i := range streams {
			readUntil(b, readers[i], "a few words more")
		}
	}
	b.ReportMetric((cpuTime(b)-before)/float64(b.N*streams), "cpu-µs/part")
}

func readUntil(b *testing.B, r *bufio.Reader, text string) {
	for {
		line, err := r.ReadString('\n')
		if err != nil && err != io.EOF {
			b.Fatal(err)
		}
		if strings.Contains(line, text) {
			return
		}
	}
}
