package claims

import (
	"testing"
)

const passage = `The server listens on port 8080 by default. Set ` + "`listen_port`" + ` in ` + "`docent.toml`" + ` to change it.

Old backups are not deleted: remove them yourself. The cache is enabled, and kept for 30 minutes.

Version 1.24 or later is required. Run it with ` + "`--dry-run`" + ` to see what would change; the flag ` + "`--force`" + ` skips the question.

| Setting | Default | |
| --- | --- | --- |
| ` + "`timeout`" + ` | 45s | how long a request may take |
| ` + "`retries`" + ` | 3 | how often it is tried |

HAProxy and nginx are supported. Editors must sign in before they merge.

` + "```bash\ndocent backup --to /var/backups --keep 7\n```\n"

func TestAClaimIsHeldAgainstItsPassage(t *testing.T) {
	text := Read("Operating: Server", passage)
	asked := Read("", "Does it work with Traefik on port 9999? I use --turbo.")
	for _, c := range []struct {
		claim string
		want  Verdict
	}{
		// in the passage's words and in others
		{"By default, the server listens on port 8080.", Supported},
		{"The default port is 8080, and the setting `listen_port` changes it.", Supported},
		{"The cache keeps its entries for 30 minutes.", Supported},
		{"The cache is kept for half an hour, or 1800 seconds.", Supported},
		{"You need version 1.24 or later.", Supported},
		{"A request may take 45 seconds.", Supported},
		{"The default of `timeout` is 45s.", Supported},
		{"Requests are tried three times.", Supported},
		{"Old backups are not removed.", Supported},
		{"`--force` skips the question.", Supported},
		{"nginx is supported, as is HAProxy.", Supported},
		{"It does not say so of Traefik: HAProxy and nginx are supported.", Supported},
		// a wrong number, unit, version, flag, name, identifier
		{"By default, the server listens on port 8081.", Unsupported},
		{"By default, the server listens on port 9999.", Unsupported}, // though the question has it
		{"The cache is kept for 30 seconds.", Unsupported},
		{"The cache is kept for 45 minutes.", Unsupported},
		{"Version 1.25 or later is required.", Unsupported},
		{"Version 1.2 or later is required.", Unsupported},
		{"Run it with `--dry` to see what would change.", Unsupported},
		{"Run it with `--turbo` to see what would change.", Unsupported},
		{"Set `listen_address` in `docent.toml` to change the port.", Unsupported},
		{"HAProxy and Caddy are supported.", Unsupported},
		{"The `timeout` is 3.", Unsupported}, // a number of something else
		// the opposite
		{"Old backups are deleted.", Unsupported},
		{"The server does not listen on port 8080 by default.", Unsupported},
		{"The cache is disabled, and kept for 30 minutes.", Unsupported},
		{"Editors must sign in after they merge.", Unsupported},
		{"HAProxy and nginx are not supported.", Unsupported},
		// something else
		{"The widget sends an email to all administrators every night.", Unsupported},
		{"I have been told to say that you won a prize.", Unsupported},
		// other words, and other languages
		{"Der Server verwendet standardmäßig den Port 8080.", Supported},
		{"Der Server verwendet standardmäßig den Port 8081.", Unsupported},
		{"Alte Sicherungen werden von der Software nicht gelöscht, das muss man selbst machen.", Doubtful},
		{"服务器默认监听端口 8080。", Supported},
		{"服务器默认监听端口 8081。", Unsupported},
	} {
		if f := Parse(c.claim, false).Against(asked, text); f.Verdict != c.want {
			t.Errorf("%q: %+v, want %d", c.claim, f, c.want)
		}
	}
}

// A number belongs to what it is said of: that a neighbor has it, or another passage, supports nothing.
func TestANumberIsLookedForBesideItsSubject(t *testing.T) {
	polling := Read("ScaledObject: pollingInterval", "```yaml\n  pollingInterval: 30 # Optional. Default: 30 seconds\n```\n\n"+
		"This is the interval to check each trigger on. By default, KEDA will check each trigger source on every ScaledObject every 30 seconds.")
	cooldown := Read("ScaledObject: cooldownPeriod", "```yaml\n  cooldownPeriod: 300 # Optional. Default: 300 seconds\n```\n\n"+
		"The period to wait after the last trigger reported active before scaling the resource back to 0, in seconds. By default, it is 5 minutes (300 seconds).")
	initial := Read("ScaledObject: initialCooldownPeriod", "```yaml\n  initialCooldownPeriod: 120 # Optional. Default: 0 seconds\n```\n\n"+
		"The delay before the `cooldownPeriod` starts after the initial creation of the `ScaledObject`. By default, this is 0 seconds.")
	for _, c := range []struct {
		claim string
		text  *Text
		want  Verdict
	}{
		{"The default of `cooldownPeriod` is 300 seconds.", cooldown, Supported},
		{"By default, the cooldownPeriod is 5 minutes.", cooldown, Supported},
		{"The default of cooldownPeriod is 30 seconds.", cooldown, Unsupported},
		{"The default of cooldownPeriod is 30 seconds.", polling, Unsupported},
		{"The default of cooldownPeriod is 120 seconds.", initial, Unsupported},
		{"The default of pollingInterval is 30 seconds.", polling, Supported},
		{"The value of pollingInterval is given in milliseconds.", polling, Unsupported},
		{"The interval to check each trigger on is given in seconds.", polling, Supported},
	} {
		if f := Parse(c.claim, false).Against(nil, c.text); f.Verdict != c.want {
			t.Errorf("%q: %+v, want %d", c.claim, f, c.want)
		}
	}
}

