package models

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"docent/api"
	"docent/bench/corpora"
	"docent/internal/testing/need"
	"docent/model"
	"docent/search"
	"docent/site"
)

// A sourceCase is a small source and what its generator makes of it, as the README of the case says.
type sourceCase struct {
	dir     string // below shared/cases, the site's own
	docsDir string
	at      map[string]string // addresses by file
	titles  map[string]string
	no      []string          // files that are no pages, or the beginnings of their paths
	unsaid  []string          // unlisted ones
	asked   map[string]string // what an answer holds
	found   map[string]string // the first hit's path#anchor
	raw     string            // what no reader sees, as an expression
	reads   map[string]string // what a page's text holds
	warned  string            // what the check warns of
}

var sourceCases = []sourceCase{
	{dir: "C01-mkdocs-env", at: map[string]string{"docs/retries.md": "https://docs.acme.test/guide/retries/"}, no: []string{"docs/internal/"},
		asked: map[string]string{"How often is a failed call repeated?": `\b4\b`}},
	{dir: "C02-mkdocs-snippets", no: []string{"docs/_parts/"}, raw: `--8<--|\{%|\{\{`,
		asked: map[string]string{"How many projects may a workspace hold?": "40", "How many requests may a key send?": "70",
			"How many files may an upload have?": "250", "Where do I set the proxy?": "ACME_PROXY"}},
	{dir: "C03-mkdocs-monorepo", at: map[string]string{"services/billing/docs/invoices.md": "https://docs.acme.test/billing/invoices/"},
		asked: map[string]string{"When is an invoice sent?": "3rd"}},
	{dir: "C04-docusaurus-addresses", at: map[string]string{"docs/intro.md": "https://docs.acme.test", "docs/storage/storage.md": "https://docs.acme.test/storage",
		"docs/02-billing/README.md": "https://docs.acme.test/billing", "docs/02-billing/01-invoices.md": "https://docs.acme.test/billing/invoices",
		"docs/02-billing/quick.md": "https://docs.acme.test/billing/fast-track", "docs/98. F.A.Q..md": "https://docs.acme.test/F.A.Q.",
		"docs/2023/08/08.md": "https://docs.acme.test/2023/08"}},
	{dir: "C05-docusaurus-heading-ids", found: map[string]string{"When does the desk open?": "docs/api.mdx#hours", "refund possible": "docs/api.mdx#refunds",
		"launching steps torch": "docs/api.mdx#-launch-steps", "lantern token": "docs/api.mdx#calling-the-gateway",
		"pause in milliseconds": "docs/api.mdx#retry_after_ms", "When does the desk close?": "docs/api.mdx#closing-time"}},
	{dir: "C06-nextra-heading-ids", found: map[string]string{"Renew an old API key": "content/keys.mdx#go-to-key"}, raw: `\[#go-to-key\]`},
	{dir: "C07-starlight-slugs", at: map[string]string{"src/content/docs/FAQ/Help.md": "https://docs.acme.test/faq/help/", "src/content/docs/guides/Upgrade to 2.5.md": "https://docs.acme.test/guides/upgrade-to-25/",
		"src/content/docs/zh-CN/FAQ/Help.md": "https://docs.acme.test/zh-cn/faq/help/"}},
	{dir: "C08-front-matter", titles: map[string]string{"colon.md": "Notes: Admin rights", "nospace.md": "No space", "tab.md": "Tabbed", "noopen.md": "Mockingbird",
		"toml.md": "Toml page", "bom.md": "Byte order", "dup.md": "First|Second", "hash.md": "June update"},
		raw: `(?m)^title\b|^link:|^---$`, warned: "colon.md",
		asked: map[string]string{"How many queues may an admin merge?": "6", "How many sample orders does Mockingbird send?": "15",
			"How many crates does the spaceless page keep?": "19", "How many doors has the tabbed page?": "44"}},
	{dir: "C11-llms", raw: `import |export |<Chip|Zebra|\{release\}|\{\{|\{limit\}|palette`,
		asked: map[string]string{"Which release do I install?": `7\.4\.1`, "Which API version?": "2026-05",
			"How many keys does a workspace hold?": "12", "How many seats has Gold?": "Gold plan has 300"},
		found: map[string]string{"Which port does the server listen on?": "guides/setup.mdx#ports"},
		reads: map[string]string{"guides/setup.mdx": `https://docs\.acme\.test/guides/plans#gold`, "index.mdx": `https://docs\.acme\.test/images/logo\.png`}},
	{dir: "C12-identifiers", found: map[string]string{"SKIP_BRIDGE": "modes.md", "ZOOM": "hooks.md", "doSomething": "cls.md", "-l": "cli.md", "filter-": "cli.md", "rsyslogd.conf": "conf.md",
		"re-run": "conf.md", "C++": "langs.md", "C#": "langs.md", ".NET": "langs.md"}},
	{dir: "C13-cjk", found: map[string]string{"请求配置": "zh/request-config.md", "アバター": "ja/avatar.md", "ひらがな": "ja/avatar.md", "モーションキャプチャ": "ja/motion.md"}},
	{dir: "C14-latest-version", asked: map[string]string{"What is the latest version?": `8\.10\.0`}},
	{dir: "C15-docs-json", at: map[string]string{"pay/v2/fees.mdx": "https://docs.acme.test/help/pay/v2/fees"}, unsaid: []string{"old/gone.mdx", "orphan.mdx"},
		asked: map[string]string{"What is the fee?": "2 percent", "What does a badge cost?": "33 crowns"}},
	{dir: "C16-sphinx-rst", at: map[string]string{"docs/user/install.rst": "https://acme.readthedocs.test/en/latest/user/install.html"},
		titles: map[string]string{"docs/user/install.rst": "Installing Acme", "docs/user/settings.rst": "Settings"}, no: []string{"docs/drafts/"},
		found: map[string]string{"Install from a wheel": "docs/user/install.rst#from-a-wheel", "What is the default timeout?": "docs/user/settings.rst#timeouts"},
		raw:   `\.\. |:ref:|:math:|:option:|\|brand\||toctree|maxdepth|Zebra|Marmoset`, asked: map[string]string{"What is the default timeout?": "40 seconds"}},
	{dir: "C17-antora", at: map[string]string{"docs/modules/ROOT/pages/install.adoc": "/acme/2.1/install.html", "docs/modules/ops/pages/backup.adoc": "/acme/2.1/ops/backup.html"},
		titles: map[string]string{"docs/modules/ROOT/pages/install.adoc": "Install Acme Core"}, no: []string{"docs/modules/ROOT/nav.adoc", "docs/modules/ROOT/partials/"},
		found: map[string]string{"install from a package": "docs/modules/ROOT/pages/install.adoc#from-package"}, raw: `Zebra|Marmoset|ifdef|include::|\{product\}|page-aliases|xref:`,
		asked: map[string]string{"Which release?": `2\.1\.7`, "Which port does the server listen on?": "7443"}},
	{dir: "C18-notebook", asked: map[string]string{"In how many steps is a curve fitted?": "17"}, raw: `"cell_type"`},
	{dir: "C19-mdbook", at: map[string]string{"src/README.md": "/guide/index.html", "src/ch01-00-install.md": "/guide/ch01-00-install.html", "src/nested/README.md": "/guide/nested/index.html"},
		no: []string{"README.md", "src/SUMMARY.md", "src/parts/", "src/unlisted.md"}, raw: `\{\{#|// hidden`,
		asked: map[string]string{"How many GB does the installer need?": "3 GB"}, reads: map[string]string{"src/ch01-00-install.md": `fn main\(\) \{ acme\(\); \}`}},
	{dir: "C20-gitbook", at: map[string]string{"docs/README.md": "/", "docs/use/install.md": "/use/install", "docs/use/ports/README.md": "/use/ports"},
		no: []string{"CONTRIBUTING.md", "docs/SUMMARY.md", "docs/use/unlisted.md"}, raw: `\{%`,
		asked: map[string]string{"How do I install on Windows?": `acme-setup\.exe`}, titles: map[string]string{"docs/use/install.md": "Install|Install it"}},
	{dir: "C21-jekyll", at: map[string]string{"_guides/install.md": "https://acme.test/docs/guides/install/", "_guides/ports.md": "https://acme.test/docs/net/ports/",
		"_posts/2026-03-04-release.md": "https://acme.test/docs/2026/03/04/release/", "about.md": "https://acme.test/docs/about/"},
		no: []string{"_notes/", "_drafts/", "_includes/", "CONTRIBUTING.md", "nofront.md"}, unsaid: []string{"about.md"}, raw: `\{%|\{:`,
		reads: map[string]string{"_guides/install.md": "Included words"}},
	{dir: "C22-wiki", at: map[string]string{"Home.md": "/Home", "Set-up-the-server.md": "/Set-up-the-server"}, no: []string{"_Sidebar.md", "_Footer.md"}, raw: `\[\[`,
		titles: map[string]string{"Set-up-the-server.md": "Set up the server", "Network-Ports.md": "Network Ports"}, reads: map[string]string{"Home.md": `\[the ports\]\(\S*/Network-Ports\)`}},
	{dir: "C24-lfs-symlink", no: []string{"big.md"}},
	{dir: "C26-language", found: map[string]string{"¿Qué es AGIOne?": "index.md"}, asked: map[string]string{"¿Qué es AGIOne?": `otro idioma \(English\)`, "Comment installer AGIOne ?": `autre langue \(English\)`}},
	{dir: "C27-error-message", found: map[string]string{"> acme-docs@1.0.0 build\n> next build\n\nCreating an optimized production build ...\nFailed to compile.\n\n./node_modules/acme/nav.js\n" +
		"TypeError: (intermediate value) is not iterable\n    at Object.<anonymous> (/app/nav.js:12:7)\n    at Module._compile (node:internal/modules/cjs/loader:1256:14)\n" +
		"    at node:internal/main/run_main_module:23:47\nnpm ERR! code ELIFECYCLE": "troubleshooting.md#build-fails-with-is-not-iterable"}},
	{dir: "C30-vitepress-include", at: map[string]string{"packages/core/src/setup.md": "https://docs.acme.test/core/setup"}, raw: `@include|<<<|Internal title|#region`,
		asked: map[string]string{"How many projects may a workspace hold?": "40"}, found: map[string]string{"/parcels fields": "endpoints.md"},
		reads: map[string]string{"endpoints.md": "lantern", "index.md": "40 projects"}, no: []string{"parts/"}},
	{dir: "C31-tabs-imports", asked: map[string]string{"How many GB does the Linux package need?": "3 GB"}, raw: `import |<Linux|<Deep|\{props|\{Conf\}`,
		reads: map[string]string{"docs/install.mdx": `(?s)lantern_depth = 12`}, found: map[string]string{"brew": "docs/install.mdx"}},
	{dir: "C33-import-simple", asked: map[string]string{"How many GB of disk does the lantern script need?": "3 GB"},
		found: map[string]string{"lantern script": "docs/install.mdx#linux"}, raw: `import |<Linux`, reads: map[string]string{"docs/install.mdx": "lantern script needs 3 GB"}},
	{dir: "C37-docusaurus-template", at: map[string]string{"docs/intro.md": "https://docs.acme.test/intro"}, no: []string{"docs/internal/"}},
	{dir: "C38-mkdocs-tabs-edit", asked: map[string]string{"How long do I wait on Windows?": "70 seconds"}, raw: `\{ #|\{#`},
	{dir: "C39-mkdocs-blog", at: map[string]string{"docs/blog/posts/spring.md": "https://docs.acme.test/blog/2026/03/04/spring-news/"},
		no: []string{"docs/blog/posts/next.md"}, unsaid: []string{"docs/old/v1.md"}},
	{dir: "C40-script-forms/site/vp-spread", no: []string{"internal/"}, at: map[string]string{"start.md": `https://docs.acme.test/start`}},
	{dir: "C40-script-forms/site/vp-fn", no: []string{"internal/"}, at: map[string]string{"start.md": `https://docs.acme.test/start`}},
	{dir: "C40-script-forms/site/vp-const", no: []string{"internal/"}, at: map[string]string{"start.md": `https://docs.acme.test/guide/start`}},
	{dir: "C40-script-forms/site/vp-mermaid", no: []string{"internal/"}, at: map[string]string{"start.md": `https://docs.acme.test/start`}},
	{dir: "C40-script-forms/site/du-plugin", no: []string{"docs/internal/"}, at: map[string]string{"docs/start.md": `https://docs.acme.test/start`}},
	{dir: "C40-script-forms/site/du-const", no: []string{"docs/internal/"}, at: map[string]string{"docs/start.md": `https://docs.acme.test/start`}},
	{dir: "C40-script-forms/site/du-fn", no: []string{"docs/internal/"}, at: map[string]string{"docs/start.md": `https://docs.acme.test/start`}},
	{dir: "C41-long-section", asked: map[string]string{"For how long is a lantern lent?": "19 days", "When was walrus mode removed?": `1\.60`}},
	{dir: "C42-fern", at: map[string]string{"fern/pages/qs.mdx": "https://docs.acme.test/getting-started/quick-start", "fern/pages/limits.mdx": "https://docs.acme.test/getting-started/limits"},
		titles: map[string]string{"fern/pages/qs.mdx": "Quick start"}, unsaid: []string{"fern/pages/plan.mdx"}, no: []string{"fern/pages/unused.mdx"}},
	{dir: "C43-zensical", at: map[string]string{"docs/guide/setup.md": "https://docs.acme.test/guide/setup/"}, no: []string{"README.md"}},
	{dir: "C46-formats", warned: `\.docx|\.textile`},
	{dir: "C47-search-flags", at: map[string]string{"src/content/docs/own.md": "https://docs.acme.test/deep/other-name/"}, unsaid: []string{"src/content/docs/hid.md"}},
	{dir: "C49-fumadocs-i18n", at: map[string]string{"content/docs/mutation.ja.mdx": "/ja/docs/mutation", "content/docs/mutation.mdx": "/docs/mutation"}},
	{dir: "C50-mdx-export", raw: `mermaid|lantern|return <|\{:js\}|<Demo`, asked: map[string]string{"How many bars has a chart?": "9"}},
}

