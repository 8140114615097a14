package router_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"docent/router"
)

func TestProbesAndFigures(t *testing.T) {
	ready := errors.New("the index is being read")
	h := build(t, func(d *router.Deps) { d.TrustedProxies = nil })
	h.server.Ready = func(context.Context) error { return ready }
	if got := h.json(503, "GET", "/readyz", "", ""); got["code"] != "overloaded" {
		t.Errorf("%v", got)
	}
	h.server.Ready = func(context.Context) error { return nil }
	h.json(200, "GET", "/readyz", "", "")
	if got := h.json(200, "GET", "/healthz", "", ""); got["status"] != "ok" || got["version"] != "test" {
		t.Errorf("%v", got)
	}
	h.text(200, "POST", v2, h.assistant, ask)
	h.json(401, "POST", v2, "", ask)
	h.json(404, "GET", "/"+strings.Repeat("x", 300), "", "")
	figures, _ := h.text(200, "GET", "/metrics", "", "")
	for _, want := range []string{
		`docent_http_requests_total{class="assistant",method="POST",route="/discovery/v2/assistant/:domain/message",status="200"} 1`,
		`docent_http_requests_total{class="unknown",method="GET",route="unknown",status="404"} 1`,
		`docent_streams_ended_total{form="v2",how="finished"} 1`, `docent_stream_parts_total{form="v2"} 5`,
		`docent_refused_total{reason="unauthorized"} 1`, `docent_streams_open{form="v2"} 0`,
		`docent_http_request_duration_seconds_count`, `docent_answer_first_text_seconds_count{form="v2"} 1`,
		`docent_answer_duration_seconds_count{form="v2"} 1`, `docent_stream_resumes_total{result="none"} 0`,
	} {
		if !strings.Contains(figures, want) {
			t.Errorf("the figures lack %s", want)
		}
	}
	if strings.Contains(figures, "xxxx") {
		t.Error("a path is a label")
	}
	h.json(200, "GET", "/openapi.json", "", "")
	if yaml, _ := h.text(200, "GET", "/openapi.yaml", "", ""); !strings.HasPrefix(yaml, "openapi: 3.1") {
		t.Errorf("%.40s", yaml)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json", "/openapi.yaml"} {
		if body, _ := h.text(200, "HEAD", path, "", ""); body != "" {
			t.Errorf("HEAD %s: %.40q", path, body)
		}
	}
}

func TestFiguresAreForScrapersAndAdmins(t *testing.T) {
	h := build(t) // where loopback is a trusted proxy, which speaks for somebody else
	h.json(401, "GET", "/metrics", "", "", "X-Forwarded-For", "192.0.2.1")
	h.json(403, "GET", "/metrics", h.assistant, "", "X-Forwarded-For", "192.0.2.1")
	h.text(200, "GET", "/metrics", h.admin, "", "X-Forwarded-For", "192.0.2.1")
}

func TestStrangersAreNotToldTheVersion(t *testing.T) {
	h := build(t) // where loopback is a trusted proxy, which speaks for somebody else
	for _, path := range []string{"/healthz", "/readyz"} {
		if body := h.json(200, "GET", path, "", ""); body["version"] != "test" {
			t.Errorf("monitoring is answered %v", body)
		}
		if body := h.json(200, "GET", path, "", "", "X-Forwarded-For", "192.0.2.1"); body["version"] != nil {
			t.Errorf("a stranger is answered %v", body)
		}
	}
}
