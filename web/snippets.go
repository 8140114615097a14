package web

import (
	"regexp"
	"strconv"
	"strings"

	"docent/api"
	"docent/docs"
)

func itoa(n int) string { return strconv.Itoa(n) }

// reached is the address under which programs reach the service. What a request calls its host is no address to repeat.
func (s *Server) reached() string {
	if s.PublicURL == "" {
		return "https://docent.example.com"
	}
	return s.PublicURL
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// shellWord writes a text as one word of a shell's command.
func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// curlSnippet asks a question from a shell.
func curlSnippet(server, domain, key string) string {
	return "curl -N " + shellWord(server+"/discovery/v2/assistant/"+domain+"/message") + " \\\n" +
		"  -H " + shellWord("Authorization: Bearer "+key) + " -H 'Content-Type: application/json' \\\n" +
		`  -d '{"fp":"anonymous","threadId":null,"messages":[{"role":"user","parts":[{"type":"text","text":"How do I get started?"}]}]}'`
}

// chatExample is the first block of code of the documentation's page about useChat, which the examples' tests hold to
// the truth.
var chatExample = func() string {
	text, err := docs.Files.ReadFile("assistant/usechat.mdx")
	if err != nil {
		return ""
	}
	_, code, _ := strings.Cut(string(text), "```tsx\n")
	code, _, _ = strings.Cut(code, "```")
	return code
}()

// chatSnippet is that example with the project's address and key.
func chatSnippet(server, domain, key string) string {
	return strings.NewReplacer("https://docent.example.com", server, "docs.example.com", domain, "${ASSISTANT_KEY}", key).
		Replace(chatExample)
}

// addCommand is the command that adds a project. A token that was entered is given to it in an environment variable.
func addCommand(p api.Project, domain string) string {
	words := []string{"docent project add", shellWord(string(p.ID)), "--domain", shellWord(domain)}
	flag := func(name, value string) {
		if value != "" {
			words = append(words, "--"+name, shellWord(value))
		}
	}
	if p.Host != api.HostBuiltin && p.Host != api.HostGit {
		flag("host", string(p.Host))
		flag("host-url", p.HostURL)
		flag("repository", p.Repository)
	} else {
		flag("source", p.Source)
	}
	if p.TokenFile != "" {
		flag("token-env", "DOCS_TOKEN")
	}
	flag("branch", p.Branch)
	flag("docs-dir", p.DocsDir)
	return strings.Join(words, " ")
}

// webAddress reports whether a text is an address that a link may lead to.
func webAddress(s string) bool {
	return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")
}