// Siblings of the cases, in testdata/siblings.txtar: the same kinds of things with other names, values and layouts.
var siblingCases = []sourceCase{
	{dir: "C01-env-types", at: map[string]string{"handbook/retries.md": "https://help.acme.test/manual/retries.html"}, no: []string{"handbook/internal/", "handbook/next.draft.md"},
		asked: map[string]string{"How often is a failed call repeated?": `\b6\b`}},
	{dir: "C02-snippet-parts", raw: `--8<--|Zebra|Marmoset|Hyper`, no: []string{"includes/", "docs/_shared/"}, reads: map[string]string{
		"docs/index.md": `(?s)41 projects.*71 requests.*lantern_depth: 12.*ACME_RELAY`, "docs/steps.md": `(?s)amber button for 9 seconds.*violet lamp`},
		asked: map[string]string{"How many projects may a workspace hold?": "41", "For how long do I press the amber button?": "9 seconds"}},
	{dir: "C03-monorepo-wildcard", at: map[string]string{"services/billing/docs/invoices.md": "https://docs.acme.test/svc/Billing_API/invoices/",
		"services/mail/pages/letters.md": "https://docs.acme.test/mail-letters/letters/", "extra/more.md": "https://docs.acme.test/extra/more/"},
		asked: map[string]string{"When is an invoice sent?": "4th", "How heavy is a letter?": "21 grams"}},
	{dir: "C08-front-kinds", titles: map[string]string{"docs/a.md": "Rates", "docs/e.md": "Json page", "docs/f.md": "Blank line first", "docs/i.md": "Folded over two lines", "docs/j.md": "@Handles and"},
		raw: `(?m)^title\b|^---$|^weight|^\+\+\+|"title"|^tags`, warned: `docs/a\.md`, asked: map[string]string{
			"How long does a rate last?": "23 days", "How many beds has the lodge?": "24", "How many bulbs has the lamp?": "25", "How many rakes has the shed?": "26", "How many doors has the barn?": "27",
			"How many stones has the well?": "28", "How many sails has the mill?": "29", "How many posts has the quay?": "31", "How many beds has the inn?": "32", "How many cranes has the dock?": "33"}},
	{dir: "C21-liquid", raw: `\{%|\{\{|Marmoset|Secret`, at: map[string]string{"_guides/a.md": "https://acme.test/docs/guides/a.html"}, reads: map[string]string{
		"index.md": `(?s)beta takes 17 parcels.*Plan Gold holds 311 seats\..*Plan Tin holds 2 seats\..*holds 13 keys.*port of api is 7443.*port of web is 8088.*three opens at 9.*\[Kites\]\(\S*/guides/a\.html\).*Latest: Spring news`},
		asked: map[string]string{"How many keys does a workspace hold?": "13"}},
	{dir: "C11-values", raw: `import |export |\{\{|Zebra|\{name\}|\{count\}|\{plans|<Banner|<h3`, reads: map[string]string{
		"index.mdx":    `(?s)Marmots are welcome.*Acme Cloud holds 512 parcels\..*310 seats and 11 crates.*Dear Ada, you have 4 kites.*https://docs\.acme\.test/images/logo\.png.*https://docs\.acme\.test/images/other\.png`,
		"deep/use.mdx": `\(https://docs\.acme\.test/?\).*\(https://docs\.acme\.test/?#x\)`},
		found: map[string]string{"Which number has the socket?": "deep/use.mdx#ports"}},
	{dir: "C12-names", found: map[string]string{"__init__": "api.md#__init__", "Vec::push": "api.md", "$scope.$watch": "api.md", "std::collections::HashMap": "api.md", "--no-color": "cli.md", "-Xmx": "cli.md",
		"acme_db.*": "cli.md", "@acme/core": "cli.md", "ACME_HTTP2_MAX_STREAMS": "env.md", "http2.max-streams": "env.md", "E0308": "env.md", "F#": "env.md", "node.js": "env.md", "max_streams": "env.md"}},
	{dir: "C13-scripts", found: map[string]string{"데이터베이스 설치": "ko/install.md", "환경 변수": "ko/install.md", "백업은 언제 시작됩니까?": "ko/backup.md", "การสำรองข้อมูล": "th/install.md", "พอร์ต": "th/ports.md",
		"データベースをインストールする": "ja/install.md", "環境変数": "ja/install.md", "プロキシサーバー": "ja/proxy.md"}},
	{dir: "C14-calendar", asked: map[string]string{"What is the latest version?": `2024\.10`, "What is the newest release?": `2024\.10`}},
	{dir: "C14-numbers", asked: map[string]string{"What is the latest version?": `2\.10\.0`, "Which version is current?": `2\.10\.0`}},
	{dir: "C15-tabs-hidden", at: map[string]string{"start.mdx": "https://acme.test/docs/start"}, unsaid: []string{"more/secret.mdx", "shown.mdx", "noindex.mdx"},
		asked: map[string]string{"How long does a start take?": "34 seconds", "How many strings has a kite?": "35"}},
	{dir: "C19-drafts", at: map[string]string{"text/preface.md": "https://books.acme.test/guide/preface.html", "text/first/index.md": "https://books.acme.test/guide/first/index.html",
		"text/two words.md": "https://books.acme.test/guide/two%20words.html", "text/misc/contributors.md": "https://books.acme.test/guide/misc/contributors.html"}, no: []string{"text/loose.md", "parts/", "text/SUMMARY.md"},
		raw: `#title|toc -->|ANCHOR|Zebra|#playground|#rustdoc`, reads: map[string]string{"text/first/index.md": `(?s)38 pears.*37 apples.*\{\{#include escaped\.md\}\}.*fn body\(\) \{ lantern\(\); \}.*use acme::core;`},
		asked: map[string]string{"How many changes did Ada make?": "36"}},
	{dir: "C20-blocks", at: map[string]string{"handbook/START.md": "/", "handbook/guides/README.md": "/guides", "handbook/guides/set-up.md": "/guides/set-up"}, no: []string{"handbook/nav/TOC.md", "handbook/.gitbook/"}, unsaid: []string{"handbook/guides/set-up.md"},
		raw: `\{%|title="`, reads: map[string]string{"handbook/guides/set-up.md": `(?s)39 MB.*First: mac.*brew install.*Second.*acme\.conf.*depth = 13.*46 hints.*43 nails.*How long does it take\?.*44 minutes.*45 words`}},
	{dir: "C22-wiki-folders", at: map[string]string{"Home.md": "/Home", "guides/Deep-Page.md": "/Deep-Page"}, no: []string{"_Sidebar.md", "_Header.md", "guides/_Sidebar.md"}, raw: `\[\[`,
		titles: map[string]string{"guides/Deep-Page.md": "Deep Page", "Setting-Up.md": "Setting Up|The real title"}, reads: map[string]string{"Home.md": `\[Setting-Up\]\(\S*/Setting-Up\).*\[how to\]\(\S*/Setting-Up#[pP]orts\)`}},
	{dir: "C24-pointers", no: []string{"docs/pic.mdx", "docs/data.ipynb"}, reads: map[string]string{"docs/about.md": "git-lfs"}},
	{dir: "C42-fern-kebab", at: map[string]string{"fern/pages/home.mdx": "https://www.acme.test/learn/home-page", "fern/pages/oauth.mdx": "https://www.acme.test/learn/guides/o-auth-2-you",
		"fern/pages/threed.mdx": "https://www.acme.test/learn/guides/its-3-d", "fern/pages/deep.mdx": "https://www.acme.test/learn/guides/down", "fern/pages/own.mdx": "https://www.acme.test/learn/own/address",
		"fern/pages/over.mdx": "https://www.acme.test/learn/overview"}, reads: map[string]string{"fern/pages/threed.mdx": `(?s)52 ropes.*acme\.lantern\(12\)`}, raw: `<Markdown|<Code`},
	{dir: "C43-zensical-nav", at: map[string]string{"content/use/a.md": "https://acme.test/z/use/a.html", "content/index.md": "https://acme.test/z"}, titles: map[string]string{"content/use/b.md": "B side|Bee"},
		no: []string{"CHANGELOG.md", "parts/"}, raw: `--8<`, asked: map[string]string{"How many geese has the part?": "54"}},
	{dir: "C49-fumadocs-folders", at: map[string]string{"content/guides/en/(start)/index.mdx": "/manual", "content/guides/en/(start)/setup.mdx": "/manual/setup", "content/guides/pt-BR/(start)/setup.mdx": "/pt-BR/manual/setup"}},
	{dir: "C49-fumadocs-plain", at: map[string]string{"content/docs/index.mdx": "/", "content/docs/ui/(layouts)/page.mdx": "/ui/page", "content/blog/first.mdx": "/news/first"}},
	{dir: "antora-more", at: map[string]string{"docs/core/modules/ROOT/pages/index.adoc": "https://acme.test/core/stable/", "docs/core/modules/ROOT/pages/deep/page.v2.adoc": "https://acme.test/core/stable/deep/page.v2/",
		"docs/core/modules/ops/pages/run.adoc": "https://acme.test/core/stable/ops/run/", "docs/old/modules/ROOT/pages/index.adoc": "https://acme.test/core/2.9/", "docs/home/modules/about/pages/us.adoc": "https://acme.test/about/us/"},
		found: map[string]string{"Own id heading": "docs/core/modules/ops/pages/run.adoc#own-id-heading"}},
	{dir: "docusaurus-more", at: map[string]string{"manual/01-number/02-file.md": "https://docs.acme.test/handbook/edge/01-number/02-file/", "manual/01-number/01-number.md": "https://docs.acme.test/handbook/edge/01-number/",
		"posts/releases/2024-03-04-second.md": "https://docs.acme.test/news/2024/03/04/releases/second/", "posts/2024-9-1-short.md": "https://docs.acme.test/news/2024/9/1/short/", "src/pages/index.md": "https://docs.acme.test",
		"team/10-people.md": "https://docs.acme.test/team/people/", "versioned_docs/version-2.0/01-number/02-file.md": "https://docs.acme.test/handbook/2.0/up/here/"}, no: []string{"manual/x.secret.md", "manual/drafts/"}},
	{dir: "hugo-more", at: map[string]string{"content/guide/Mixed Case.md": "https://acme.test/docs/guide/Mixed-Case.html", "content/guide/über.md": "https://acme.test/docs/guide/uber.html", "content/_index.de.md": "https://acme.test/docs/de/",
		"content/guide/_index.md": "https://acme.test/docs/guide.html", "content/notes/2024-05-06-note.md": "https://acme.test/docs/n/2024/05/The-note.html"}, reads: map[string]string{"content/_index.md": `Version 3\.2`}, raw: `(?m)^title\b|"weight"`},
	{dir: "jekyll-more", at: map[string]string{"my_stuff/_recipes/Apple Pie.md": "https://acme.test/food/Apple-Pie.html", "my_stuff/_posts/2024-3-4-Second_Post.md": "https://acme.test/news/2024/3/second-post/",
		"my_stuff/_posts/2024-04-01-own.md": "https://acme.test/own/slugged/"}, raw: `(?m)^title\b`, reads: map[string]string{"index.md": `(?s)teal.*Box of 42`}, no: []string{"a.secret.md", "internal/", "my_stuff/_people/"}},
	{dir: "nextra-more", found: map[string]string{"Renew an old key": "src/content/index.mdx#go_to-key"}},
	{dir: "sphinx-more", at: map[string]string{"source/guide/a.rst": "https://acme.test/docs/guide/a/", "source/notes.md": "https://acme.test/docs/notes/"}, titles: map[string]string{"source/notes.md": "Notes on Acme Parcels"},
		no: []string{"source/secret.md", "source/drafts/", "source/guide/_parts/"}, raw: `a comment|\{\{|number = 9 class|Never shown`, reads: map[string]string{"source/guide/a.rst": "The shared words"}},
	{dir: "C50-exports", raw: `Zebra|marmot|return <|\{:|<Chart|import |export |\{1 \+|\.map`, reads: map[string]string{"chart.mdx": `(?s)acme\.draw\(\).*71 bars.*72 words`}},
	{dir: "C18-jupyter-book", titles: map[string]string{"smoothing.ipynb": "Smoothing a series"}, raw: `iVBOR|cell_type|Zebra|\x1b|<Figure`, found: map[string]string{"Windows of points": "smoothing.ipynb#windows"},
		reads: map[string]string{"smoothing.ipynb": `(?s)acme\.smooth.*lantern 63.*ValueError: no points`},
		asked: map[string]string{"In how many steps is a series smoothed?": "61", "How many points does a window span?": "62"}},
	{dir: "C18-old-worksheets", titles: map[string]string{"old.ipynb": "Old notebooks"}, raw: `worksheets|cell_type`, reads: map[string]string{"old.ipynb": `(?s)acme\.run\(7\).*kite 65`},
		asked: map[string]string{"How many cells has an old notebook?": "64"}},
	{dir: "C26-name-only", found: map[string]string{"Che cos'è Lumina?": "index.md", "O que é Lumina?": "index.md", "Wat is Lumina?": "index.md", "Lumina とは何ですか？": "index.md"},
		asked: map[string]string{"Che cos'è Lumina?": `un'altra lingua \(English\)`, "Wat is Lumina?": `een andere taal \(English\)`, "Lumina とは何ですか？": `の言語.*\(English\)`, "O que é Lumina?": `outro idioma \(English\)`}},
	{dir: "C26-german", found: map[string]string{"What is Lumina?": "index.md"}, asked: map[string]string{"What is Lumina?": `in another \(German\):`, "Was kostet eine Lampe?": "4 Kronen"}},
	{dir: "C27-python", found: map[string]string{"Traceback (most recent call last):\n  File \"/srv/app/manage.py\", line 22, in <module>\n    main()\n" +
		"  File \"/usr/lib/python3.11/site-packages/acme/core/handlers/middleware.py\", line 104, in get_response\n    response = self.process(request)\n" +
		"  File \"/usr/lib/python3.11/site-packages/acme/conf/settings.py\", line 82, in __getattr__\n    raise ImproperlyConfigured(msg)\n" +
		"acme.errors.ImproperlyConfigured: Requested setting KITE_KEY, but settings are not configured.": "errors.md#settings-that-are-missing"}},
	{dir: "C27-java", found: map[string]string{"Exception in thread \"main\" java.lang.RuntimeException: could not start\n\tat com.shop.Main.main(Main.java:14)\n" +
		"\tat java.base/jdk.internal.reflect.NativeMethodAccessorImpl.invoke0(Native Method)\nCaused by: com.acme.BrokerLostException: broker 7 left the ring\n" +
		"\tat com.acme.Ring.join(Ring.java:211)\n\tat java.base/java.util.concurrent.ThreadPoolExecutor.runWorker(ThreadPoolExecutor.java:1144)\n\t... 3 more": "faq.md#broker-has-gone-away",
		"HTTP/2 429\ncontent-type: application/json\n\n{\"error\":{\"code\":\"quota_exceeded\",\"status\":429,\"request_id\":\"req_8fa1\"}}": "faq.md#429-quota_exceeded"}},
	{dir: "C31-starlight-raw", raw: `import |<Deep|<Debian|\{props|\{conf\}`, asked: map[string]string{"How many MB does the Debian package need?": "66 MB"},
		reads: map[string]string{"src/content/docs/set-up.mdx": `(?s)apt install kite.*for Acme.*66 MB.*Windows.*lantern-setup\.exe.*kite_depth = 13`}, no: []string{"src/parts/"}},
	{dir: "C31-nextra-tabs", raw: `import |<Mac|\{caps`, asked: map[string]string{"How many MB does the macOS package need?": "67 MB", "How many birds does a flock hold?": "680"},
		reads: map[string]string{"content/set-up.mdx": `(?s)macOS.*Windows.*brew install kite.*67 MB.*lantern-setup\.exe`}, no: []string{"parts/"}},
	{dir: "C33-mintlify-step", found: map[string]string{"wombat script": "install.mdx#linux"}, raw: `import |<Linux`, asked: map[string]string{"How many MB of disk does the wombat script need?": "69 MB"},
		reads: map[string]string{"install.mdx": `(?s)Fetch it.*69 MB`}, no: []string{"snippets/"}},
	{dir: "C33-fumadocs-include", found: map[string]string{"wombat script": "content/docs/install.mdx#linux"}, raw: `<include`, asked: map[string]string{"How many MB of disk does the wombat script need?": "71 MB"},
		reads: map[string]string{"content/docs/install.mdx": `(?s)71 MB.*wombat_depth = 14`}, no: []string{"shared/"}},
	{dir: "C41-table", asked: map[string]string{"What is the default of acme.walrus_linger?": "4177", "For how many seconds does the walrus stay?": "4177"}},
	{dir: "C41-terms", asked: map[string]string{"What is paid for a lantern?": "73 crowns"}},
	{dir: "C46-wikis", titles: map[string]string{"index.markdown": "Acme", "guide.mkd": "Guide", "notes.asciidoc": "Notes"}, warned: `(?s)(?:\.(?:creole|mediawiki|odt|pod)\b.*){4}`},
	// a third round
	{dir: "C01-inherit", at: map[string]string{"handbook/retries.md": "https://help.acme.test/in/retries/"}, no: []string{"handbook/internal/"}, asked: map[string]string{"How often is a failed call repeated?": "8"}},
	{dir: "C02-nested", no: []string{"docs/parts/"}, raw: `--8<-- "`, reads: map[string]string{"docs/index.md": `(?s)43 moles.*44 hares.*--8<--.*44 hares`}},
	{dir: "C03-content", at: map[string]string{"billing/content/rates.md": "https://docs.acme.test/Billing/rates/", "billing/content/index.md": "https://docs.acme.test/Billing/"}, asked: map[string]string{"For how long is a rate kept?": "47 days"}},
	{dir: "C04-names", at: map[string]string{"docs/01 - Basics/02_install.md": "https://docs.acme.test/Basics/install", "docs/Getting Started/first steps.md": "https://docs.acme.test/Getting%20Started/first%20steps",
		"docs/2021-11-foo.md": "https://docs.acme.test/2021-11-foo", "docs/api/index.mdx": "https://docs.acme.test/api", "docs/3.4.md": "https://docs.acme.test/3.4", "docs/named.md": "https://docs.acme.test/other-name"}},
	{dir: "C05-forms", raw: `\{#`, found: map[string]string{"kites fly": "docs/a.md#kite-call", "lanterns burn": "docs/a.md#linked-title", "badgers sleep": "docs/a.md#same-1", "moths come": "docs/a.md#1-numbers--signs"}},
	{dir: "C06-dots", raw: `\[#v`, found: map[string]string{"kites carry": "content/index.mdx#v12", "lanterns carry": "content/index.mdx#plain-link"}},
	{dir: "C07-signs", at: map[string]string{"src/content/docs/index.mdx": "https://docs.acme.test", "src/content/docs/C# & .NET.md": "https://docs.acme.test/c--net", "src/content/docs/v1.0/Über uns.md": "https://docs.acme.test/v10/%C3%BCber-uns"}},
	{dir: "C08-third", titles: map[string]string{"a.md": "It's on", "b.md": "2024", "c.md": "Empty front"}, raw: `(?m)^tags|^more|a comment|^description`, asked: map[string]string{"How many wicks do lanterns need?": "57", "How many lamps do moths need?": "58"}},
	{dir: "C11-third", raw: `import |export |Zebra|\{count|\{\{|plans\.map|children`, reads: map[string]string{"index.mdx": `(?s)Acme Sky holds 59 crates\..*counts 61 kites\. Inner words\..*62 moths`}},
	{dir: "C12-third", found: map[string]string{"useEffect": "api.md#useeffect", "useEffect()": "api.md#useeffect", "onBeforeUnmount": "api.md#onbeforeunmount", "0x80070005": "api.md#0x80070005", "text/html": "media.md",
		"application/vnd.acme+json": "media.md", "git rebase --onto": "rebase.md", "user.name": "rebase.md", "i18n": "rebase.md", "$ACME_TOKEN": "sql.md", "max_allowed_packet": "sql.md", "on duplicate key update": "sql.md"}},
	{dir: "C13-third", found: map[string]string{"設定檔": "tw.md", "部署": "deploy.md", "Docker 部署": "deploy.md", "설정": "ko.md", "네트워크": "ko.md", "サーバ 再起動": "ja.md", "再起動": "ja.md"}},
	{dir: "C14-keep", asked: map[string]string{"What is the newest release?": `2\.10\.0`}},
	{dir: "C15-languages", at: map[string]string{"start/overview.mdx": "/start/overview", "es/start/install.mdx": "/es/start/install"}, unsaid: []string{"lost.mdx"}, asked: map[string]string{"How much does the installer need?": "63 MB"}},
	{dir: "C16-third", at: map[string]string{"source/guide.rst": "https://acme.test/en/guide.html", "source/contents.rst": "https://acme.test/en/contents.html"}, no: []string{"source/old/", "source/other.md"}, raw: `\.\. |:issue:|:link:|:caption:|:alt:`,
		reads: map[string]string{"source/contents.rst": `(?s)\[#64\]\(https://git\.acme\.test/issues/64\), \[https://git\.acme\.test/u/ann\]\(.*\[The guide\]\(`, "source/guide.rst": `(?s)Linux.*65 turns.*Windows.*run\.bat.*acme\.exe.*A wheel.*wheel of 1906.*Card title.*Card words.*wheel_size`},
		found: map[string]string{"turns of the wheel": "source/guide.rst#wheel-label", "run.bat": "source/guide.rst#wheel-label"}},
	{dir: "C17-third", at: map[string]string{"docs/modules/ROOT/pages/index.adoc": "/acme/index.html", "docs/modules/ops/pages/backup.adoc": "/acme/ops/backup.html"}, raw: `Zebra|include::|\[tabs\]|xref:|\|===`,
		reads: map[string]string{"docs/modules/ROOT/pages/index.adoc": `(?s)67 kites.*\[Back up the data\]\(.*\[When to back up\]\(.*69 hours.*Linux.*acme up.*Sizes of lamps.*small`}},
	{dir: "C18-tags", raw: `Zebra`, reads: map[string]string{"fit.ipynb": `(?s)71 rounds.*lantern 72.*call\(73\)`}},
	{dir: "C19-third", at: map[string]string{"text/preface.md": "/b/preface.html", "text/kites/README.md": "/b/kites/index.html", "text/kites/fly.md": "/b/kites/fly.html", "text/end.md": "/b/end.html"}, raw: `Zebra|\{\{#|fn main`,
		reads: map[string]string{"text/kites/README.md": "lift of 74", "text/kites/fly.md": "height = 75"}},
	{dir: "C20-ids", at: map[string]string{"content/start.md": "/", "content/lamps.md": "/lamps"}, no: []string{"content/other.md", "content/toc.md"}, raw: `\{%|<a `, found: map[string]string{"match lasts": "content/lamps.md#light-it"},
		reads: map[string]string{"content/start.md": `(?s)76 hours.*run\.sh`}},
	{dir: "C22-folders", at: map[string]string{"guides/Lamp-Guide.md": "/Lamp-Guide", "Kites.md": "/Kites"}, no: []string{"_Sidebar.md"}, raw: `\[\[`, titles: map[string]string{"guides/Lamp-Guide.md": "Lamp Guide"}, reads: map[string]string{"Home.md": `\[the lamps\]\(\S*/Lamp-Guide#light\)`}},
	{dir: "C24-third", no: []string{"guide.rst"}, asked: map[string]string{"How many letters does a pointer have?": "79"}},
	{dir: "C26-french", found: map[string]string{"What is Lumina?": "index.md"}, asked: map[string]string{"What is Lumina?": `\(French\):`, "Was ist Lumina?": `\(français\):`}},
	{dir: "C27-third", found: map[string]string{"$ acme migrate\nConnecting to db-7.internal:3306 ...\nERROR 1045 (28000): Access denied for user 'ann'@'10.0.0.4' (using password: YES)\nexit status 1": "db.md#access-denied",
		"panic: assignment to entry in nil map\n\ngoroutine 1 [running]:\nmain.main()\n\t/tmp/sandbox/prog.go:9 +0x2e\nexit status 2": "db.md#panic-assignment-to-entry-in-nil-map"}},
	{dir: "C30-third", no: []string{"parts/"}, raw: `Zebra|@include|<<<|#region`, reads: map[string]string{"index.md": `(?s)81\..*Hares count 82.*lantern = 83.*const one = 1`}},
	{dir: "C31-values", raw: `import |<Deep|\{conf`, reads: map[string]string{"docs/a.mdx": `(?s)macOS.*brew install kite84.*apt install kite85.*conf\.yml.*lantern: 86`}, no: []string{"docs/_deep.md"}},
	{dir: "C33-third", raw: `import |Zebra|<Part|<Inner|\{props`, reads: map[string]string{"docs/a.mdx": `(?s)Dear Ada, the part needs 87 MB\..*88 MB`}, found: map[string]string{"inner one needs": "docs/a.mdx#inner-heading"}},
	{dir: "C37-typescript", at: map[string]string{"text/start.md": "https://docs.acme.test/in/help/start"}, no: []string{"text/internal/"}},
	{dir: "C38-nested", raw: `\(1\)!|\{ ?#`, reads: map[string]string{"docs/index.md": `(?s)Windows.*89 seconds.*lantern: 91.*The lantern's depth.*Linux.*92 words.*Set up in 5 minutes`}, asked: map[string]string{"How long do I wait on Windows?": "89 seconds"}},
	{dir: "C39-news", at: map[string]string{"docs/news/articles/spring.md": "https://docs.acme.test/news/spring-news/"}, no: []string{"docs/news/articles/later.md"}},
	{dir: "C40-async", at: map[string]string{"start.md": "/start.html"}, no: []string{"internal/"}},
	{dir: "C40-create", at: map[string]string{"docs/start.md": "https://docs.acme.test/d/start"}, no: []string{"docs/internal/"}},
	{dir: "C41-details", asked: map[string]string{"For how long is a lantern lent?": "103 days", "What costs a lost lantern?": "104 crowns"}},
	{dir: "C35-refs", at: map[string]string{"content/guides/a.md": "https://docs.acme.test/guides/a/"}, raw: `\{\{|relref`, reads: map[string]string{"content/guides/a.md": `(?s)\[b\]\(\S*/guides/b/?\).*\[there\]\(\S*/guides/b/?#deep\)`}},
	{dir: "C42-slugs", at: map[string]string{"fern/pages/fly.mdx": "https://docs.acme.test/fly-a-kite", "fern/pages/lamps.mdx": "https://docs.acme.test/light", "fern/pages/moths.mdx": "https://docs.acme.test/deep/more/moths-co"}, unsaid: []string{"fern/pages/gone.mdx"}},
	{dir: "C43-flat", at: map[string]string{"handbook/guide/set-up.md": "https://docs.acme.test/z/guide/set-up.html"}, titles: map[string]string{"handbook/guide/set-up.md": "Set up"}, no: []string{"README.md"}},
	{dir: "C46-plain", titles: map[string]string{"intro.rst": "Kite intro", "notes.org": "Lamp notes"}, warned: `\.tex.*\.typ`, reads: map[string]string{"intro.rst": `Tip.*95 knots`, "notes.org": `\[the intro\]\(`}, found: map[string]string{"wick lasts": "notes.org#wicks"}},
	{dir: "C46-book", at: map[string]string{"index.qmd": "https://acme.test/book", "basics/kites.qmd": "https://acme.test/book/basics/kites.html", "basics/lamps.md": "https://acme.test/book/basics/lamps.html", "extra.qmd": "https://acme.test/book/extra.html"},
		no: []string{"unlisted.qmd", "README.md", "basics/_part.qmd"}, raw: `\{\{<|\{\.`, reads: map[string]string{"basics/kites.qmd": `(?s)97 kites and 98 lamps.*99 words`}, found: map[string]string{"Where to fly?": "basics/kites.qmd#where-to-fly"}, titles: map[string]string{"index.qmd": "Preface"}},
	{dir: "C47-third", unsaid: []string{"docs/hid.md"}, no: []string{"docs/draft.md", "docs/_partial.md"}, at: map[string]string{"docs/open.md": "https://docs.acme.test/open"}},
	{dir: "C49-folders", at: map[string]string{"content/docs/ja/mutation.mdx": "/ja/docs/mutation", "content/docs/en/mutation.mdx": "/docs/mutation"}},
	{dir: "C50-metadata", raw: `(?i)zebra|return|\{:ts\}|<Chart|export`, asked: map[string]string{"How many bars has a chart?": "101"}},
	{dir: "C46-quarto", at: map[string]string{"index.qmd": "https://acme.test/q", "fit.qmd": "https://acme.test/q/fit.html"}, no: []string{"plan.qmd"}, titles: map[string]string{"fit.qmd": "Fitting"}, raw: `:::|#\||fig-cap|\{\.|acme\.fit`, asked: map[string]string{"In how many steps is a curve fitted?": "76"}, found: map[string]string{"A curve": "fit.qmd#sec-curve"}},
}

