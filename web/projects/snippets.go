package projects

import (
	"strings"

	"docent/api"
	"docent/docs"
	"docent/web/console"
)

// curlSnippet asks a question from a shell.
func curlSnippet(server, domain, key string) string {
	return "curl -N " + console.ShellWord(server+"/discovery/v2/assistant/"+domain+"/message") + " \\\n" +
		"  -H " + console.ShellWord("Authorization: Bearer "+key) + " -H 'Content-Type: application/json' \\\n" +
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
	words := []string{"docent project add", console.ShellWord(string(p.ID)), "--domain", console.ShellWord(domain)}
	flag := func(name, value string) {
		if value != "" {
			words = append(words, "--"+name, console.ShellWord(value))
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
