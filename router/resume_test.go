package router_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"docent/api/stream"
	"docent/router"
)

// put asks a question in a chat and gives the thread's id.
func (h *house) put(path, fp, chat string, headers ...string) string {
	h.t.Helper()
	body := strings.Replace(ask, `{"fp":"anonymous"`, `{"id":"`+chat+`","fp":"`+fp+`"`, 1)
	_, res := h.text(200, "POST", path, h.assistant, body, headers...)
	return res.Header.Get("X-Thread-Id")
}

// resumes is how a reader resumes by a chat's or thread's id, in both forms.
func (h *house) resumes(t *testing.T, status int, id string, headers ...string) {
	t.Helper()
	h.text(status, "GET", v2+"/"+id+"/stream", h.assistant, "", headers...)
	h.text(status, "GET", v1+"?chatId="+id, h.assistant, "", headers...)
}

const (
	ann = "192.0.2.7"
	bob = "192.0.2.8"
)

// TestAChatIDAloneReadsNothing is two visitors of a page that has the same chat id for all of its readers.
func TestAChatIDAloneReadsNothing(t *testing.T) {
	for _, fp := range []string{"anonymous", "user-1"} {
		for _, chat := range []string{"docs", "a-chat-id-that-cannot-be-guessed"} {
			h := build(t)
			id := h.put(v2, fp, chat, "X-Forwarded-For", ann)
			h.resumes(t, 200, chat, "X-Forwarded-For", ann)
			h.resumes(t, 204, chat, "X-Forwarded-For", bob)
			h.resumes(t, 204, chat)                                           // the proxy itself
			h.resumes(t, 204, chat, "X-Forwarded-For", ann+", "+bob)          // who claims to be ann
			h.resumes(t, 204, chat, "X-Forwarded-For", ann+", unknown")       //
			h.text(204, "GET", v2+"/"+chat+"/stream?fp="+fp, h.assistant, "") // the name of the reader is no secret

			other := h.put(v1, "anonymous", chat, "X-Forwarded-For", bob)
			for reader, want := range map[string]string{ann: id, bob: other} {
				res := h.do("GET", v2+"/"+chat+"/stream", h.assistant, "", "X-Forwarded-For", reader)
				io.Copy(io.Discard, res.Body)
				if got := res.Header.Get("X-Thread-Id"); got != want {
					t.Errorf("from %s the chat %s leads to %s, want %s", reader, chat, got, want)
				}
			}
		}
	}
}

// TestAChatBelongsToANetwork is IPv6, where one reader has many addresses.
func TestAChatBelongsToANetwork(t *testing.T) {
	h := build(t)
	h.put(v2, "anonymous", "docs", "X-Forwarded-For", "2001:db8:1:2::7")
	h.resumes(t, 200, "docs", "X-Forwarded-For", "2001:db8:1:2:aaaa::8")
	h.resumes(t, 204, "docs", "X-Forwarded-For", "2001:db8:1:3::7")
	h.put(v2, "anonymous", "mapped", "X-Forwarded-For", "::ffff:192.0.2.7")
	h.resumes(t, 200, "mapped", "X-Forwarded-For", ann)
	h.resumes(t, 204, "mapped", "X-Forwarded-For", bob)
}

// TestAnIdentifiedReaderResumesByChatID has a client that sends nothing but the chat's id.
func TestAnIdentifiedReaderResumesByChatID(t *testing.T) {
	h := build(t)
	id := h.put(v2, "user-1", "abcdefghijklmnop", "X-Forwarded-For", ann)
	h.resumes(t, 200, "abcdefghijklmnop", "X-Forwarded-For", ann)
	h.text(200, "GET", v2+"/abcdefghijklmnop/stream?fp=user-1", h.assistant, "", "X-Forwarded-For", ann)
	h.text(204, "GET", v2+"/abcdefghijklmnop/stream?fp=user-2", h.assistant, "", "X-Forwarded-For", ann)
	h.text(200, "GET", v2+"/"+id+"/stream?fp=user-1", h.assistant, "", "X-Forwarded-For", bob) // the id cannot be guessed
	h.resumes(t, 204, id, "X-Forwarded-For", ann)                                              // and belongs to user-1
}

// TestAProxyThatNobodyTrustsBindsNoChat has a proxy in front whose address all readers would share.
func TestAProxyThatNobodyTrustsBindsNoChat(t *testing.T) {
	h := build(t, func(d *router.Deps) { d.TrustedProxies = nil })
	id := h.put(v2, "anonymous", "docs", "X-Forwarded-For", ann)
	h.put(v2, "anonymous", "more", "X-Forwarded-For", ann+", "+bob)
	for _, chat := range []string{"docs", "more"} {
		h.resumes(t, 204, chat, "X-Forwarded-For", ann)
		h.resumes(t, 204, chat, "X-Forwarded-For", bob)
		h.resumes(t, 204, chat)
	}
	h.resumes(t, 200, id, "X-Forwarded-For", bob)
	if n := strings.Count(h.log.String(), "trusted_proxies"); n != 1 {
		t.Errorf("the log says %d times what to set:\n%s", n, h.log)
	}
	h.put(v2, "anonymous", "main")
	h.resumes(t, 200, "main")
}