// What a small source of each generator holds is found, shown and left out as that generator does.
func TestSourcesAreReadAsTheirGeneratorsPublishThem(t *testing.T) {
	t.Parallel()
	root := "../../../shared/cases"
	need.Peer(t, "reads the cases of shared/cases", "a checkout with shared beside it", root)
	held := 0
	for _, c := range sourceCases {
		dir := filepath.Join(root, c.dir)
		if !strings.Contains(c.dir, "/site/") {
			dir = filepath.Join(dir, "site")
		}
		failed := c.fails(t, folder(t, dir))
		if len(failed) == 0 {
			held++
			t.Logf("%s: holds", c.dir)
		} else {
			t.Errorf("%s: %s", c.dir, strings.Join(failed, "; "))
		}
	}
	t.Logf("%d of %d cases hold", held, len(sourceCases))
}

func TestSiblingsOfTheCasesAreReadAsTheirGeneratorsPublishThem(t *testing.T) {
	t.Parallel()
	a, err := txtar.ParseFile("testdata/siblings.txtar")
	if err != nil {
		t.Fatal(err)
	}
	trees := map[string]corpora.Tree{}
	add := func(dir, name string, data []byte) {
		if trees[dir] == nil {
			trees[dir] = corpora.Tree{}
		}
		trees[dir][name] = data
	}
	for _, f := range a.Files {
		dir, name, _ := strings.Cut(f.Name, "/")
		add(dir, name, f.Data)
	}
	for _, c := range siblingCases {
		if kind, ok := strings.CutSuffix(c.dir, "-more"); ok { // which its generator builds in tests/sites
			a, err := txtar.ParseFile("../sites/testdata/" + kind + "-more.txtar")
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range a.Files {
				add(c.dir, f.Name, f.Data)
			}
		}
		if failed := c.fails(t, trees[c.dir]); len(failed) > 0 {
			t.Errorf("%s: %s", c.dir, strings.Join(failed, "\n\t"))
		}
	}
	if len(trees) != len(siblingCases) {
		t.Errorf("%d siblings have files, %d have rows", len(trees), len(siblingCases))
	}
}

