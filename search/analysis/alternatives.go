package analysis

import (
	"cmp"
	"strings"
)

// Languages is the kind of alternatives that are programming languages.
const Languages = 1

// alternatives are kinds of words of which a question is about one.
var alternatives = []map[string]bool{
	setOf("windows macos mac osx linux ubuntu debian fedora android ios docker kubernetes freebsd"),
	setOf(`c# python go golang javascript js typescript ts java rust ruby php kotlin swift csharp bash shell powershell curl
		perl scala elixir dart`),
	setOf("yaml yml json toml xml ini hcl"),
	setOf("npm yarn pnpm bun deno pip uv poetry conda cargo brew homebrew apt dnf choco scoop winget"),
	setOf("react vue svelte angular solid preact lit nextjs nuxt astro remix"),
	setOf("github gitlab bitbucket gitea netlify vercel cloudflare aws azure gcp heroku render"),
	setOf("chrome firefox safari edge"),
	setOf("mysql postgres postgresql sqlite mariadb mongodb redis"),
}

// spellings are how names are shown and compared that are written in several ways.
var spellings = func() map[string]string {
	m := map[string]string{}
	for _, line := range strings.Split(`JavaScript js javascript jsx mjs cjs node nodejs node.js
		TypeScript ts typescript tsx
		Python py python python3
		Go go golang
		Ruby rb ruby
		Rust rs rust
		Kotlin kt kotlin
		C# cs csharp c# .net dotnet
		Java java
		PHP php
		Swift swift
		YAML yaml yml
		JSON json jsonc json5
		TOML toml
		macOS mac macos osx
		Windows windows win
		Linux linux
		PowerShell powershell ps1 pwsh
		PostgreSQL postgres postgresql
		cURL curl`, "\n") {
		names := strings.Fields(line)
		for _, n := range names[1:] {
			m[n] = names[0]
		}
	}
	return m
}()

// Alternative is the kind of alternatives that a word is one of, and how it is spelled; empty if it is none.
func Alternative(w string) (kind int, name string) {
	lower := strings.ToLower(w)
	name = spellings[lower]
	for k, all := range alternatives {
		if all[lower] || name != "" && all[strings.ToLower(name)] {
			return k, cmp.Or(name, lower)
		}
	}
	return 0, ""
}
