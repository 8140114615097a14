package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"docent/api"
)

// Most links of one sort that fail in the same way are right, and what is known of the site is wrong: a site may keep
// the case of its anchors, and it may be mounted below a folder.
func TestFixingLinksDoubtsItsPremiseBeforeMostLinksOfASort(t *testing.T) {
	var links strings.Builder
	for i := range 30 {
		fmt.Fprintf(&links, "[%d](b.md#Test-Configuration)\n", i)
	}
	j := newJob(t, map[string]string{"a.md": "# A\n\n" + links.String(), "b.md": "# B\n\n## Test Configuration\n\nText.\n"})
	res := j.do("fix broken links")
	if len(res.Changes) > 0 || !strings.Contains(res.Message, "30 of 30 links whose anchor has capitals") {
		t.Errorf("%d changes: %s", len(res.Changes), res.Message)
	}
	if res = j.must("fix broken links, ignoring case"); !strings.Contains(res.Message, "Fixed 30 broken links") {
		t.Error(res.Message)
	}

	j = newJob(t, map[string]string{"topics/a.md": "# A\n\n[1](/docs/topics/b/), [2](/docs/topics/b/), [3](/docs/topics/a/)\n",
		"topics/b.md": "# B\n\nSee [c](c.md).\n", "topics/d.md": "# D\n"})
	res = j.do("fix broken links")
	if len(res.Changes) > 0 {
		t.Errorf("%s\n%s", res.Message, difference(j.tree.commits[0], j.tree.files()))
	}
}

// One slip among many right links of its sort is mended as before.
func TestFixingLinksMendsTheOneThatIsUnlikeTheOthers(t *testing.T) {
	j := newJob(t, map[string]string{"a.md": "# A\n\n[1](b.md#Part)\n[2](#a)\n", "b.md": "# B\n\n## Part\n\nText.\n"})
	j.project = api.Project{ID: "p"}
	if res := j.must("fix broken links"); !strings.Contains(res.Message, "Fixed 1 broken link") {
		t.Error(res.Message)
	}
}

// One text in very many places may have another sense in some: the pull request is a draft, unless their number was said.
func TestATextThatIsReplacedInManyPlacesIsLookedAt(t *testing.T) {
	for _, c := range []struct {
		prompt string
		draft  bool
		says   string // if it changes nothing
	}{
		{`replace "," with "." in a.md`, true, ""}, {`replace "," with "." in a.md in all 30 places`, false, ""},
		{`replace "," with "."`, false, "in 30 places, and it is not said where"}, {`replace "," with "." everywhere`, true, ""},
		{`replace "," with "." in all 30 places`, false, ""}, {`remove "Fees" from a.md`, true, ""},
		{`replace "," with "." in a.md in all 29 places`, false, "stands 30 times"}, {`rename "Fees" to "Costs" in a.md`, true, ""},
		{`rename "Fees" to "Costs" in a.md in all 30 places`, false, ""}, {`rename "Fees" to "Costs" in all 50 places`, false, ""},
		{`rename "Fees" to "Costs" in a.md in all 31 places`, false, "stands 30 times"}, {`rename "Fees" to "Costs" in b.md`, false, ""},
		{`replace "Fees" with "Costs" in b.md`, false, ""},
	} {
		j := newJob(t, map[string]string{"a.md": "# A\n\n" + strings.Repeat("Fees of 2,5 per day\n\n", 30), "b.md": "# B\n\n" + strings.Repeat("Fees here\n\n", 20)})
		res := j.do(c.prompt)
		if res.Draft != c.draft || res.Review != c.draft || (len(res.Changes) == 0) != (c.says != "") || !strings.Contains(res.Message, c.says) {
			t.Errorf("%s: draft %v, %d changes: %s", c.prompt, res.Draft, len(res.Changes), res.Message)
		}
		if c.draft && !strings.Contains(res.Body, "in all 30 places") {
			t.Errorf("%s: %s", c.prompt, res.Body)
		}
	}
}

// What one of several instructions leaves open is asked for: the job needs detail and has not failed.
func TestADoubtBesideAnotherInstructionAsksForDetail(t *testing.T) {
	j := newJob(t, map[string]string{"a.md": "# A\n\nThe logger writes x.\n", "b.md": "# B\n\nThe logger reads.\n"})
	res := j.do("use `log` instead of `logger`\nreplace \"x\" with \"y\"")
	if len(res.Changes) > 0 || res.Outcome != api.OutcomeNeedsDetail || !strings.Contains(res.Message, "Say which is meant") ||
		len(res.Todos) != 2 || res.Todos[0].Status != "cancelled" {
		t.Errorf("%s, %v: %s", res.Outcome, res.Todos, res.Message)
	}
}