// C28: a page that was deleted is neither found nor listed nor answered, nor quoted again in a conversation that quoted it.
func TestADeletedPageIsAnsweredNoMore(t *testing.T) {
	t.Parallel()
	const root, question = "../../../shared/cases/C28-deleted-page/site", "What is the fax number?"
	need.Peer(t, "reads the cases of shared/cases", "a checkout with shared beside it", root)
	a, p, tree := newAsker(t), api.Project{ID: "case"}, folder(t, root)
	a.indexed["case"] = true
	var history []model.Message
	for _, there := range []bool{true, false} {
		if !there {
			delete(tree, "fax.md")
		}
		if _, err := a.library.Update(t.Context(), p, tree, func(int, int) {}); err != nil {
			t.Fatal(err)
		}
		text, cited, _ := a.ask(t, "case", question, history)
		again, _, _ := a.ask(t, "case", "What was the number again?", history)
		if strings.Contains(text, "555-0142") != there || slices.Contains(cited, "fax.md") != there || !there && strings.Contains(again+a.cards, "555-0142") {
			t.Errorf("there: %v, answered %q from %v, and again %q", there, text, cited, again)
		}
		pages, err := a.library.Published(t.Context(), p.ID)
		if err != nil || slices.ContainsFunc(pages, func(r search.PageInfo) bool { return r.Path == "fax.md" }) != there {
			t.Errorf("there: %v, listed %v, %v", there, pages, err)
		}
		history = append(history, model.Message{Role: "user", Text: question}, model.Message{Role: "assistant", Text: text})
	}
}

