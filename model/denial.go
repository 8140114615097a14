package model

import (
	"strings"
)

// phrases are what an answer says where the documentation does not answer, in a reader's language. The subject stands
// for the first sign %.
type phrases struct{ subject, denial, nearest, ask, unsure string }

var inLanguage = map[string]phrases{
	"en": {"", "% does not answer this question.", "The page that comes closest is %.", "You can ask here: %.",
		"the documentation's passages do not say this"},
	"de": {"Die Dokumentation", "% beantwortet diese Frage nicht.", "Am nächsten kommt ihr die Seite %.",
		"Hier können Sie fragen: %.", "das sagen die Abschnitte der Dokumentation nicht"},
	"fr": {"La documentation", "% ne répond pas à cette question.", "La page la plus proche est %.",
		"Vous pouvez poser la question ici : %.", "les passages de la documentation ne le disent pas"},
	"es": {"La documentación", "% no responde a esta pregunta.", "La página más cercana es %.", "Puede preguntar aquí: %.",
		"los pasajes de la documentación no lo dicen"},
	"pt": {"A documentação", "% não responde a esta pergunta.", "A página mais próxima é %.", "Você pode perguntar aqui: %.",
		"os trechos da documentação não dizem isso"},
	"it": {"La documentazione", "% non risponde a questa domanda.", "La pagina più vicina è %.", "Si può chiedere qui: %.",
		"i passaggi della documentazione non lo dicono"},
	"nl": {"De documentatie", "% beantwoordt deze vraag niet.", "De pagina die het dichtst in de buurt komt is %.",
		"U kunt het hier vragen: %.", "de passages van de documentatie zeggen dit niet"},
	"pl": {"Dokumentacja", "% nie odpowiada na to pytanie.", "Najbliższa strona to %.", "Można zapytać tutaj: %.",
		"fragmenty dokumentacji tego nie mówią"},
	"sv": {"Dokumentationen", "% besvarar inte den här frågan.", "Den närmaste sidan är %.", "Du kan fråga här: %.",
		"dokumentationens avsnitt säger inte detta"},
	"tr": {"Belgeler", "% bu soruyu yanıtlamıyor.", "En yakın sayfa: %.", "Buraya sorabilirsiniz: %.",
		"belgelerin bölümleri bunu söylemiyor"},
	"ru": {"Документация", "% не отвечает на этот вопрос.", "Ближайшая страница: %.", "Спросить можно здесь: %.",
		"в разделах документации этого нет"},
	"zh": {"文档", "%没有回答这个问题。", "最接近的页面是%。", "您可以在这里提问：%。", "文档的段落没有这样说"},
	"ja": {"ドキュメント", "%にはこの質問への答えがありません。", "最も近いページは%です。", "こちらで質問できます：%。",
		"ドキュメントにはこの記述がありません"},
	"ko": {"문서", "%에는 이 질문에 대한 답이 없습니다.", "가장 가까운 페이지는 %입니다.", "여기에서 질문할 수 있습니다: %.",
		"문서에 이 내용이 없습니다"},
}

func in(language string) phrases {
	if p, ok := inLanguage[language]; ok {
		return p
	}
	return inLanguage["en"]
}

func filled(phrase, with string) string {
	before, after, _ := strings.Cut(phrase, "%")
	return before + with + after
}

// Subject is the documentation as a sentence begins with it.
func (r *Request) Subject() string {
	switch {
	case r.Project == "":
		return "The documentation"
	case strings.Contains(strings.ToLower(r.Project), "doc"):
		return r.Project
	}
	return "The " + r.Project + " documentation"
}

// NotAnswered is a whole answer: that the documentation does not answer, and where else to look. Language is the
// reader's, such as "de"; English where it is none that is known.
func (r *Request) NotAnswered(language string) string {
	p := in(language)
	subject := p.subject
	switch {
	case subject == "":
		subject = r.Subject()
	case r.Project != "":
		subject += " (" + strings.Join(strings.Fields(r.Project), " ") + ")"
	}
	text := filled(p.denial, subject)
	if more := r.Elsewhere(language, ""); more != "" {
		text += " " + more
	}
	return text
}

// Elsewhere is where a reader may look whom the documentation does not answer: the page that comes closest, and the
// deflection's address. What was said already is left out.
func (r *Request) Elsewhere(language, said string) string {
	p := in(language)
	var parts []string
	if link, address := r.nearest(); link != "" && (address == "" || !strings.Contains(said, address)) {
		parts = append(parts, filled(p.nearest, link))
	}
	if one := strings.Join(strings.Fields(r.Deflection), " "); one != "" && !strings.Contains(said, one) {
		parts = append(parts, filled(p.ask, r.askedAt()))
	}
	return strings.Join(parts, " ")
}

// Unsure is what stands behind a claim that no passage supports.
func Unsure(language string) string { return "*(" + in(language).unsure + ")*" }

const longestTitle = 80

// nearest is a link to the page that was found first.
func (r *Request) nearest() (link, address string) {
	if len(r.Passages) == 0 {
		return "", ""
	}
	page := &r.Passages[0]
	title := strings.Join(strings.Fields(page.Title), " ")
	if title == "" {
		title = page.Path
	}
	if r := []rune(title); len(r) > longestTitle {
		title = string(r[:longestTitle]) + "…"
	}
	for _, sign := range []string{`\`, "[", "]", "*", "_", "`", "<"} {
		title = strings.ReplaceAll(title, sign, `\`+sign)
	}
	if page.URL == "" || strings.ContainsAny(page.URL, " <>()\n") {
		return "“" + title + "”", ""
	}
	return "[" + title + "](" + page.URL + ")", page.URL
}
