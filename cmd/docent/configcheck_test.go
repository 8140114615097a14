package main

import (
	"encoding/json"
	"strings"
	"testing"

	"docent/cmd/docent/config"
)

func TestConfigCheckHasAnExitStatusAndJSON(t *testing.T) {
	t.Parallel()
	good := settingsFile(t, "listen = '127.0.0.1:1'")
	if out := docent(t, "config", "check", "--config", good); !strings.Contains(out, "nothing is wrong") {
		t.Error(out)
	}
	doubted := settingsFile(t, "metrics_from = ['0.0.0.0/0']")
	docent(t, "config", "check", "--config", doubted)
	if _, err := tryDocent(t, "config", "check", "--strict", "--config", doubted); err == nil {
		t.Error("a warning passes under --strict")
	}
	out, err := tryDocent(t, "config", "check", "--json", "--config", settingsFile(t, "catalog_dsn = 'mysql://me:pa55word@x/y'"))
	var report config.Report
	if json.Unmarshal([]byte(out), &report) != nil || err == nil || report.OK || len(report.Problems) != 1 ||
		report.Problems[0].Line != 1 || strings.Contains(out, "pa55word") {
		t.Errorf("%v %s", err, out)
	}
}
