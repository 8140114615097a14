package harness

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"docent/cmd/docent/doctor"
)

// Examine is what the command says.
func Examine(t *testing.T, args ...string) (doctor.Report, string, error) {
	t.Helper()
	out, err := TryDocent(t, append([]string{"doctor", "--json"}, args...)...)
	var r doctor.Report
	if jsonErr := json.Unmarshal([]byte(out), &r); jsonErr != nil {
		t.Fatalf("%v: %s, %v", jsonErr, out, err)
	}
	return r, out, err
}

// Says fails where a report has no such finding.
func Says(t *testing.T, r doctor.Report, check string, want doctor.Status, text string) {
	t.Helper()
	for _, f := range r.Findings {
		if strings.TrimSpace(f.Check+" "+f.About) == check && f.Status == want && strings.Contains(f.Found+" "+f.Fix, text) {
			return
		}
	}
	t.Errorf("the doctor does not say %s of %s, with %q: %+v", want, check, text, r.Findings)
}

// Holders lists the files below a folder that hold a text. A server that works there may remove some meanwhile: what is gone
// holds nothing.
func Holders(t *testing.T, dir, text string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if path != dir && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		held, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if strings.Contains(string(held), text) {
			rel, _ := filepath.Rel(dir, path)
			list = append(list, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Served asks a server and gives the status and the body.
func Served(t testing.TB, client *http.Client, url string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}
