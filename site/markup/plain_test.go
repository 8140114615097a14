package markup_test

import (
	"strings"
	"testing"

	"docent/site/markup"
)

const rstPage = `:orphan: wheel

.. _install:

==============
 Install wheel
==============

A *wheel* of ` + "``wheel``" + ` at https://wheel.test/wheel, see :ref:` + "`the wheel <wheel-old>`" + ` and :ref:` + "`wheel`" + `
or |wheel| or wheel_ and :class:` + "`wheel`" + `. Run::

    pip install wheel

.. note:: The wheel
   turns.

   Wheel within.

.. code-block:: bash
   :caption: wheel

   wheel

.. comment wheel
   wheel

- item wheel

  >>> wheel

--wheel  the wheel

====== =====
wheel  wheel
====== =====
wheel  wheel
====== =====

Use it
------

.. py:function:: wheel(a)
   :noindex:

   Turns a wheel.
   :param wheel: a wheel

.. toctree::
   :maxdepth: 2

   wheel
`

const adocPage = `= Install wheel
:wheel: wheel

A *wheel* of ` + "`wheel`" + ` at https://wheel.test/wheel[the wheel], see xref:wheel.adoc#wheel[the wheel] and {wheel}
<<wheel,a wheel>> image:wheel.png[wheel].

// wheel
[source,bash,title="wheel"]
----
wheel
----

.Title of a wheel
* item wheel
term wheel:: a wheel

[[wheel]]
Use it
------

 wheel as code

NOTE: The wheel.

include::wheel.adoc[]

[#x]
=== More

|===
|a wheel |wheel

2+|wheel
|===

....
wheel
....
`

// marked puts brackets around each word of running text.
func marked(p *markup.Page, word string) string {
	var edits []markup.Edit
	for _, s := range p.Prose {
		for at := s.Start; ; {
			k := strings.Index(strings.ToLower(string(p.Src[at:s.End])), word)
			if k < 0 {
				break
			}
			end := at + k + len(word)
			edits = append(edits, markup.Edit{Span: markup.Span{Start: at + k, End: end}, New: []byte("<" + string(p.Src[at+k:end]) + ">")})
			at = end
		}
	}
	out, err := markup.Apply(p.Src, edits)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func TestRunningTextOfReStructuredText(t *testing.T) {
	p := markup.Parse("a.rst", []byte(rstPage))
	got := marked(p, "wheel")
	for _, want := range []string{":orphan: wheel", " Install <wheel>\n", "A *<wheel>* of ``wheel`` at https://wheel.test/wheel, see :ref:`the <wheel> <wheel-old>` and :ref:`wheel`",
		"or |wheel| or wheel_ and :class:`wheel`. Run::", "pip install wheel", ".. note:: The <wheel>", "   <Wheel> within.", ":caption: wheel\n\n   wheel\n",
		".. comment wheel\n   wheel\n", "- item <wheel>\n", ">>> wheel", "--wheel  the <wheel>", "wheel  wheel\n=", "wheel(a)", "Turns a <wheel>.", "\n   wheel\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
	if len(p.Headings) != 2 || p.Headings[0].Anchor != "install" || p.Headings[0].Text != "Install wheel" || p.Headings[1].Level != 2 ||
		p.Headings[1].Anchor != "use-it" || p.Src[p.Headings[0].Span.Start] != '.' {
		t.Errorf("headings %+v", p.Headings)
	}
}

func TestRunningTextOfAsciiDoc(t *testing.T) {
	p := markup.Parse("a.adoc", []byte(adocPage))
	got := marked(p, "wheel")
	for _, want := range []string{"= Install <wheel>\n:wheel: wheel\n", "A *<wheel>* of `wheel` at https://wheel.test/wheel[the <wheel>], see xref:wheel.adoc#wheel[the <wheel>] and {wheel}",
		"<<wheel,a <wheel>>> image:wheel.png[wheel].", "// wheel\n[source,bash,title=\"wheel\"]\n----\nwheel\n", ".Title of a <wheel>\n* item <wheel>\nterm <wheel>:: a <wheel>\n",
		"[[wheel]]\n", "\n wheel as code", "NOTE: The <wheel>.", "include::wheel.adoc[]", "|a <wheel> |<wheel>\n\n2+|<wheel>\n", "....\nwheel\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
	if len(p.Headings) != 3 || p.Headings[0].Anchor != "_install_wheel" || p.Headings[1].Anchor != "wheel" || p.Headings[1].Level != 2 || p.Headings[2].Anchor != "x" ||
		!strings.HasPrefix(string(p.Src[p.Headings[2].Span.Start:]), "[#x]") {
		t.Errorf("headings %+v", p.Headings)
	}
}

func TestUnderlinesFollowTitles(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"a.rst", "FAQ\n===\n\nx\n", "Questions and answers\n===\n\nx\n", "Questions and answers\n=====================\n\nx\n"},
		{"a.rst", "=====\n FAQ\n=====\n", "=====\n FAQs and more\n=====\n", "===============\n FAQs and more\n===============\n"},
		{"a.rst", "From a wheel\n------------\n", "From a package\n------------\n", "From a package\n--------------\n"},
		{"a.rst", "Short\n---------------\n", "Other\n---------------\n", "Other\n---------------\n"},
		{"a.rst", "A longer one\n------------\n", "設定\n------------\n", "設定\n----\n"},
		{"a.adoc", "Use it\n------\n", "Use all of it\n------\n", "Use all of it\n-------------\n"},
		{"a.md", "FAQ\n===\n", "Questions\n===\n", "Questions\n===\n"},
	} {
		if got := markup.Readorned(markup.Parse(c.name, []byte(c.before)), []byte(c.after)); string(got) != c.want {
			t.Errorf("%q became %q, want %q", c.after, got, c.want)
		}
	}
}
