package markup_test

import (
	"strings"
	"testing"

	"docent/site/markup"
)

// Each generator's templates and comments, what the index holds of them, and what readers are shown.
var templates = []struct{ name, page, index, shown string }{
	{"text of a shortcode", `All {{< glossary_tooltip text="pods" term_id="pod" >}} of it.`, "All pods of it.",
		"All pods of it."},
	{"name of a term", `A {{< glossary_tooltip term_id="container-runtime" >}} runs.`, "A container-runtime runs.",
		"A container runtime runs."},
	{"text by its place", `{{% tab "Linux" %}} Install. {{% /tab %}}`, "Linux Install.", "Linux Install. "},
	{"text in a heading", "## {{% heading \"prerequisites\" %}} {#before}\n\nText.", "prerequisites\n\nText.",
		"## prerequisites\n\nText."},
	{"unknown shortcodes", "Use v{{< skew currentVersion >}} now.{{< youtube abc >}}", "Use v now.", "Use v now."},
	{"paired shortcodes keep what is in them", "{{< note >}}\nMind the *gap*.\n{{< /note >}}\n", "Mind the gap.",
		"\nMind the *gap*.\n\n"},
	{"comments", "Seen.\n\n{{< comment >}}\nsecret\n\n## Hidden\n\n```\nhidden\n```\n{{< /comment >}}\n\nSeen too.",
		"Seen.\n\nSeen too.", "Seen.\n\n\nSeen too."},
	{"comments without an end", "Seen.\n\n{{< comment >}}\n\nStays.", "Seen.\n\nStays.", "Seen.\n\n\n\nStays."},
	{"comments within a line", "a {{%comment%}}b{{%/comment%}} c {{/* d */}}e", "a c e", "a  c e"},
	{"shortcodes that are shown", "Write `{{</* ref \"a\" */>}}` here.", "Write {{</* ref \"a\" */>}} here.",
		"Write `{{< ref \"a\" >}}` here."},
	{"Liquid's comments",
		"a\n\n{% comment %}\nsecret {{ x }}\n\nmore\n{%- endcomment -%}\n\nb {{ site.version }} c {# no #}", "a\n\nb c",
		"a\n\n\nb  c {# no #}"},
	{"Liquid's raw", "{% raw %}Use {{ name }}.{% endraw %} And {{ gone }}.", "Use {{ name }}. And .",
		"Use {{ name }}. And ."},
	{"Liquid's include", "{% include note.html content=\"Mind it.\" %}", "Mind it.", "Mind it."},
	{"Vue's values", "Version {{ version }} of {{ 'it' }}.", "Version of it.", "Version  of it."},
	{"switches are no text", "a {{< tabpane text=true >}}{{% tab header=\"Docker\" %}}b{{% /tab %}}{{< /tabpane >}}", "a Dockerb", "a Dockerb"},
	{"HTML comments", "a\n\n<!-- secret\n\n# Hidden\n-->\n\nb <!-- c -->d", "a\n\nb d", "a\n\n\nb d"},
	{"MDX comments in Markdown", "a {/* secret\n\n# Hidden */}b {/* open", "a b {/* open", "a b {/* open"},
	{"files that are taken in",
		"Before.\n--8<-- \"a.md\"\n\n{! a.md !}\n\n{* ../a.py hl[1] *}\n\n<<< @/a.js\n\nAfter {*not this*}.",
		"Before.\n\nAfter {not this}.", "Before.\n\n\n\n\n\n\n\n\nAfter {*not this*}."},
}

