package model

import (
	"strconv"
	"strings"

	"docent/internal/brief"
)

// phrases are what an answer says of itself in a reader's language. The documentation's words are its own. The subject
// stands for the first sign %.
type phrases struct {
	subject, denial, ask, unsure string

	doubt   string // before what may be no answer
	foreign string // before what is quoted in another language
	reword  string // to whom nobody can be asked
	more    string // that so many items, rows or steps are left out
	unfound string // that names of the question do not occur
	instead string // that the built-in model answers in place of another
}

var inLanguage = map[string]phrases{
	"en": {"", "% does not answer this question.", "You can ask here: %.",
		"the documentation's passages do not say this",
		"I couldn't find a clear answer. This may help:",
		"The documentation has nothing on this in the language of the question. The closest that it says in another:",
		"You could try other words, or name the feature or setting that it is about.",
		"… % more", "These sections do not mention %.",
		"The language model is not available at the moment, so this answer is put together from the documentation's own sentences."},
	"de": {"Die Dokumentation", "% beantwortet diese Frage nicht.",
		"Hier können Sie fragen: %.", "das sagen die Abschnitte der Dokumentation nicht",
		"Eine klare Antwort habe ich nicht gefunden. Das könnte helfen:",
		"Auf Deutsch gibt es dazu nichts in der Dokumentation. Am nächsten kommt diese Stelle in einer anderen Sprache:",
		"Vielleicht helfen andere Worte oder der Name der Funktion oder Einstellung, um die es geht.",
		"… % weitere", "Diese Abschnitte nennen nicht: %.",
		"Das Sprachmodell ist gerade nicht erreichbar. Diese Antwort besteht aus Sätzen der Dokumentation selbst."},
	"fr": {"La documentation", "% ne répond pas à cette question.",
		"Vous pouvez poser la question ici : %.", "les passages de la documentation ne le disent pas",
		"Je n'ai pas trouvé de réponse claire. Ceci peut aider :",
		"La documentation n'a rien à ce sujet en français. Ce qui s'en approche le plus, dans une autre langue :",
		"Essayez avec d'autres mots, ou avec le nom de la fonction ou du réglage concerné.",
		"… % de plus", "Ces sections ne mentionnent pas %.",
		"Le modèle de langage n'est pas disponible pour le moment. Cette réponse se compose de phrases de la documentation elle-même."},
	"es": {"La documentación", "% no responde a esta pregunta.", "Puede preguntar aquí: %.",
		"los pasajes de la documentación no lo dicen",
		"No encontré una respuesta clara. Esto puede ayudar:",
		"La documentación no tiene nada sobre esto en español. Lo más cercano, en otro idioma:",
		"Pruebe con otras palabras, o con el nombre de la función o del ajuste de que se trata.",
		"… % más", "Estas secciones no mencionan %.",
		"El modelo de lenguaje no está disponible en este momento. Esta respuesta se compone de frases de la propia documentación."},
	"pt": {"A documentação", "% não responde a esta pergunta.", "Você pode perguntar aqui: %.",
		"os trechos da documentação não dizem isso",
		"Não encontrei uma resposta clara. Isto pode ajudar:",
		"A documentação não tem nada sobre isto em português. O mais próximo, em outro idioma:",
		"Tente com outras palavras, ou com o nome da função ou da configuração em questão.",
		"… mais %", "Estas seções não mencionam %.",
		"O modelo de linguagem não está disponível no momento. Esta resposta é composta de frases da própria documentação."},
	"it": {"La documentazione", "% non risponde a questa domanda.", "Si può chiedere qui: %.",
		"i passaggi della documentazione non lo dicono",
		"Non ho trovato una risposta chiara. Questo può aiutare:",
		"La documentazione non ha nulla su questo in italiano. Ciò che si avvicina di più, in un'altra lingua:",
		"Si può provare con altre parole, o con il nome della funzione o dell'impostazione di cui si tratta.",
		"… altri %", "Queste sezioni non menzionano %.",
		"Il modello linguistico non è disponibile al momento. Questa risposta è composta da frasi della documentazione stessa."},
	"nl": {"De documentatie", "% beantwoordt deze vraag niet.",
		"U kunt het hier vragen: %.", "de passages van de documentatie zeggen dit niet",
		"Ik heb geen duidelijk antwoord gevonden. Dit kan helpen:",
		"De documentatie heeft hierover niets in het Nederlands. Het dichtst in de buurt komt, in een andere taal:",
		"Probeer het met andere woorden, of met de naam van de functie of instelling waar het om gaat.",
		"… nog %", "Deze secties noemen % niet.",
		"Het taalmodel is op dit moment niet beschikbaar. Dit antwoord bestaat uit zinnen van de documentatie zelf."},
	"pl": {"Dokumentacja", "% nie odpowiada na to pytanie.", "Można zapytać tutaj: %.",
		"fragmenty dokumentacji tego nie mówią",
		"Nie udało się znaleźć jasnej odpowiedzi. To może pomóc:",
		"W dokumentacji nie ma nic na ten temat po polsku. Najbliższe temu jest, w innym języku:",
		"Można spróbować innych słów albo nazwy funkcji lub ustawienia, o które chodzi.",
		"… jeszcze %", "Te sekcje nie wspominają o: %.",
		"Model językowy jest w tej chwili niedostępny. Ta odpowiedź składa się ze zdań samej dokumentacji."},
	"sv": {"Dokumentationen", "% besvarar inte den här frågan.", "Du kan fråga här: %.",
		"dokumentationens avsnitt säger inte detta",
		"Jag hittade inget tydligt svar. Det här kan hjälpa:",
		"Dokumentationen har inget om detta på svenska. Det närmaste, på ett annat språk:",
		"Försök med andra ord, eller med namnet på funktionen eller inställningen som det gäller.",
		"… % till", "De här avsnitten nämner inte %.",
		"Språkmodellen är inte tillgänglig just nu. Det här svaret består av dokumentationens egna meningar."},
	"tr": {"Belgeler", "% bu soruyu yanıtlamıyor.", "Buraya sorabilirsiniz: %.",
		"belgelerin bölümleri bunu söylemiyor",
		"Net bir yanıt bulamadım. Şu işinize yarayabilir:",
		"Belgelerde bu konuda Türkçe bir şey yok. Başka bir dildeki en yakın içerik:",
		"Başka sözcüklerle veya ilgili özelliğin ya da ayarın adıyla deneyebilirsiniz.",
		"… % tane daha", "Bu bölümlerde geçmiyor: %.",
		"Dil modeli şu anda kullanılamıyor. Bu yanıt, belgelerin kendi cümlelerinden oluşuyor."},
	"ru": {"Документация", "% не отвечает на этот вопрос.", "Спросить можно здесь: %.",
		"в разделах документации этого нет",
		"Ясного ответа найти не удалось. Возможно, поможет это:",
		"На русском языке в документации об этом ничего нет. Ближе всего, на другом языке:",
		"Попробуйте другие слова или название функции или настройки, о которой идёт речь.",
		"… ещё %", "В этих разделах не упоминается: %.",
		"Языковая модель сейчас недоступна. Этот ответ составлен из предложений самой документации."},
	"ar": {"الوثائق", "% لا تجيب عن هذا السؤال.", "يمكنك أن تسأل هنا: %.",
		"لا تقول مقاطع الوثائق هذا",
		"لم أجد إجابة واضحة. قد يفيدك هذا:",
		"ليس في الوثائق شيء عن هذا بالعربية. أقرب ما فيها بلغة أخرى:",
		"جرّب كلمات أخرى، أو اسم الميزة أو الإعداد المقصود.",
		"… % أخرى", "لا تذكر هذه المقاطع: %.",
		"النموذج اللغوي غير متاح حاليًا. هذه الإجابة مؤلفة من جمل الوثائق نفسها."},
	"zh": {"文档", "%没有回答这个问题。", "您可以在这里提问：%。", "文档的段落没有这样说",
		"没有找到明确的答案。以下内容可能有帮助：",
		"文档中没有关于这个问题的中文内容。其他语言中最接近的内容如下：", "可以换一种说法，或者说出相关功能或设置的名称。",
		"… 还有 % 项", "这些段落没有提到%。",
		"语言模型暂时不可用。此回答由文档中的原句组成。"},
	"ja": {"ドキュメント", "%にはこの質問への答えがありません。", "こちらで質問できます：%。",
		"ドキュメントにはこの記述がありません",
		"はっきりした答えは見つかりませんでした。次の内容が参考になるかもしれません。",
		"この内容について、日本語のドキュメントはありません。別の言語で最も近い内容は次のとおりです。",
		"別の言葉や、機能名・設定名でお試しください。",
		"… 他 % 件", "これらの箇所には%の記述がありません。",
		"言語モデルは現在利用できません。この回答はドキュメントの文をそのまま集めたものです。"},
	"ko": {"문서", "%에는 이 질문에 대한 답이 없습니다.", "여기에서 질문할 수 있습니다: %.",
		"문서에 이 내용이 없습니다",
		"명확한 답을 찾지 못했습니다. 다음 내용이 도움이 될 수 있습니다:",
		"이에 대한 한국어 문서가 없습니다. 다른 언어로 된 가장 가까운 내용은 다음과 같습니다.",
		"다른 말이나 관련 기능 또는 설정의 이름으로 다시 질문해 보세요.",
		"… %개 더", "이 부분에는 %에 대한 언급이 없습니다.",
		"언어 모델을 지금 사용할 수 없습니다. 이 답변은 문서의 문장으로 이루어져 있습니다."},
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

// subjectIn is the same in a language.
func (r *Request) subjectIn(language string) string {
	switch subject := in(language).subject; {
	case subject == "":
		return r.Subject()
	case r.Project != "":
		return subject + " (" + brief.Line(r.Project) + ")"
	default:
		return subject
	}
}

// Denied is a whole answer: that the documentation says nothing like what was asked, and where else to ask. Language is
// the reader's, such as "de"; English if it is none that is known.
func (r *Request) Denied(language string) string {
	p := in(language)
	text := filled(p.denial, r.subjectIn(language))
	if strings.TrimSpace(r.Deflection) == "" {
		return text + " " + p.reword
	}
	return text + " " + filled(p.ask, r.askedAt())
}

// Doubtful comes before what may be no answer.
func Doubtful(language string) string { return in(language).doubt }

// Instead comes before an answer that the built-in model gives in place of another.
func Instead(language string) string { return "*" + in(language).instead + "*\n\n" }

// WithoutInstead is an answer without that, in whatever language it is.
func WithoutInstead(answer string) string {
	for language := range inLanguage {
		if rest, ok := strings.CutPrefix(answer, Instead(language)); ok {
			return rest
		}
	}
	return answer
}

// languageNames are the names of languages, in themselves and in English.
var languageNames = map[string][2]string{"en": {"English", "English"}, "de": {"Deutsch", "German"}, "fr": {"français", "French"}, "es": {"español", "Spanish"},
	"pt": {"português", "Portuguese"}, "it": {"italiano", "Italian"}, "nl": {"Nederlands", "Dutch"}, "pl": {"polski", "Polish"}, "sv": {"svenska", "Swedish"},
	"tr": {"Türkçe", "Turkish"}, "ru": {"русский", "Russian"}, "ar": {"العربية", "Arabic"}, "zh": {"中文", "Chinese"}, "ja": {"日本語", "Japanese"}, "ko": {"한국어", "Korean"}}

// Foreign comes before what is quoted in another language than the reader's, and names it.
func Foreign(language, other string) string {
	phrase, of := in(language).foreign, languageNames[other]
	name := of[0]
	if _, known := inLanguage[language]; !known || language == "en" {
		name = of[1]
	}
	if name == "" {
		return phrase
	}
	end := strings.TrimRight(phrase, ":：。")
	return end + " (" + name + ")" + phrase[len(end):]
}

// More says in a language that so many items, rows or steps are left out.
func More(language string, left int) string { return filled(in(language).more, strconv.Itoa(left)) }

// Unfound says in a language that what was found does not have these names.
func Unfound(language string, names []string) string {
	for i, n := range names {
		names[i] = "`" + n + "`"
	}
	return filled(in(language).unfound, strings.Join(names, ", "))
}

// Unsure is what stands behind a claim that no passage supports.
func Unsure(language string) string { return "*(" + in(language).unsure + ")*" }
