package claims

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"docent/internal/wordset"
)

var set = wordset.Of

// functional are words that say nothing by themselves: those of grammar in the languages that documentation is written
// in most, and those that English explanations are made of whatever they explain.
var functional = set(`a an the this that these those there here it its it's they them their he she we you your yours our us i me my
 and or but nor so yet if then else than when while where which who whom whose what why how whether as at by for from in into of off on
 onto out over per to under until up via with within about above after again against all also am any are be because been before being
 below between both can could did do does doing down during each either etc few further had has have having just like may might more most
 must much need needs needed now one only other otherwise own same shall should simply since some such too very was were will would
 every everything anything something nothing
 e.g i.e eg ie vs please first next finally following follow follows use uses used using usage via way ways thing things case cases
 example examples instance want wants get gets got make makes made let lets allow allows allowed able see note however therefore thus
 instead well many several various certain specific particular currently still already often usually typically generally
 docs documentation passage passages section sections page pages according described explain explains explained means mean called
 der die das den dem des ein eine einen einem einer eines und oder aber wenn dann als wie wo was wer welche welcher welches dass ob zu
 zum zur im in an auf aus bei mit nach von vor für über unter durch um ist sind war wird werden wurde kann können muss müssen soll hat haben
 sie er es wir ihr man sich auch noch nur schon sehr mehr diese dieser dieses
 le la les un une des du de et ou mais si que qui dont où ce cet cette ces il elle ils elles on nous vous est sont été être avoir ont dans
 sur sous par pour avec sans entre plus moins aussi peut peuvent doit doivent
 el los las una unos unas del y o pero si que quien cual como donde es son está están ser hay en con por para sin sobre entre más también
 puede pueden debe deben se su sus lo al
 um uma os as do da dos das no na nos nas e ou mas se com por para sem são está ser pode podem deve devem mais também seu sua
 il lo gli i uno e o ma che chi dove di da con su per tra fra è sono essere può possono deve devono più anche
 de het een en of maar als dan wat wie waar is zijn was kan kunnen moet moeten met van voor op in uit bij naar ook nog`)

// auxiliary are words that stand between a negation and what it denies.
var auxiliary = set(`a an the any be been being is are was were do does did have has had get gets to of its their your yet also
 ein eine der die das sein un une le la les de des el los las un una ser`)

// negations turn a statement into its opposite.
var negations = set(`not no never cannot can't won't don't doesn't didn't isn't aren't wasn't weren't shouldn't mustn't couldn't wouldn't
 hasn't haven't neither nor none nobody nothing unable impossible
 nicht kein keine keinen keinem keiner nie niemals weder
 ne pas jamais aucun aucune non ni
 nunca ningún ninguna ninguno jamás tampoco não nenhum nenhuma mai nessun nessuna niet geen nooit`)

var cjkNegations = []string{"不", "没", "沒", "无", "無", "未", "非", "ない", "ません", "なし", "ず", "않", "없", "못", "아니"}

// opposites are pairs of words of which one in the claim and the other in the passage contradict each other.
var opposites = pairs(`enabled disabled enable disable enables disables required optional always never true false before after minimum
 maximum min max include exclude includes excludes included excluded public private increase decrease increases decreases allow deny
 allows denies allow forbid allows forbids allowed forbidden allowed denied supported unsupported success failure succeeds fails accept
 reject accepts rejects accepted rejected synchronous asynchronous synchronously asynchronously mutable immutable ascending descending
 first last oldest newest old new left right top bottom upper lower input output read write encrypted unencrypted on off yes no show hide
 shows hides shown hidden add remove adds removes added removed start stop starts stops started stopped open closed possible impossible
 inside outside local remote lower higher less more earlier later internal external static dynamic manual automatic manually automatically
 sensitive insensitive case-sensitive case-insensitive positive negative deprecated recommended safe unsafe secure insecure`)

func pairs(words string) map[string][]string {
	m := map[string][]string{}
	list := strings.Fields(words)
	for i := 0; i+1 < len(list); i += 2 {
		a, b := list[i], list[i+1]
		m[a], m[b] = append(m[a], b), append(m[b], a)
	}
	return m
}

