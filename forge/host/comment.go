package host

import (
	"strings"
	"time"
)

// A Comment is what somebody wrote on a pull request of a code host: in its conversation, as the text of a review, or on
// a line of its changes.
type Comment struct {
	ID       string // unique within the pull request, over all kinds of comments: "issue/123", "review/456"
	Author   string // the host's name of the account
	MayWrite bool   // the host says that the author may push to the repository
	Own      bool   // Docent wrote it
	Body     string // Markdown, as it was written
	Path     string // of the file, where it is about one
	Line     int    // of that file; zero where it is about the whole of it
	Old      bool   // the line is one of the file before the change
	Quote    string // the line, where the host tells it
	Thread   string // what replies to it go under; empty in the conversation
	Link     string
	At       time.Time // when it appeared: a review's comments do so together
}

// mark ends what Docent writes on a pull request. The key says in answer to what.
func mark(key string) string { return "<!-- docent:" + key + " -->" }

// marked says whether a comment's text ends with a mark of Docent's. One that quotes such a comment does not.
func marked(body string) (key string, ok bool) {
	line := strings.TrimRight(body, " \t\r\n")
	if i := strings.LastIndexByte(line, '\n'); i >= 0 {
		line = line[i+1:]
	}
	key, ok = strings.CutPrefix(strings.TrimSpace(line), "<!-- docent:")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(key, " -->")
}
