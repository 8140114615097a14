package analysis_test

import (
	"testing"

	"docent/search/analysis"
)

func TestALanguageIsToldByItsWords(t *testing.T) {
	for text, want := range map[string]string{
		"How do I install the plugin?": "en", "Wie installiere ich das Plugin?": "de", "¿Cómo instalo el complemento?": "es",
		"Comment installer le greffon ?": "fr", "Come si installa il plugin nella cartella?": "it",
		"Como instalar o plugin?": "pt", "Como faço para cancelar minha assinatura de telefone?": "pt", "¿Cómo hago para cancelar la cuenta?": "es",
		"Как установить плагин?": "ru", "كيف أثبت الإضافة؟": "ar",
		"プラグインをインストールするには？": "ja", "如何安装插件？": "zh", "플러그인을 어떻게 설치하나요?": "ko",
		"remote_write": "", "scrape_interval default": "", "Vite の設定ファイルはどこですか": "ja",
	} {
		if got := analysis.LanguageOf(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