// TestAShortChatIDIsForgottenSooner: others who come to have the address may have the same id.
func TestAShortChatIDIsForgottenSooner(t *testing.T) {
	h := build(t)
	for chat, want := range map[string]time.Duration{"docs": time.Hour, "fifteen-letters": time.Hour,
		"abcdefghijklmnop": 0} {
		h.put(v2, "anonymous", chat)
		h.resumes(t, 200, chat)
		if got := h.threads.resumed.Within; got != want {
			t.Errorf("the chat %s can be resumed for %v, want %v", chat, got, want)
		}
	}
}

// TestAChatsAddressIsNotStored looks at what the thread is told.
func TestAChatsAddressIsNotStored(t *testing.T) {
	h := build(t)
	h.put(v2, "anonymous", "docs", "X-Forwarded-For", ann)
	first := h.threads.last.Chat
	if len(first) != 43 || strings.Contains(first, "docs") || strings.Contains(first, ann) {
		t.Errorf("the chat's name is %q", first)
	}
	h.put(v2, "anonymous", "docs", "X-Forwarded-For", ann)
	if again := h.threads.last.Chat; again != first {
		t.Errorf("the same chat is %q and %q", first, again)
	}
	other := build(t, func(d *router.Deps) { d.Secret = []byte(strings.Repeat("k", 32)) })
	other.put(v2, "anonymous", "docs", "X-Forwarded-For", ann)
	if other.threads.last.Chat == first {
		t.Error("the name can be made without the secret")
	}
	h.text(200, "POST", v2, h.assistant, ask)
	if chat := h.threads.last.Chat; chat != "" {
		t.Errorf("a question without a chat has the chat %q", chat)
	}
}

// TestResumeAsksForTheThreadKey has a project that requires it.
func TestResumeAsksForTheThreadKey(t *testing.T) {
	h := build(t)
	p := h.catalog.projects["acme"]
	p.Options.RequireThreadKey = true
	h.catalog.projects["acme"] = p
	id := h.put(v2, "anonymous", "abcdefghijklmnop")
	for _, known := range []string{id, "abcdefghijklmnop"} {
		h.resumes(t, 404, known)
		h.resumes(t, 404, known, "X-Thread-Key", "tk_wrong")
		h.resumes(t, 200, known, "X-Thread-Key", "tk_secret")
		h.text(200, "GET", v2+"/"+known+"/stream?threadKey=tk_secret", h.assistant, "")
		h.text(200, "GET", v1+"?chatId="+known+"&threadKey=tk_secret", h.assistant, "")
		h.text(404, "GET", v2+"/"+known+"/stream?threadKey=tk_wrong", h.assistant, "")
		h.text(404, "GET", v1+"?chatId="+known+"&threadKey=tk_wrong", h.assistant, "")
	}
	body := h.json(404, "GET", v2+"/"+id+"/stream", h.assistant, "")
	if said, _ := body["error"].(string); !strings.Contains(said, "X-Thread-Key") || body["code"] != "not_found" {
		t.Errorf("the error is %v", body)
	}
	h.resumes(t, 204, "never-seen-before") // chat clients ask on every page load
	h.resumes(t, 204, "thr_0123456789")
	h.resumes(t, 204, "abcdefghijklmnop", "X-Forwarded-For", bob)

	follow := strings.Replace(ask, `{"fp"`, `{"threadId":"`+id+`","fp"`, 1)
	h.text(200, "POST", v2, h.assistant, follow, "X-Thread-Key", "tk_secret")
	if got := h.threads.last.ThreadKey; got != "tk_secret" {
		t.Errorf("the thread hears the key %q", got)
	}
	h.text(404, "POST", v2, h.assistant, follow, "X-Thread-Key", "tk_wrong")
}

// TestOnlyTheOpenerIsToldTheThreadKey has another reader follow the answer while it is written.
func TestOnlyTheOpenerIsToldTheThreadKey(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*router.Deps)) {
		h := build(t, way)
		logs := h.slow()
		for _, path := range []string{v1, v2} {
			opener := h.do("POST", path, h.assistant, ask)
			log := <-logs
			id := opener.Header.Get("X-Thread-Id")
			others := []*http.Response{h.do("GET", v2+"/"+id+"/stream", h.assistant, ""),
				h.do("GET", v1+"?chatId="+id, h.assistant, "")}
			log.Append(stream.Part{Kind: stream.Text, Text: "one"}, stream.Part{Kind: stream.Finish, Thread: id})
			log.Close()
			said, err := io.ReadAll(opener.Body)
			if err != nil || !strings.Contains(string(said), `"threadKey":"tk_secret"`) ||
				opener.Header.Get("X-Thread-Key") != "tk_secret" {
				t.Errorf("the opener does not hear the key: %v\n%s", err, said)
			}
			for _, res := range others {
				said, err := io.ReadAll(res.Body)
				if err != nil || !strings.Contains(string(said), "one") || strings.Contains(string(said), "tk_secret") ||
					res.Header.Get("X-Thread-Key") != "" {
					t.Errorf("another reader: %v, %v\n%s", err, res.Header, said)
				}
			}
		}
	})
}