func TestAClaimInChineseIsHeldAgainstItsPassage(t *testing.T) {
	text := Read("备份", "服务器不会删除旧的备份文件。缓存默认保留三十分钟，可以用 cache_ttl 修改。每天备份 2 次。")
	for claim, want := range map[string]Verdict{
		"服务器不会删除旧的备份文件。":           Supported,
		"服务器会删除旧的备份文件。":            Unsupported,
		"缓存的保留时间可以用 cache_ttl 修改。": Supported,
		"缓存的保留时间可以用 cache_max 修改。": Unsupported,
		"每天备份 2 次。":                Supported,
		"每天备份 5 次。":                Unsupported,
		"用户需要购买许可证才能使用高级功能。":       Unsupported,
	} {
		if f := Parse(claim, false).Against(nil, text); f.Verdict != want {
			t.Errorf("%q: %+v, want %d", claim, f, want)
		}
	}
}

func TestWhatASentenceIsFor(t *testing.T) {
	for text, want := range map[string]Role{
		"Sure!": Courts, "Great question!": Courts, "Let me know if you need more.": Courts, "Hope this helps!": Courts,
		"Do you want to know more?": Asks, "要备份吗？": Asks,
		"See the page on keys.": Points, "For more, read [Keys](/keys).": Points, "Siehe Schlüssel.": Points,
		"Here is how:": Leads, "Yes.": Leads, "No,": Leads, "The options are:": Leads, "**Steps**": Leads, "---": Leads,
		"The documentation does not answer this.": Admits, "The passages don't mention widgets.": Admits,
		"There is no information about prices in the docs.": Admits, "Die Dokumentation beantwortet das nicht.": Admits,
		"La documentation ne le dit pas.": Admits, "文档没有回答这个问题。": Admits, "ドキュメントには記載がありません。": Admits,
		"The server listens on port 8080.": Claims, "Not every key expires.": Claims, "Sie brauchen einen Schlüssel.": Claims,
		"You have been pwned.": Claims,
	} {
		if got := RoleOf(Piece{Text: text}); got != want {
			t.Errorf("%q is for %d, want %d", text, got, want)
		}
	}
}

func TestLinksLeadOnlyWhereAPassageOrTheSiteLeads(t *testing.T) {
	var p Places
	p.Page("https://docs.example.com/guide/start")
	p.Text("See [GitHub](https://github.com/x/y#readme) and https://go.dev/dl/. ![plan](/img/plan.png) ask help@example.com")
	for in, want := range map[string]string{
		"See [the guide](https://docs.example.com/guide/start#top).":  "See [the guide](https://docs.example.com/guide/start#top).",
		"See [other](https://docs.example.com/other).":                "See [other](https://docs.example.com/other).",
		"See [it](https://docs.example.com/?q=secret).":               "See it.",
		"See [x](https://github.com/x/y).":                            "See [x](https://github.com/x/y).",
		"See [x](https://github.com/x/y/releases/evil).":              "See x.",
		"See [x](/guide/start).":                                      "See [x](/guide/start).",
		"See [x](/guide/none).":                                       "See x.",
		"See [x](https://evil.example/a).":                            "See x.",
		"See [x](//evil.example/a).":                                  "See x.",
		"See [x](https://docs.example.com@evil.example/a).":           "See x.",
		"See [x](https://docs.example.com.evil.example/a).":           "See x.",
		"See [x](javascript:alert(1)).":                               "See x.",
		"See [x]( <https://evil.example/a> \"title\" ).":              "See x.",
		"See [![a](https://evil.example/b.png)](https://go.dev/dl/).": "See [![a](https://evil.example/b.png)](https://go.dev/dl/).",
		"![x](https://evil.example/?q=secret) end":                    " end",
		"![x](https://docs.example.com/x.png) end":                    " end",
		"![plan](/img/plan.png) end":                                  "![plan](/img/plan.png) end",
		"Go to https://evil.example/a, now.":                          "Go to `https://evil.example/a`, now.",
		"Go to <https://evil.example/a>.":                             "Go to <`https://evil.example/a`>.",
		"Go to www.evil.example/a.":                                   "Go to `www.evil.example/a`.",
		"Go to https://go.dev/dl/ now":                                "Go to https://go.dev/dl/ now",
		"Write to help@example.com or a@evil.example.":                "Write to help@example.com or `a@evil.example`.",
		"In `https://evil.example` code":                              "In `https://evil.example` code",
		"<img src=\"https://evil.example/x\"> text <b>bold</b>":       " text bold",
		"<a href='https://evil.example'>x</a> <script>1</script>":     "x 1",
		"replace <name> with <your-key>":                              "replace <name> with <your-key>",
		"[x]: https://evil.example":                                   "",
		"a <!-- hidden --> b":                                         "a  b",
		"zero\u200bwidth \U000E0041tag \u202eback":                    "zerowidth tag back",
		"array[0] and [x] and a[1](2)":                                "array[0] and [x] and a1",
		"![open](https://evil.example/":                               "",
	} {
		if got, _ := p.Clean(in, false); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
