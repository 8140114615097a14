package bench

import (
	"net/http/httptest"
	"runtime"
	"testing"
)

func TestMemoryOfAProcessWithoutItsFiles(t *testing.T) {
	for status, want := range map[string]int64{
		"Name:\tdocent\nVmRSS:\t  120804 kB\nRssAnon:\t   71312 kB\nRssFile:\t   49492 kB\n": 71312 << 10,
		"VmRSS:\t 1 kB\n": -1, "RssAnon:\t": -1, "RssAnon:\t x kB\n": -1,
	} {
		if n, ok := anonymous([]byte(status)); ok != (want >= 0) || ok && n != want {
			t.Errorf("%q: %d, %v", status, n, ok)
		}
	}
	if runtime.GOOS != "linux" {
		t.Skip("this system does not say it")
	}
	server := httptest.NewServer(Limit(Script{Parts: 1}))
	defer server.Close()
	if u, err := ServerUsage(t.Context(), server.URL); err != nil || u.Anonymous <= 0 || u.Anonymous > u.Resident {
		t.Errorf("%+v, %v", u, err)
	}
}
