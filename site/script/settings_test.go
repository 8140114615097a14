package script

import (
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
)

// Whatever form a configuration is written in, what it leaves out is read, or is said to be computed.
func TestExclusionsAreReadInEveryFormThatProgramsHave(t *testing.T) {
	files := map[string]string{
		"shared.mts":     "export const shared = {out: ['a'], url: 'u'}\nexport default {out: ['d']}\nexport const list = ['b']",
		"base.json":      `{"out": ["j"], "deep": {"out": ["k"]}}`,
		"lib/index.ts":   "const inner = ['i']\nexport { inner as listed }\nexport * from '../shared.mjs'",
		"common.cjs":     "module.exports = {out: ['c']}",
		"loop.ts":        "import x from './loop2'\nexport default x",
		"loop2.ts":       "import x from './loop'\nexport default x",
		"unknown.ts":     "export const shared = make()",
		"named.cjs":      "exports.other = 1\nmodule.exports.list = ['n']",
		"typed.ts":       "import type { X } from 'x'\nexport const shared: X<string, 'a'> = { out: ['t'] } satisfies X\n",
		"parenthesis.js": "/** @type {import('x').Config} */\nconst config = ({out: (['p'])})\nexport default config",
	}
	read := func(file string) ([]byte, error) {
		if src, ok := files[file]; ok {
			return []byte(src), nil
		}
		return nil, errors.New("not there")
	}
	list := func(of ...any) []any { return of }
	unknown := any(Computed{})
	for src, want := range map[string]any{
		"export default ({out: ['a']})":                                                      list("a"),
		"export default /** @type {X} */ (({out: (['a']),}))":                                list("a"),
		"export default {out: ['a'] as const} satisfies Config":                              list("a"),
		"export default {out: (['a'] as string[]).concat(['b'], 'c')} as Config":             list("a", "b", "c"),
		"export default <Config>{out: ['a']}":                                                unknown,
		"export default defineConfig({out: ['a']})":                                          list("a"),
		"export default defineConfig<T, 'x'>({out: ['a']})":                                  list("a"),
		"export default withMermaid(withPwa(defineConfig({out: ['a']})))":                    list("a"),
		"export default withSidebar({out: ['a']}, {dir: 'x'})":                               list("a"),
		"export default extend(base, {out: ['a']})":                                          list("a"),
		"export default create(process.env, {out: ['a']})":                                   unknown,
		"export default mergeConfig({out: ['a'], url: 1}, {out: ['b']})":                     list("a", "b"),
		"export default mergeConfig({out: ['a'], url: 1}, await load())":                     unknown,
		"export default async () => ({out: ['a']})":                                          list("a"),
		"export default defineConfig(async () => { return {title: 'A', out: ['a']} })":       list("a"),
		"export default defineConfig(({mode}: {mode: string}): X => ({url: 1, out: ['a']}))": list("a"),
		"module.exports = async function createConfig() { return {out: ['a']}; };":           list("a"),
		"module.exports = function (): X { if (y) { return {out: ['a']} }\nreturn {out: ['b']} }": Either{
			list("a"), list("b")},
		"async function make() { const x = {webpack() { return {out: ['no']} }}; return {out: ['a']} }\nexport default make": list("a"),
		"async function make() { return {out: ['a']} }\nmodule.exports = make()":                                             list("a"),
		"const c: Config = {url: '', out: ['a']}\n\nexport default c":                                                        list("a"),
		"const out = ['a']\nconst c = {out}\nexport default defineConfig(c)":                                                 list("a"),
		"const c = {out: ['a']}\nexport { c as default }":                                                                    list("a"),
		"// export default {out: []}\n/* out: */ export default {out: [/* 'x' */ 'a']}":                                      list("a"),
		"const a = ['a'], b = 1\nexport default {out: [...a, 'b',]}":                                                         list("a", "b"),
		"export default {out: x ? ['a'] : ['b']}":                                                                            Either{list("a"), list("b")},
		"export default {out: [...(x ? ['a'] : []), x && 'b']}":                                                              list("a", Either{false, "b"}),
		"export default {url: 1, ...(x && {out: ['a']})}":                                                                    Either{nil, list("a")},
		"export default {out: true ? ['a'] : f()}":                                                                           list("a"),
		"export default {out: process.env.X ?? ['a']}":                                                                       unknown,
		"export default {out: f(['a'])}":                                                                                     unknown,
		"export default {out: ['a', f()]}":                                                                                   list("a", unknown),
		"export default {out: ['a'].map(x => x)}":                                                                            unknown,
		"export default {out: [`a${'b'}c`, `${x}`, 'a' + 'b']}":                                                              list("abc", unknown, "ab"),
		"export default {out: ['a', /b['\"]/, 'c']}":                                                                         list("a", unknown, "c"),
		"export default {out: [require.resolve('a')]}":                                                                       list("a"),
		"const out = ['a']\nif (x) out.push('b')\nexport default {out}":                                                      list("a", unknown),
		"const c = {out: ['a'], url: 1}\nc.out.push('b')\nexport default c":                                                  list("a", unknown),
		"const c = {out: ['a'], url: 1}\nc.out = other\nexport default c":                                                    unknown,
		"let out = ['a']\nout = f()\nexport default {out}":                                                                   unknown,
		"module.exports = {url: 1, out: ['a']}\nmodule.exports.out.push(x)":                                                  list("a", unknown),
		"import {shared} from './shared'\nexport default {...shared, url: 'v'}":                                              list("a"),
		"import {shared} from './shared'\nexport default {out: ['x'], ...shared}":                                            list("a"),
		"import {shared as s} from './shared.mts'\nexport default {...s, out: ['x']}":                                        list("x"),
		"import s, {list} from './shared.mjs'\nexport default {...s, out: [...s.out, ...list]}":                              list("d", "b"),
		"import * as all from './shared'\nexport default {...all}":                                                           list("d"),
		"import base from './base.json' with {type: 'json'}\nexport default {...base}":                                       list("j"),
		"import base from './base.json'\nexport default {out: base.deep.out}":                                                list("k"),
		"import {listed} from './lib'\nexport default {out: listed}":                                                         list("i"),
		"import {shared} from './lib'\nexport default {...shared}":                                                           list("a"),
		"const c = require('./common')\nmodule.exports = {...c}":                                                             list("c"),
		"const {out} = require('./common.cjs')\nmodule.exports = {out}":                                                      list("c"),
		"module.exports = {...require('./common')}":                                                                          list("c"),
		"import {shared} from './typed'\nexport default shared":                                                              list("t"),
		"import c from './parenthesis'\nexport default c":                                                                    list("p"),
		"import x from './loop'\nexport default {url: 1, out: x}":                                                            unknown,
		"import {shared} from './unknown'\nexport default {url: 1, ...shared}":                                               unknown,
		"import {shared} from 'package'\nexport default {out: ['a'], ...shared}":                                             unknown,
		"import {shared} from 'package'\nexport default {...shared, out: ['a']}":                                             list("a"),
		"import {shared} from './missing'\nexport default {url: 1, ...shared}":                                               unknown,
		"export default {url: 1, [key]: ['a']}":                                                                              unknown,
		"export default {url: 1, get out() { return ['a'] }}":                                                                unknown,
		"export default {url: 1, async transformHead() { return 1 }}":                                                        nil,
		"export default {url: 1}":                                                                                            nil,
		"export default {url: 1, out: undefined}":                                                                            nil,
		"const x = {url: 1, out: ['a']}\nexport default load()":                                                              unknown,
		"import {mergeConfig} from 'x'\nexport default mergeConfig(f(), {url: 1})":                                           unknown,
		"const docs = {url: 1}\nObject.assign(docs, other)\nexport default docs":                                             unknown,
		"export default Object.assign({}, {out: ['a']}, {url: 1})":                                                           list("a"),
	} {
		m := Settings("config.ts", src, read, "url", "out", "title")
		got := m["out"]
		if !Known(m, "out") || m == nil {
			got = Computed{}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot  %#v of %#v\nwant %#v", src, got, m, want)
		}
	}
}

