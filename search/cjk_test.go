package search

import (
	"testing"

	"docent/api"
)

// Chinese, Japanese and Korean have no spaces that words could be told by, or few. Their pages are found all the same,
// in a search box and as the assistant asks.
func TestChineseJapaneseAndKoreanAreFound(t *testing.T) {
	l := openTest(t, Options{})
	mustUpdate(t, l, api.Project{ID: "x"}, &memTree{commit: "1", files: map[string]string{
		"zh/install.md":   "# 安装服务器\n\n下载安装包，然后运行安装程序。",
		"zh/deploy.md":    "# 部署到生产环境\n\n配置反向代理之后再部署。",
		"zh/limits.md":    "# 速率限制\n\n每个密钥每分钟最多六十次请求。",
		"ja/install.md":   "# サーバーのインストール\n\nパッケージをダウンロードして実行します。",
		"ja/backup.md":    "# バックアップと復元\n\nデータベースを毎日保存します。",
		"ja/api.md":       "# APIキー\n\n設定画面でキーを作成します。",
		"ko/install.md":   "# 서버 설치\n\n패키지를 내려받아 실행합니다.",
		"ko/webhooks.md":  "# 웹훅 서명 검증\n\n서명을 비밀 키로 확인합니다.",
		"ko/retention.md": "# 보관 기간\n\n오래된 기록은 30일 뒤에 삭제됩니다.",
		"en/install.md":   "# Install the server\n\nDownload the package and run it.",
		"en/deploy.md":    "# Deploy to production\n\nSet up a reverse proxy first.",
	}})
	for query, want := range map[string]string{
		"如何安装服务器？":             "zh/install.md",
		"反向代理怎么配置":             "zh/deploy.md",
		"请求速率":                 "zh/limits.md",
		"サーバーをインストールする方法":      "ja/install.md",
		"データベースの復元はどうすればいいですか": "ja/backup.md",
		"ＡＰＩキーの作成":             "ja/api.md", // letters as wide as characters
		"서버를 어떻게 설치하나요":        "ko/install.md",
		"웹훅의 서명 확인":            "ko/webhooks.md",
		"기록 삭제":                "ko/retention.md",
	} {
		for _, box := range []bool{true, false} {
			hits, err := l.Search(t.Context(), "x", Query{Text: query, Box: box})
			if err != nil {
				t.Fatal(err)
			}
			if len(hits) == 0 || hits[0].Path != want {
				t.Errorf("%s (box %v): want %s first, have %v", query, box, want, paths(hits))
			}
		}
	}
	// A long vowel is part of its word: what has only that sign in common is not found.
	hits, err := l.Search(t.Context(), "x", Query{Text: "メーカー", Filter: Filter{Language: "ja"}})
	if err != nil || len(hits) != 0 {
		t.Errorf("a word that no page has finds %v, %v", paths(hits), err)
	}
}