func TestReadersSeeNoTemplatesAndNoComments(t *testing.T) {
	t.Parallel()
	for _, c := range templates {
		p := markup.Parse("a.md", []byte(c.page))
		if got := p.Plain(markup.Span{End: len(c.page)}); got != c.index {
			t.Errorf("%s: the index has %q, not %q", c.name, got, c.index)
		}
		if got := p.Readable(markup.Span{End: len(c.page)}, everything, asIs); got != c.shown {
			t.Errorf("%s: readers see %q, not %q", c.name, got, c.shown)
		}
	}
	const mdx = "import A from './a'\n\na {/* secret */}b\n\n{/*\nsecret\n\n# Hidden\n*/}\n\n## Title {/* #own */}\n\n{1 /* not */}"
	p := markup.Parse("a.mdx", []byte(mdx))
	if got, want := p.Readable(markup.Span{End: len(mdx)}, 0, asIs),
		"import A from './a'\n\na b\n\n\n## Title\n\n{1 /* not */}"; got != want {
		t.Errorf("MDX: readers see %q, not %q", got, want)
	}
	const code = "```\nv{{< skew 1 >}} {{ .Value }} {{</* a */>}}\n```\n"
	p = markup.Parse("a.md", []byte(code))
	for called, want := range map[markup.Templates]string{everything: "```\nv {{ .Value }} {{< a >}}\n```\n",
		markup.Values: "```\nv{{< skew 1 >}} {{ .Value }} {{< a >}}\n```\n"} {
		if got := p.Readable(markup.Span{End: len(code)}, called, asIs); got != want {
			t.Errorf("code: readers see %q, not %q", got, want)
		}
	}
}

const everything = markup.Shortcodes | markup.Values | markup.Tags

// What a generator does not know is text to it, and so to its readers.
func TestTemplatesOfOtherGeneratorsAreText(t *testing.T) {
	t.Parallel()
	const page = "a {{< x >}} b {{ y }} c {% z %} d"
	p := markup.Parse("a.md", []byte(page))
	for known, want := range map[markup.Templates]string{0: page, markup.Shortcodes: "a  b {{ y }} c {% z %} d",
		markup.Values: "a {{< x >}} b  c {% z %} d", markup.Values | markup.Tags: "a {{< x >}} b  c  d"} {
		if got := p.Readable(markup.Span{End: len(page)}, known, asIs); got != want {
			t.Errorf("%d: readers see %q, not %q", known, got, want)
		}
	}
}

func asIs(dest string, _ bool) (string, bool) { return dest, true }

func TestLinksWithTemplatesLeadToTheirPages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ page, target, shown string }{
		{`A [page]({{< ref "guide/a.md" >}}) here.`, "guide/a.md", "A [page](<guide/a.md>) here."},
		{`A [page]({{<ref "/a#b">}} "Title") here.`, "/a#b", `A [page](</a#b> "Title") here.`},
		{`A [page]({{% relref path="a.md" lang="de" %}}#part) here.`, "a.md#part", "A [page](<a.md#part>) here."},
		{`A [page]({% link _docs/a.md %}) here.`, "/_docs/a.md", "A [page](</_docs/a.md>) here."},
		{`A [page]({{ '/a/' | relative_url }}) here.`, "/a/", "A [page](</a/>) here."},
		{`A [page]({{ site.baseurl }}/a/) here.`, "/a/", "A [page](</a/>) here."},
		{`A [page](https://x.com/{{< param "branch" >}}/a) here.`, "", "A page here."},
		{`A [page]({{% eturl figure %}}) here.`, "", "A page here."},
		{`A ![picture]({{ x }}) here.`, "", "A picture here."},
		{"A [page][p] here.\n\n[p]: /x", "", "A [page][p] here.\n\n[p]: </x>"},
	} {
		p := markup.Parse("a.md", []byte(c.page))
		asked := ""
		got := p.Readable(markup.Span{End: len(c.page)}, everything, func(dest string, below bool) (string, bool) {
			if below == strings.Contains(c.page, "[p]: /x") {
				t.Errorf("%s: below the root: %v", c.page, below)
			}
			if asked = dest; strings.HasPrefix(dest, "https:") {
				t.Errorf("%s: asked for %q", c.page, dest)
			}
			return "<" + dest + ">", true
		})
		got = strings.NewReplacer("%3C", "<", "%3E", ">").Replace(got)
		if got != c.shown || asked != c.target && c.target != "" {
			t.Errorf("%s: shown as %q with %q, not as %q with %q", c.page, got, asked, c.shown, c.target)
		}
	}
}