// What a configuration makes of its names by putting them into each other stays within what was read: the work is
// counted, and ends.
func TestAConfigurationThatDoublesItselfIsReadWithinItsBound(t *testing.T) {
	for name, double := range map[string]string{
		"lists": "const b@ = [...b#, ...b#]\n", "texts": "const b@ = b# + b#\n", "objects": "const b@ = {a: b#, b: b#}\n",
		"either": "const b@ = x ? {a: b#} : {b: b#}\n", "templates": "const b@ = `${b#}${b#}`\n",
		"merged": "const b@ = merge({a: b#}, {a: b#, c: b#})\n",
	} {
		var b strings.Builder
		first := map[string]string{"texts": "'xxxxxxxxxx'", "templates": "'xxxxxxxxxx'"}[name]
		if first == "" {
			first = "['x', 'y']"
		}
		b.WriteString("const b0 = " + first + "\n")
		for n := 1; n < 60; n++ {
			b.WriteString(strings.NewReplacer("@", itoa(n), "#", itoa(n-1)).Replace(double))
		}
		p := &program{keys: []string{"a"}, modules: map[string]*module{}, left: maxSteps}
		m := p.open("a.ts", b.String()+"export default {a: b59}")
		v, _ := m.exported("default")
		read := maxSteps - p.left
		doc := p.clean(v)
		if read > 3*maxSteps || size(doc) > 3*maxSteps {
			t.Errorf("%s: %d steps make a value of %d", name, read, size(doc))
		}
	}
}

func size(v any) int {
	n := 1
	switch v := v.(type) {
	case string:
		n += len(v)
	case []any:
		for _, x := range v {
			n += size(x)
		}
	case Either:
		for _, x := range v {
			n += size(x)
		}
	case map[string]any:
		for x := range maps.Values(v) {
			n += size(x)
		}
	}
	return n
}