// Siblings of C28: what a page said before it was emptied, left out by the configuration, made a draft, or lost the part that it
// took in is answered no more, nor is it found where a page was before it moved.
func TestWhatAPageSaysNoLongerIsAnsweredNoMore(t *testing.T) {
	t.Parallel()
	const question, secret = "What is the fax number?", "555-0143"
	text := "# Fax\n\nOrders by fax go to the number " + secret + ".\n"
	for name, c := range map[string]struct {
		before, after map[string]string // files; empty ones go
		moved         string
	}{
		"a folder goes":        {before: map[string]string{"old/fax.md": text, "old/more.md": "# More\n\nText.\n"}, after: map[string]string{"old/fax.md": "", "old/more.md": ""}},
		"a section goes":       {before: map[string]string{"contact.md": "# Contact\n\nWrite.\n\n## Fax\n\nOrders by fax go to the number " + secret + ".\n"}, after: map[string]string{"contact.md": "# Contact\n\nWrite.\n"}},
		"a draft":              {before: map[string]string{"hugo.toml": "title = 'Acme'\n", "content/_index.md": "---\ntitle: Acme\n---\nHello.\n", "content/fax.md": "---\ntitle: Fax\n---\n" + text[7:]}, after: map[string]string{"content/fax.md": "---\ntitle: Fax\ndraft: true\n---\n" + text[7:]}},
		"excluded":             {before: map[string]string{"mkdocs.yml": "site_name: Acme\n", "docs/index.md": "# Acme\n", "docs/fax.md": text}, after: map[string]string{"mkdocs.yml": "site_name: Acme\nexclude_docs: |\n  fax.md\n"}},
		"an included part":     {before: map[string]string{"docs.json": `{"navigation": {"pages": ["contact"]}}`, "contact.mdx": "import Fax from \"/snippets/fax.mdx\";\n\n# Contact\n\n<Fax />\n", "snippets/fax.mdx": text[7:]}, after: map[string]string{"snippets/fax.mdx": "Orders are written.\n"}},
		"moved to another one": {before: map[string]string{"fax.md": text}, after: map[string]string{"fax.md": "", "contact/phone.md": text}, moved: "contact/phone.md"},
	} {
		t.Run(name, func(t *testing.T) {
			a, p, tree := newAsker(t), api.Project{ID: "case"}, corpora.Tree{"index.md": []byte("# Acme\n\nHello.\n")}
			a.indexed["case"] = true
			for n, files := range []map[string]string{c.before, c.after} {
				for file, of := range files {
					if tree[file] = []byte(of); of == "" {
						delete(tree, file)
					}
				}
				if _, err := a.library.Update(t.Context(), p, tree, func(int, int) {}); err != nil {
					t.Fatal(err)
				}
				there := n == 0 || c.moved != ""
				said, cited, _ := a.ask(t, "case", question, nil)
				if strings.Contains(said+a.cards, secret) != there {
					t.Errorf("there: %v, answered %q from %v", there, said, cited)
				}
				if n == 1 && c.moved != "" && !slices.Equal(cited, []string{c.moved}) {
					t.Errorf("it is cited at %v", cited)
				}
			}
		})
	}
}

