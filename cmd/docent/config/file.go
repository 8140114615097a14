package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// readConfigFile reads the defaults and over them a file, and says in which line each setting is. The decoder stops at
// the first mistake: its line is left out and the file is read again, so that one reading finds all of them.
func readConfigFile(path string, list *Problems) Config {
	c := Default()
	if path == "" {
		return c
	}
	text, err := os.ReadFile(path)
	if err != nil {
		p := list.add("", "read the configuration file: %w", err)
		p.From, p.Fix = FromFile, "name the file with --config or DOCENT_CONFIG, and let the server's user read it"
		return c
	}
	lines := strings.Split(string(text), "\n")
	whole := true // so far only values were left out, and no key has lost its table
	for range lines {
		c = Default()
		err := toml.NewDecoder(strings.NewReader(strings.Join(lines, "\n"))).DisallowUnknownFields().Decode(&c)
		var strict *toml.StrictMissingError
		var decode *toml.DecodeError
		switch {
		case errors.As(err, &strict):
			for _, e := range strict.Errors {
				unknownSetting(e, list)
			}
			for _, p := range *list {
				if p.Severity == severityWarning {
					c.removed = append(c.removed, p.Message+": "+p.Fix)
				}
			}
			c.lines = settingLines([]byte(strings.Join(lines, "\n")))
			return c
		case errors.As(err, &decode):
			line, column := decode.Position()
			p := list.add(strings.Join(decode.Key(), "."), "column %d: %w", column, wantedType(decode))
			p.From, p.Line = FromFile, line
			if line < 1 || line > len(lines) || !keyAndValue().MatchString(lines[line-1]) {
				whole = false
				break
			}
			lines[line-1] = ""
			continue
		case err != nil:
			// A duration that is not in quotes: the decoder hands it to UnmarshalText and does not say where it was.
			name, line := bareDuration(strings.Join(lines, "\n"))
			p := list.add(name, "%w", err)
			p.From, p.Line = FromFile, line
			if line > 0 {
				p.Fix = `write it in quotes with its unit, such as "30s"`
				lines[line-1] = ""
				continue
			}
			whole = false
		}
		break
	}
	if !whole {
		c = Default() // nothing follows from the half of a file
	}
	c.lines = settingLines([]byte(strings.Join(lines, "\n")))
	return c
}

// keyAndValue is a line that can be left out without another one changing its meaning. Most starts need neither this
// nor the next.
var keyAndValue = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*[\w."'-]+\s*=`) })

// mismatch is what the decoder says of a value of another type.
var mismatch = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`cannot decode TOML (\w+) into .* of type (\S+)$`)
})

// wantedType says in an operator's words that a value has another type than its setting.
func wantedType(err error) error {
	text := strings.TrimPrefix(err.Error(), "toml: ")
	found := mismatch().FindStringSubmatch(text)
	if found == nil {
		return errors.New(text)
	}
	wanted := map[string]string{"int": "a whole number without quotes", "int64": "a whole number without quotes",
		"float64": "a number without quotes", "bool": "true or false without quotes", "string": "text in quotes",
		"[]string": `a list such as ["a", "b"]`}[found[2]]
	if strings.HasPrefix(found[2], "map[") {
		wanted = "a table"
	}
	if wanted == "" {
		return errors.New(text)
	}
	return fmt.Errorf("must be %s, not a TOML %s", wanted, found[1])
}

// removedSettings are those of earlier versions, with what replaces them. A file that has one is used all the same.
var removedSettings = map[string]string{
	"profile_listen":  "operator_listen serves profiles too",
	"report_loopback": `webhook_allow = ["127.0.0.0/8", "::1"] lets webhooks go to this machine`,
}

