package builtin

import (
	"slices"
	"strings"
	"unicode"
)

// courtesies are the words of greeting and of thanks in a language, and what is replied to them.
var courtesies = []struct {
	greet, thank   []string
	hello, welcome string
}{
	{strings.Fields("hi hello hey"), strings.Fields("thanks thank thx cheers"), "Hello! What would you like to know?", "You're welcome."},
	{strings.Fields("hallo moin servus"), strings.Fields("danke dankeschön"), "Hallo! Was möchten Sie wissen?", "Gern geschehen."},
	{strings.Fields("bonjour salut"), strings.Fields("merci"), "Bonjour ! Que souhaitez-vous savoir ?", "Avec plaisir."},
	{strings.Fields("hola"), strings.Fields("gracias"), "¡Hola! ¿Qué desea saber?", "De nada."},
	{strings.Fields("olá oi"), strings.Fields("obrigado obrigada"), "Olá! O que deseja saber?", "De nada."},
	{strings.Fields("ciao buongiorno"), strings.Fields("grazie"), "Ciao! Che cosa vuole sapere?", "Prego."},
	{strings.Fields("hoi"), strings.Fields("bedankt dankjewel"), "Hallo! Wat wilt u weten?", "Graag gedaan."},
	{strings.Fields("hej hejsan"), strings.Fields("tack"), "Hej! Vad vill du veta?", "Varsågod."},
	{strings.Fields("cześć"), strings.Fields("dzięki dziękuję"), "Cześć! Czego szukasz?", "Nie ma za co."},
	{strings.Fields("merhaba selam"), strings.Fields("teşekkürler sağol"), "Merhaba! Ne öğrenmek istersiniz?", "Rica ederim."},
	{strings.Fields("привет здравствуйте"), strings.Fields("спасибо"), "Здравствуйте! Что вы хотите узнать?", "Пожалуйста."},
}

// courteous are words that stand with a courtesy and ask nothing.
var courteous = strings.Fields("ok okay great good cool nice perfect super you so very much a lot many all again there " +
	"for your the help that helped schön sehr viel vielen beaucoup muchas muito mille docent")

// Courtesy is the reply to a message that greets or thanks and asks nothing; empty for all others.
func Courtesy(message string) (reply string) {
	words := strings.FieldsFunc(strings.ToLower(message), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) })
	if len(words) > 8 || strings.ContainsAny(message, "?？`") {
		return ""
	}
	for _, word := range words {
		said := ""
		for _, c := range courtesies {
			if slices.Contains(c.thank, word) {
				said = c.welcome
			} else if slices.Contains(c.greet, word) {
				said = c.hello
			}
		}
		switch {
		case said != "":
			reply = said
		case !slices.Contains(courteous, word):
			return ""
		}
	}
	return reply
}