// Siblings of C34: a page that names its groups is nobody else's, in whichever form its front matter is.
func TestAPageOfAGroupIsNobodyElses(t *testing.T) {
	t.Parallel()
	const secret = "The salary of grade nine is 78,000 crowns.\n"
	trees := map[string]corpora.Tree{}
	for name, front := range map[string]string{"a text": "---\ngroups: staff\n---\n", "texts": "---\ngroups: staff, board\n---\n", "a list in lines": "---\ngroups:\n  - staff\n---\n", "in TOML": "+++\ngroups = [\"staff\"]\n+++\n",
		"in JSON": "{\n\"groups\": [\"staff\"]\n}\n", "behind a blank line": "\n---\ngroups: [staff]\n---\n", "behind a byte order mark": "\uFEFF---\ngroups: [staff]\n---\n", "not opened": "groups: [staff]\n---\n",
		"not closed": "---\ngroups: [staff]\n\n", "of a named language": "---yaml\ngroups: [staff]\n---\n", "with carriage returns": "---\r\ngroups: [staff]\r\n---\r\n", "that does not parse": "---\ntitle: a: b\ngroups: [staff]\n---\n",
		"of a number": "---\ngroups: 7\n---\n", "in capitals": "---\nGroups: [staff]\n---\n"} {
		trees[name] = corpora.Tree{"pay.md": []byte(front + "\n" + secret)}
	}
	trees["an included part"] = corpora.Tree{"docs.json": []byte(`{"navigation": {"pages": ["index", "pay"]}}`), "pay.mdx": []byte("---\ntitle: Pay\ngroups: [staff]\n---\nimport Pay from \"/snippets/pay.mdx\";\n\n<Pay />\n"), "snippets/pay.mdx": []byte(secret)}
	trees["a field of Sphinx"] = corpora.Tree{"pay.rst": []byte(":groups: staff, board\n\nPay\n===\n\n" + secret)}
	trees["a field below a title"] = corpora.Tree{"pay.rst": []byte("Pay\n===\n\n:Groups: [staff]\n\n" + secret)}
	trees["an attribute of AsciiDoc"] = corpora.Tree{"pay.adoc": []byte("= Pay\n:page-groups: staff\n\n" + secret)}
	trees["front matter of reStructuredText"] = corpora.Tree{"pay.rst": []byte("---\ngroups: [staff]\n---\n\nPay\n===\n\n" + secret)}
	trees["front matter of AsciiDoc"] = corpora.Tree{"pay.adoc": []byte("---\ngroups: [staff]\n---\n= Pay\n\n" + secret)}
	for name, of := range map[string]string{"metadata of a notebook": `{"metadata": {"groups": ["staff"]}, "cells": [{"cell_type": "markdown", "source": "SECRET"}]}`,
		"metadata of a notebook in capitals": `{"metadata": {"Groups": "staff, board"}, "cells": [{"cell_type": "markdown", "source": ["---\n", "title: Pay\n", "---\n", "SECRET"]}]}`,
		"front matter of a notebook":         `{"cells": [{"cell_type": "raw", "source": ["---\n", "groups: [staff]\n", "---\n"]}, {"cell_type": "markdown", "source": "SECRET"}]}`,
		"a notebook of the third format":     `{"metadata": {"groups": 7}, "worksheets": [{"cells": [{"cell_type": "markdown", "source": "SECRET"}]}]}`,
		"front matter in its first text":     `{"cells": [{"cell_type": "markdown", "source": ["---\n", "groups: staff\n", "---\n", "\n", "SECRET"]}]}`} {
		trees[name] = corpora.Tree{"pay.ipynb": []byte(strings.ReplaceAll(of, "SECRET", strings.TrimSpace(secret)))}
	}
	trees["a keyword of Org"] = corpora.Tree{"pay.org": []byte("#+TITLE: Pay\n#+GROUPS: staff board\n\n" + secret)}
	trees["a property of Org"] = corpora.Tree{"pay.org": []byte("#+title: Pay\n#+property: groups staff\n\n" + secret)}
	trees["a drawer of Org"] = corpora.Tree{"pay.org": []byte(":PROPERTIES:\n:ID: x\n:Groups: staff\n:END:\n#+title: Pay\n\n" + secret)}
	trees["R Markdown"] = corpora.Tree{"pay.Rmd": []byte("---\ntitle: Pay\ngroups: staff\n---\n\n" + secret)}
	trees["Markdoc"] = corpora.Tree{"pay.mdoc": []byte("---\ngroups: [staff]\n---\n\n" + secret)}
	trees["Quarto"] = corpora.Tree{"pay.qmd": []byte("---\ngroups: [staff]\n---\n\n" + secret)}
	for name, tree := range trees {
		t.Run(name, func(t *testing.T) {
			a, p := newAsker(t), api.Project{ID: "case"}
			a.indexed["case"] = true
			tree["index.md"] = []byte("# Acme\n\nHello.\n")
			if _, err := a.library.Update(t.Context(), p, tree, func(int, int) {}); err != nil {
				t.Fatal(err)
			}
			said, cited, _ := a.ask(t, "case", "What is the salary of grade nine?", nil)
			hits, err := a.library.Search(t.Context(), "case", search.Query{Text: "salary grade nine", Limit: 5})
			if err != nil || len(hits) > 0 || strings.Contains(said+a.cards, "78,000") {
				t.Errorf("found %v, %v, answered %q from %v", hits, err, said, cited)
			}
		})
	}
}

