package router_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"docent/api/openapi/openapitest"
)

// TestMain asks, after a whole run, whether every operation of the document was seen to succeed: what no test calls
// is not known to be as described.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.list").Value.String() == "" &&
		flag.Lookup("test.fuzz").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" {
		for _, missing := range openapitest.Document().Unseen() {
			fmt.Fprintln(os.Stderr, "no test has seen the success of", missing)
			code = 1
		}
	}
	os.Exit(code)
}

// The harness itself must be able to fail.
func TestTheContractCanBeBroken(t *testing.T) {
	req := func(method, path, body string) *http.Request {
		r, _ := http.NewRequest(method, "http://x"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		return r
	}
	res := func(status int, header ...string) *http.Response {
		h := http.Header{"X-Request-Id": {"r"}}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: status, Header: h}
	}
	const missing = `{"error":"e","message":"e","code":"not_found","requestId":"r"}`
	for name, err := range map[string]error{
		"a status that is not named": openapitest.Document().Check(req("GET", "/healthz", ""), nil, res(418), nil),
		"a header that is missing": openapitest.Document().Check(req("POST", "/v2/agent/p/job", ""), nil,
			res(401, "Content-Type", "application/json"), []byte(strings.Replace(missing, "not_found", "unauthorized", 1))),
		"a code of another status": openapitest.Document().Check(req("GET", "/v2/agent/p/jobs", ""), nil,
			res(403, "Content-Type", "application/json"), []byte(missing)),
		"details where none belong": openapitest.Document().Check(req("GET", "/v2/agent/p/jobs", ""), nil,
			res(404, "Content-Type", "application/json"), []byte(strings.Replace(missing, `"code"`,
				`"details":[{"field":"f","message":"m"}],"code"`, 1))),
		"a body of another type": openapitest.Document().Check(req("GET", "/healthz", ""), nil,
			res(200, "Content-Type", "text/plain"), []byte("ok")),
		"a field that is not named": openapitest.Document().Check(req("GET", "/healthz", ""), nil,
			res(200, "Content-Type", "application/json"), []byte(`{"status":"ok","x":1}`)),
		"a path that is not named": openapitest.Document().Check(req("GET", "/nope", ""), nil, res(200), nil),
		"a request that is not valid": openapitest.Document().Check(req("POST", "/discovery/v1/page/d", ""), []byte(`{"path":""}`),
			res(200, "Content-Type", "application/json", "Access-Control-Allow-Origin", "*"),
			[]byte(`{"path":"p","content":"c"}`)),
		"a response without a request": openapitest.Document().Check(req("GET", "/healthz", ""), nil,
			&http.Response{StatusCode: 200, Header: http.Header{}}, nil),
	} {
		if err == nil {
			t.Errorf("%s is not noticed", name)
		}
	}
	if err := openapitest.Document().Check(req("GET", "/v2/agent/p/jobs", ""), nil, res(404, "Content-Type", "application/json"),
		[]byte(missing)); err != nil {
		t.Error(err)
	}
}

func decodeJSON(t testing.TB, r io.Reader) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.NewDecoder(r).Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