// unknownSetting says what somebody may have meant who wrote a name that is no setting's.
func unknownSetting(e toml.DecodeError, list *Problems) {
	key := slices.Clone(e.Key())
	line, _ := e.Position()
	name := strings.Join(key, ".")
	p := list.add("", "unknown setting %s", name)
	p.Setting, p.From, p.Line = name, FromFile, line
	if instead, was := removedSettings[name]; was {
		p.Severity, p.Message, p.Fix = severityWarning, "the setting "+name+" is gone and has no effect", "remove the line: "+instead
		return
	}
	last, table := key[len(key)-1], strings.Join(key[:len(key)-1], ".")
	inTables := knownNames()
	siblings := inTables[table]
	if len(key) == 3 {
		siblings = inTables[key[0]+".NAME"]
	}
	if len(siblings) == 0 { // the table is what nobody knows
		if tables := Near(key[0], tableNames); len(tables) > 0 {
			meant := slices.MinFunc(tables, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
			p.Fix = fmt.Sprintf("write [%s] for [%s]", strings.Join(append([]string{meant}, key[1:]...), "."), name)
			return
		}
	}
	if similar := Near(last, siblings); len(similar) > 0 && len(similar) <= 3 {
		p.Fix = "write " + strings.Join(similar, " or ") + " for " + last
		return
	}
	for other, names := range inTables {
		if other == table || !slices.Contains(names, last) || strings.HasSuffix(other, ".NAME") {
			continue
		}
		if other == "" {
			p.Fix = fmt.Sprintf("move %s above the first [table]: below one it belongs to that table", last)
			return
		}
		p.Fix = fmt.Sprintf("move %s into [%s]", last, other)
	}
	p.Fix = cmp.Or(p.Fix, "remove the line; `docent config` lists every setting")
}

// tableNames are the tables of the file, those first that are meant more often.
var tableNames = []string{"models", "limits", "checks", "oidc", "embeddings", "model_aliases"}

// knownNames are the names that each table may hold; "" for those above all tables, NAME for tables named by operators.
func knownNames() map[string][]string {
	names := map[string][]string{"": slices.Clone(tableNames)}
	for _, s := range new(Config).Settings() {
		table, last := "", s.Name
		if i := strings.LastIndexByte(s.Name, '.'); i >= 0 {
			table, last = s.Name[:i], s.Name[i+1:]
		}
		names[table] = append(names[table], last)
	}
	for table, of := range tablesByName {
		for i := range of.NumField() {
			if name := of.Field(i).Tag.Get("toml"); name != "" && name != "-" {
				names[table+".NAME"] = append(names[table+".NAME"], name)
			}
		}
	}
	return names
}

// bareDuration is the first duration of a file that is not in quotes, and its line; 0 where there is none.
func bareDuration(text string) (name string, line int) {
	durations := map[string]bool{}
	for _, s := range new(Config).Settings() {
		durations[s.Name] = s.value.Type() == reflect.TypeFor[Duration]()
	}
	for table, of := range tablesByName {
		for i := range of.NumField() {
			f := of.Field(i)
			durations[table+".NAME."+f.Tag.Get("toml")] = f.Type == reflect.TypeFor[Duration]()
		}
	}
	eachValue([]byte(text), func(key []string, at int, value *unstable.Node) {
		full := strings.Join(key, ".")
		is := durations[full]
		if len(key) == 3 {
			is = durations[key[0]+".NAME."+key[2]]
		}
		if line == 0 && is && value != nil && value.Kind != unstable.String {
			name, line = full, at
		}
	})
	return name, line
}

// tablesByName are the tables whose names are the operator's.
var tablesByName = map[string]reflect.Type{"models": reflect.TypeFor[Model](), "checks": reflect.TypeFor[CheckConfig]()}

// settingLines are the lines of the settings and tables of a file, up to the first mistake in its syntax.
func settingLines(text []byte) map[string]int {
	lines := map[string]int{}
	eachValue(text, func(key []string, line int, _ *unstable.Node) { lines[strings.Join(key, ".")] = line })
	return lines
}

// eachValue calls f with each table, whose value is nil, and each value of a file, up to the first mistake in its syntax.
func eachValue(text []byte, f func(key []string, line int, value *unstable.Node)) {
	var table []string
	var p unstable.Parser
	p.Reset(text)
	for p.NextExpression() {
		e := p.Expression()
		var key []string
		line := 0
		for it := e.Key(); it.Next(); {
			key = append(key, string(it.Node().Data))
			line = p.Shape(p.Range(it.Node().Data)).Start.Line
		}
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = key
			f(slices.Clone(table), line, nil)
		case unstable.KeyValue:
			key = append(slices.Clone(table), key...)
			f(slices.Clone(key), line, e.Value())
			if e.Value().Kind != unstable.InlineTable {
				continue
			}
			for it := e.Value().Children(); it.Next(); {
				inner := slices.Clone(key)
				for names := it.Node().Key(); names.Next(); {
					inner = append(inner, string(names.Node().Data))
				}
				f(inner, line, it.Node().Value())
			}
		}
	}
}
