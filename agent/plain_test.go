package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"docent/api"
	"docent/internal/testing/need"
)

var sphinxSite = map[string]string{
	"docs/conf.py": "project = 'Acme'\n",
	"docs/index.rst": "Acme\n====\n\n.. toctree::\n   :caption: Guides\n\n   install\n   settings\n\nStart with `wheel <https://wheel.test/wheel>`_ or :doc:`the wheel <install>`.\n" +
		"The wheel is also in `All of it`_.\n\nAll of it\n---------\n\n.. include:: wheel.txt\n",
	"docs/wheel.txt": "A wheel.\n",
	"docs/install.rst": ".. _install:\n\nInstall wheel\n=============\n\nUse the wheel::\n\n    pip install wheel\n\n.. image:: wheel.png\n   :alt: wheel\n\n" +
		"FAQ\n===\n\n.. note:: A wheel of ``wheel``.\n\n.. wheel is what readers do not see\n\n- wheel, see |wheel|\n\n.. |wheel| replace:: the wheel\n",
	"docs/wheel.png": "\x89PNG\r\n\x1a\n",
	"docs/settings.rst": "========\nSettings\n========\n\n.. _timeouts:\n\nTimeouts\n--------\n\nSee :ref:`install` and :ref:`timeouts`.\n\n.. list-table::\n   :header-rows: 1\n\n   * - Name\n     - wheel\n   * - ``wheel``\n     - 4\n\n" +
		"====== =====\nName   Wheel\n====== =====\nwheel  4\n====== =====\n",
}

var adocSite = map[string]string{
	"docs/index.adoc": "= Acme wheel\nA. Author <a@acme.test>\n:wheel-version: 2\n\nThe wheel of `wheel` in {wheel-version}, see xref:install.adoc#_from_a_wheel[the wheel] and <<Use it>>.\n\nUse it\n------\n\n" +
		"[source,bash]\n----\npip install wheel\n----\n\n.A wheel\n|===\n|wheel |`wheel`\n|===\n",
	"docs/install.adoc": "= Install\n\n== From a wheel\n\n// wheel\nNOTE: The wheel is at https://wheel.test/wheel[the wheel].\n\nimage::wheel.png[]\n\n[#limits]\n== Limits\n\nNone.\n",
	"docs/wheel.png":    "\x89PNG\r\n\x1a\n",
}

