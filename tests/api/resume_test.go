package api

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"docent/tests/harness"
)

// TestAReaderResumesByChatIDAfterAKill is a client that sends nothing but the chat's id: a reader with a name, on a
// page that has the same chat id for all of its readers, before and after the answer is finished.
func TestAReaderResumesByChatIDAfterAKill(t *testing.T) {
	t.Parallel()
	server, _, _, slow := harness.NewChatServer(t, 40, 60)
	from := func(address string) *http.Client {
		return &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext}}
	}
	send := func(client *http.Client, method, path, body string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+slow.Assistant)
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	v1, v2 := "/discovery/v1/assistant/"+slow.Domain+"/message", "/discovery/v2/assistant/"+slow.Domain+"/message"
	reader, other := from("127.0.0.1"), from("127.0.0.2")

	asked := send(reader, "POST", v2,
		`{"id":"docs","fp":"user-1","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"Tell me slowly."}]}]}`)
	for lines := bufio.NewScanner(asked.Body); ; {
		if !lines.Scan() {
			t.Fatalf("%s: the stream ended before its first text: %v", asked.Status, lines.Err())
		}
		if strings.Contains(lines.Text(), "text-delta") {
			break
		}
	}
	id := asked.Header.Get("X-Thread-Id")
	for _, finished := range []bool{false, true} {
		server.Kill()
		if err := server.TryStart(); err != nil {
			t.Fatal(err)
		}
		for path, end := range map[string]string{v2 + "/docs/stream": "data: [DONE]",
			v1 + "?chatId=docs": `d:{"finishReason":"stop"`} {
			res := send(reader, "GET", path, "")
			text, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != http.StatusOK || res.Header.Get("X-Thread-Id") != id ||
				!strings.Contains(string(text), end) ||
				!strings.Contains(string(text), "part-0 ") || strings.Count(string(text), "part-59") != 1 {
				t.Errorf("finished: %v: GET %s: %s, thread %s, %v\n%s", finished, path, res.Status, res.Header.Get("X-Thread-Id"),
					err, text)
			}
			if res := send(other, "GET", path, ""); res.StatusCode != http.StatusNoContent {
				t.Errorf("finished: %v: GET %s from another address: %s", finished, path, res.Status)
			}
		}
		if res := send(other, "GET", v2+"/"+id+"/stream?fp=user-1", ""); res.StatusCode != http.StatusOK {
			t.Errorf("by the thread's id from another address: %s", res.Status)
		}
	}
}
