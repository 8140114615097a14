package formats

// A syntax is what tells brackets from text in a format.
type syntax struct {
	name          string
	slashComments bool // // to the line's end, and /* */
	hashComments  bool // # to the line's end
	literals      bool // '…' without escapes, and strings of three quotes, which hold line ends
	dottedKeys    bool // each dot between the parts of a key is a level
}

var (
	jsonSyntax = syntax{name: "JSON", slashComments: true}
	tomlSyntax = syntax{name: "TOML", hashComments: true, literals: true, dottedKeys: true}
)

// checkDepth refuses what nests deeper than MaxDepth.
func checkDepth(s syntax, src []byte) error {
	if depth(s, src, MaxDepth) > MaxDepth {
		return &DepthError{Format: s.name}
	}
	return nil
}

// depth is how deep src nests; it stops counting past limit. Of src that the format's parser refuses, it is at least
// the depth that the parser reaches before it does. It takes one step a byte, and is one table: what each byte does.
func depth(s syntax, src []byte, limit int) int {
	open, dots, deepest := 0, 0, 0
	for i := 0; i < len(src) && deepest <= limit; i++ {
		switch c := src[i]; {
		case c == '"' || c == '\'' && s.literals:
			i = stringEnd(s, src, i)
		case c == '#' && s.hashComments, c == '/' && s.slashComments && next(src, i) == '/':
			for i+1 < len(src) && src[i+1] != '\n' {
				i++
			}
		case c == '/' && s.slashComments && next(src, i) == '*':
			for i += 2; i < len(src) && (src[i] != '*' || next(src, i) != '/'); i++ {
			}
			i++
		case c == '[' || c == '{':
			open++
			dots = 0
		case c == ']' || c == '}':
			open = max(0, open-1)
			dots = 0
		case c == '.' && s.dottedKeys:
			dots++
		case c == '\n' || c == ',' || c == '=':
			dots = 0
		}
		deepest = max(deepest, open+dots)
	}
	return deepest
}

func next(src []byte, i int) byte {
	if i+1 < len(src) {
		return src[i+1]
	}
	return 0
}

// stringEnd is the position of the quote that ends the string at i; that of the last byte if none does. A string on
// one line that is not closed there ends with the line: the parsers stop at it.
func stringEnd(s syntax, src []byte, i int) int {
	quote := src[i]
	multiline := s.literals && i+2 < len(src) && src[i+1] == quote && src[i+2] == quote
	if multiline {
		i += 2
	}
	for i++; i < len(src); i++ {
		switch c := src[i]; {
		case c == '\\' && quote == '"':
			i++
		case c == '\n' && !multiline:
			return i
		case c == quote && !multiline:
			return i
		case c == quote && next(src, i) == quote && i+2 < len(src) && src[i+2] == quote:
			return i + 2
		}
	}
	return len(src)
}