// built has Sphinx or Asciidoctor build a site, where they can be had.
func built(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for f, c := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), []byte(c), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var cmd *exec.Cmd
	if files["docs/conf.py"] != "" {
		cmd = exec.Command(need.Installed(t, "Sphinx", "scripts/install-generators", "sphinx-build"), "-W", "--keep-going", "-q", "-b", "html", filepath.Join(dir, "docs"), filepath.Join(dir, "out"))
	} else {
		pages, err := filepath.Glob(filepath.Join(dir, "docs/*.adoc"))
		if err != nil {
			t.Fatal(err)
		}
		cmd = exec.Command(need.Installed(t, "Asciidoctor", "scripts/install-generators", "asciidoctor"), append([]string{"-v", "-w", "--failure-level", "INFO", "-D", filepath.Join(dir, "out")}, pages...)...)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Edits of reStructuredText and AsciiDoc, what they change, and what their own tools say of the result.
func TestPlainFormatsAreEditedByTheirOwnRules(t *testing.T) {
	if need.All {
		built(t, sphinxSite)
		built(t, adocSite)
	}
	for _, c := range []struct {
		site   map[string]string
		prompt string
		want   []string // lines that are there afterwards
		not    string   // why it is refused
	}{
		{sphinxSite, `rename "wheel" to "package" everywhere`, []string{"Install package\n===============\n", "pip install wheel", "Start with `package <https://wheel.test/wheel>`_ or :doc:`the package <install>`",
			".. image:: wheel.png\n   :alt: wheel", ".. note:: A package of ``wheel``.", ".. wheel is what", "- package, see |wheel|", "     - package\n", "wheel  4\n"}, ""},
		{sphinxSite, `change heading "FAQ" to "Questions and answers" in docs/install.rst`, []string{"Questions and answers\n=====================\n"}, ""},
		{sphinxSite, `change heading "All of it" to "Everything" in docs/index.rst`, []string{".. _`All of it`:\n\nEverything\n----------\n", "in `All of it`_"}, ""},
		{sphinxSite, `replace "Settings" with "All the settings" in docs/settings.rst`, []string{"================\nAll the settings\n================\n"}, ""},
		{sphinxSite, `delete section "Timeouts" from docs/settings.rst`, []string{"========\nSettings\n========\n"}, ""},
		{sphinxSite, `delete section "All of it" from docs/index.rst`, nil, "referred to"},
		{sphinxSite, `add a section "Limits of it" with content "There are none." to docs/settings.rst`, []string{"\nLimits of it\n------------\n\nThere are none.\n"}, ""},
		{sphinxSite, `append "There are none." to docs/settings.rst`, []string{"\nThere are none.\n"}, ""},
		{sphinxSite, "append \"See [this](install.rst).\" to docs/settings.rst", nil, "reStructuredText"},
		{sphinxSite, `delete page docs/settings.rst`, []string{"   install\n\nStart"}, ""},
		{sphinxSite, `delete page docs/install.rst`, nil, "is linked to"},
		{sphinxSite, `move docs/install.rst to docs/guide/setup.rst`, []string{"   guide/setup\n", ":doc:`the wheel <guide/setup>`", ".. image:: ../wheel.png"}, ""},
		{sphinxSite, `create page docs/more.rst titled "More" with content: Some text.`, nil, "reStructuredText"},
		{sphinxSite, `set description of docs/settings.rst to "All"`, nil, ""},
		{sphinxSite, `docs/install.rst says "Use the wheel", it should be "Use the package"`, []string{"Use the package::"}, ""},
		{adocSite, `rename "wheel" to "package" everywhere`, []string{"= Acme package\n", ":wheel-version: 2", "The package of `wheel` in {wheel-version}, see xref:install.adoc#_from_a_wheel[the package]",
			"pip install wheel", ".A package", "|package |`wheel`", "[[_from_a_wheel]]\n== From a package\n", "// wheel\nNOTE: The package is at https://wheel.test/wheel[the package].", "image::wheel.png[]"}, ""},
		{adocSite, `change heading "Use it" to "Use all of it" in docs/index.adoc`, []string{"[[_use_it,Use it]]\nUse all of it\n-------------\n"}, ""},
		{adocSite, `delete section "Limits" from docs/install.adoc`, []string{"image::wheel.png[]\n"}, ""},
		{adocSite, `move docs/install.adoc to docs/guide/setup.adoc`, []string{"xref:guide/setup.adoc#_from_a_wheel[the wheel]", "image::../wheel.png[]"}, ""},
		{adocSite, `add a section "More" with content "Some." to docs/install.adoc`, []string{"\n== More\n\nSome.\n"}, ""},
	} {
		j := newJob(t, c.site)
		j.docs = "docs"
		j.project = api.Project{ID: "p"}
		res := j.do(c.prompt)
		if c.want == nil {
			if len(res.Changes) > 0 || !strings.Contains(res.Message, c.not) {
				t.Errorf("%s: %s (%d changes)", c.prompt, res.Message, len(res.Changes))
			}
			continue
		}
		if len(res.Changes) == 0 {
			t.Errorf("%s: %s", c.prompt, res.Message)
			continue
		}
		all := contents(j.tree.files())
		for _, w := range c.want {
			if !strings.Contains(all, w) {
				t.Errorf("%s: %q is not in\n%s", c.prompt, w, all)
			}
		}
		if need.All {
			built(t, j.tree.files())
		}
	}
}

func contents(files map[string]string) string {
	var out []string
	for _, c := range files {
		out = append(out, c)
	}
	slices.Sort(out)
	return strings.Join(out, "\n\n")
}
