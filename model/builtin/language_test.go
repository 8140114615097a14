package builtin

import (
	"slices"
	"strings"
	"testing"

	"docent/internal/brief"
	"docent/model"
	"docent/search/analysis"
)

// Links, paths and names are no prose: the "com" of five hosts made a page Portuguese.
func TestAddressesAreNoProse(t *testing.T) {
	var list strings.Builder
	for _, c := range []string{"mysql", "redis", "mongodb", "oracle", "mssql"} {
		list.WriteString("* [" + c + " exporter](https://github.com/c/" + c + "_exporter)\n* " + c + ".example.com, com/example/" + c + "\n")
	}
	if got, _ := analysis.LanguageBy(list.String(), 5); got != "" {
		t.Errorf("the list is in %q", got)
	}
	page := model.Passage{Path: "exporters.md", URL: "https://docs.example/exporters", Title: "Exporters", Anchor: "databases",
		Heading: "Databases", Score: 0.9, Text: list.String()}
	text, cited, _, _ := answerOf(t, model.Request{Question: "Is there a mysql exporter?", Passages: []model.Passage{page}})
	if strings.HasPrefix(text, strings.TrimSuffix(model.Foreign("en", ""), ":")) || len(cited) != 1 {
		t.Errorf("cited %v\n%s", cited, text)
	}
}

// A reader of another language is told so in his own, with what comes closest.
func TestAReaderIsToldInHisLanguageThatTheDocumentationHasNothingInIt(t *testing.T) {
	page := model.Passage{Path: "scrape.md", URL: "https://docs.example/scrape", Title: "Scraping", Anchor: "interval",
		Heading: "scrape_interval", Score: 0.9,
		Text: "The `scrape_interval` says how often the targets are scraped. It is set in the global section of the file."}
	for question, language := range map[string]string{
		"Wie setze ich das scrape_interval?": "de", "¿Cómo se configura el scrape_interval?": "es",
		"Comment régler le scrape_interval ?": "fr", "Come si imposta lo scrape_interval per il server?": "it",
		"Como configurar o scrape_interval?": "pt", "Как задать scrape_interval для сервера?": "ru",
		"كيف أضبط scrape_interval على الخادم؟": "ar", "scrape_intervalはどこで設定しますか": "ja", "如何设置 scrape_interval 参数？": "zh",
		"scrape_interval 설정은 어떻게 하나요?": "ko",
	} {
		text, cited, _, _ := answerOf(t, model.Request{Question: question, Passages: []model.Passage{page}})
		if !strings.HasPrefix(text, model.Foreign(language, "en")) || !strings.Contains(text, "how often the targets") || len(cited) != 1 {
			t.Errorf("%s: %q is answered, cited %v\n%s", language, question, cited, text)
		}
		far := page
		far.Score = 0.02
		req := model.Request{Question: strings.ReplaceAll(question, "scrape_interval", "xyzzy"),
			Passages: []model.Passage{far}, Deflection: "help@docs.example"}
		text, cited, _, result := answerOf(t, req)
		if text != req.Denied(language) || strings.Contains(text, "https://docs.example/scrape") ||
			!strings.Contains(text, "mailto:help@docs.example") || len(cited) != 0 || result.Answered {
			t.Errorf("%s: denied with %q, cited %v", language, text, cited)
		}
	}
}

// Pages in the reader's language answer like any, with the sentence that does.
func TestTranslatedPagesAnswer(t *testing.T) {
	filler := strings.Repeat("サーバーは起動時にすべてのファイルを読み込み、ログに記録します。利用者はログを確認して、問題を調べることができます。", 12)
	for question, c := range map[string]struct{ heading, text, want string }{
		"開発サーバーのポートを変更するにはどうすればいいですか？": {"サーバーオプション",
			filler + "開発サーバーのポートは`server.port`で変更できます。" + filler, "開発サーバーのポートは`server.port`で変更できます。"},
		"如何修改开发服务器的端口？": {"服务器选项", strings.Repeat("服务器启动时会读取所有文件，并且写入日志。用户可以查看日志来排查问题。", 20) +
			"可以通过 `server.port` 修改开发服务器的端口。", "可以通过 `server.port` 修改开发服务器的端口。"},
		"Wie ändere ich den Port des Servers?": {"Server", "Der Port des Servers steht in `server.port`. Sie können ihn dort ändern.",
			"steht in `server.port`"},
	} {
		text, cited, _, result := answerOf(t, model.Request{Question: question, Passages: []model.Passage{{Path: "a.md",
			Title: "A", Heading: c.heading, Text: c.text, Score: 0.7}}})
		if !result.Answered || !slices.Equal(cited, []int{0}) || !strings.Contains(text, c.want) {
			t.Errorf("%s: answered %v, cited %v\n%s", question, result.Answered, cited, text)
		}
		if n := proseWords(text); n > 200 {
			t.Errorf("%s: the answer has %d words", question, n)
		}
	}
}

func TestSentencesEndInEveryScript(t *testing.T) {
	for text, want := range map[string]int{"一つ目です。二つ目です！三つ目ですか？": 3, "第一句。第二句（也在。里面）。": 2,
		"One. Two! Three?": 3} {
		if got := brief.Sentences(text); len(got) != want {
			t.Errorf("%q is %q", text, got)
		}
	}
}