// same are words that stand for each other in documentation. The first of each line stands for all.
var same = groups(`remove delete erase drop discard
 create generate produce build add
 start launch begin boot
 show display print list
 choose select pick
 require need mandatory
 change modify edit alter update adjust
 setting option parameter configuration config configure property
 directory folder
 repository repo
 authentication auth authenticate login sign-in
 fix repair solve resolve
 answer reply response respond return
 error failure fail
 store save keep persist
 send submit post
 receive accept get
 find search locate look
 run execute invoke
 finish end complete
 quick fast
 big large
 value number
 argument arg
 environment env
 application app
 administrator admin
 command cli
 language locale
 permit allow enable
 support work`)

func groups(lines string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		for _, w := range words {
			m[stemmed(w)] = stemmed(words[0])
		}
	}
	return m
}

// numerals are numbers that are written as words.
var numerals = map[string]string{"zero": "0", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8",
	"nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "fifteen": "15", "twenty": "20", "thirty": "30", "forty": "40",
	"fifty": "50", "sixty": "60", "ninety": "90", "hundred": "100", "thousand": "1000", "million": "1000000",
	"once": "1", "twice": "2", "zwei": "2", "drei": "3", "vier": "4", "fünf": "5", "deux": "2", "trois": "3", "quatre": "4", "cinq": "5",
	"dos": "2", "tres": "3", "cuatro": "4", "cinco": "5"}

// A unit is what a number counts, with what it comes to: a time in milliseconds, a size in bytes.
type unit struct {
	kind byte
	to   float64
}

var units = unitsOf(map[unit]string{
	{'t', 1}:              "ms msec millisecond milliseconds millisekunden millisecondes milisegundos 毫秒 ミリ秒",
	{'t', 1000}:           "s sec secs second seconds sekunde sekunden seconde secondes segundo segundos secondi 秒 초",
	{'t', 60_000}:         "m min mins minute minutes minuten minuto minutos minuti 分 分钟 分間 분",
	{'t', 3600_000}:       "h hr hrs hour hours stunde stunden heure heures hora horas ore uur 小时 時間 시간",
	{'t', 86_400_000}:     "d day days tag tage tagen jour jours día días dia dias giorno giorni dagen 天 日 日間 일",
	{'t', 7 * 86_400_000}: "w week weeks woche wochen semaine semaines semana semanas 周 週間 주",
	{'b', 1}:              "b byte bytes octets 字节 バイト",
	{'b', 1 << 10}:        "k kb kib kilobyte kilobytes kibibytes",
	{'b', 1 << 20}:        "mb mib megabyte megabytes mebibytes",
	{'b', 1 << 30}:        "g gb gib gigabyte gigabytes gibibytes",
	{'b', 1 << 40}:        "tb tib terabyte terabytes",
	{'%', 1}:              "% percent prozent pourcent",
})

func unitsOf(names map[unit]string) map[string]unit {
	m := map[string]unit{}
	for u, list := range names {
		for name := range strings.FieldsSeq(list) {
			m[name] = u
		}
	}
	return m
}

// stemmed leaves of an English word what its forms have in common; of other words it leaves most.
func stemmed(w string) string {
	w = strings.TrimSuffix(strings.TrimSuffix(w, "'s"), "’s")
	if len(w) < 4 || w[0] >= utf8.RuneSelf {
		return w
	}
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		w = w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "sses"):
		w = w[:len(w)-2]
	case strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is"):
		w = w[:len(w)-1]
	}
	for _, ending := range []string{"ational", "ization", "isation", "ations", "ation", "ment", "ition", "ible", "able", "ance", "ence",
		"ally", "ing", "ion", "ful", "ive", "ed", "er", "or", "ly", "al", "en"} {
		if strings.HasSuffix(w, ending) && len(w)-len(ending) >= 3 {
			w = w[:len(w)-len(ending)]
			break
		}
	}
	if n := len(w); n > 3 && w[n-1] == w[n-2] && w[n-1] != 's' && w[n-1] != 'l' {
		w = w[:n-1]
	}
	w = strings.TrimSuffix(w, "e")
	if strings.HasSuffix(w, "y") && len(w) > 3 {
		w = w[:len(w)-1] + "i"
	}
	return w
}

// stem is a word as it is compared: words that stand for each other are one.
func stem(w string) string {
	w = stemmed(w)
	if first, ok := same[w]; ok {
		return first
	}
	return w
}

// wide reports whether a sign belongs to a script that is written without spaces.
func wide(r rune) bool {
	return r >= 0x0E00 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) || r == 'ー')
}
