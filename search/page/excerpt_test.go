package page

import "testing"

func TestAnExcerptHasCodeAndIdentifiersAsThePageHasThem(t *testing.T) {
	for name, c := range map[string]struct{ content, query, want string }{
		"code in HTML": {"## reverse_proxy\n\n<pre><code class=\"cmd bash\">caddy reverse-proxy\n\t[-f, --from &lt;addr&gt;]</code></pre>",
			"reverse pro", "caddy reverse-proxy\n\t[-f, --from <addr>]"},
		"underscores": {"Set `header_up Host {upstream_hostport}`, and **not** __init__ of `__all__`.", "header",
			"Set header_up Host {upstream_hostport}, and not init of __all__."},
		"a table": {"Name | Use\n--- | ---\n`a_b` | the `<T>` of it\n`c|d` | x", "a_b", "Name Use\na_b the <T> of it\nc|d x"},
		"a link":  {"See [the `x_y` option](../x#y) and ![p](q.png).", "option", "See the x_y option and p."},
		"far away": {"One two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen `snake_case` sixteen.", "snake_case",
			"…eight nine ten eleven twelve thirteen fourteen fifteen snake_case sixteen."},
		"nothing": {"", "x", ""},
	} {
		if got := Excerpt("a.md", c.content, c.query); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