func folder(t *testing.T, dir string) corpora.Tree {
	t.Helper()
	tree := corpora.Tree{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		tree[filepath.ToSlash(rel)] = raw
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// fails lists what of a case does not hold.
func (c *sourceCase) fails(t *testing.T, tree corpora.Tree) (out []string) {
	a := newAsker(t)
	p := api.Project{ID: "case", DocsDir: c.docsDir}
	check, err := a.library.Check(t.Context(), p, tree, func(int, int) {})
	if err != nil {
		return []string{err.Error()}
	}
	if _, err := a.library.Update(t.Context(), p, tree, func(int, int) {}); err != nil {
		return []string{err.Error()}
	}
	a.indexed["case"] = true
	miss := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	pages := map[string]search.CheckedPage{}
	for _, page := range check.Pages {
		pages[page.Path] = page
		if slices.ContainsFunc(c.no, func(no string) bool {
			return page.Path == no || strings.HasSuffix(no, "/") && strings.HasPrefix(page.Path, no)
		}) {
			miss("%s is a page", page.Path)
		}
		text, err := a.library.Page(t.Context(), p.ID, page.Path, nil)
		if err != nil {
			continue
		}
		if c.raw != "" {
			if m := regexp.MustCompile(c.raw).FindString(text.Content); m != "" {
				miss("%s shows %q", page.Path, m)
			}
		}
		if want := c.reads[page.Path]; want != "" && !regexp.MustCompile(want).MatchString(text.Content) {
			miss("%s does not say %q: %q", page.Path, want, text.Content)
		}
	}
	for file, want := range c.at {
		if got := pages[file].URL; got != want {
			miss("%s is at %q, not %s", file, got, want)
		}
	}
	for file, want := range c.titles {
		if got := pages[file].Title; !regexp.MustCompile("^(?:" + want + ")").MatchString(got) {
			miss("%s has the title %q", file, got)
		}
	}
	for _, file := range c.unsaid {
		if got := pages[file].State; got != site.Unlisted {
			miss("%s is %q", file, got)
		}
	}
	if c.warned != "" && !regexp.MustCompile(c.warned).MatchString(fmt.Sprint(check.Warnings)) {
		miss("the warnings are %v", check.Warnings)
	}
	for query, want := range c.found {
		hits, err := a.library.Search(t.Context(), p.ID, search.Query{Text: query, Limit: 5})
		at, anchored := "nothing", strings.Contains(want, "#")
		if err == nil && len(hits) > 0 {
			if at = hits[0].Path; anchored {
				at += "#" + hits[0].Anchor
			}
		}
		if at != want {
			miss("%q finds %s", query, at)
		}
	}
	for question, want := range c.asked {
		text, cited, _ := a.ask(t, "case", question, nil)
		if !regexp.MustCompile(want).MatchString(text + a.cards) {
			miss("%q is answered %q from %v", question, text, cited)
		} else if c.raw != "" && regexp.MustCompile(c.raw).MatchString(text) {
			miss("the answer of %q shows %q", question, text)
		}
	}
	slices.Sort(out)
	return out
}
