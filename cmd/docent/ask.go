package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"docent/actors/thread"
	"docent/search"
	"docent/stream"
)

// An answer is what came of one question.
type answer struct {
	ThreadID  string         `json:"threadId"`
	ThreadKey string         `json:"threadKey,omitempty"`
	MessageID string         `json:"messageId"`
	Text      string         `json:"text"`
	Sources   []answerSource `json:"sources"`
	// Questions that the documentation answers too, where the project offers them.
	Suggestions []thread.Suggestion `json:"suggestions,omitempty"`
}

type answerSource struct {
	Title string `json:"title,omitempty"`
	URL   string `json:"url"`
}

func newAskCommand() *cobra.Command {
	c := new(client)
	var q question
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ask QUESTION", Short: "Ask the assistant and print the answer as it is written", Args: cobra.ExactArgs(1),
		Example: `  docent ask --domain docs.example.com --key $KEY "How do I rotate a key?"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := required(cmd, "domain", "key"); err != nil {
				return err
			}
			q.text = args[0]
			out := cmd.OutOrStdout()
			text := out
			if asJSON {
				text = io.Discard
			}
			a, err := c.ask(cmd, q, text)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(out, a)
			}
			fmt.Fprintln(out)
			printSources(out, a)
			return nil
		},
	}
	clientFlags(cmd, c)
	flags := cmd.Flags()
	flags.StringVar(&q.domain, "domain", envOr("DOMAIN", ""), "domain of the project (DOCENT_DOMAIN)")
	flags.StringVar(&q.thread, "thread", "", "continue this thread")
	flags.StringVar(&q.key, "thread-key", "", "the thread's secret, where the project asks for it")
	flags.StringVar(&q.caller, "fp", "anonymous", "who asks: anonymous or a user id")
	flags.StringVar(&q.version, "version", "", "answer from this version of the documentation only")
	flags.StringVar(&q.language, "language", "", "answer from pages in this language only, such as fr")
	flags.StringVar(&q.page, "current-path", "", "the page that the reader is on; its version and language are answered from")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object when the answer is complete")
	return cmd
}

func printSources(w io.Writer, a answer) {
	if len(a.Sources) > 0 {
		fmt.Fprintln(w, "\nSources:")
		for _, s := range a.Sources {
			fmt.Fprintf(w, "  %s  %s\n", s.Title, s.URL)
		}
	}
	if len(a.Suggestions) > 0 {
		fmt.Fprintln(w, "\nYou can also ask:")
		for _, s := range a.Suggestions {
			fmt.Fprintf(w, "  %s\n", s.Text)
		}
	}
	fmt.Fprintf(w, "\nThread: %s\n", a.ThreadID)
}

type question struct{ domain, thread, key, caller, text, version, language, page string }

// ask puts a question over version 2 of the API and writes the answer's text to w as it comes.
func (c *client) ask(cmd *cobra.Command, q question, w io.Writer) (answer, error) {
	body := map[string]any{
		"fp": q.caller,
		"messages": []map[string]any{{
			"role": "user", "parts": []map[string]any{{"type": "text", "text": q.text}},
		}},
	}
	if q.thread != "" {
		body["threadId"] = q.thread
	}
	if q.key != "" {
		body["threadKey"] = q.key
	}
	if q.version != "" || q.language != "" {
		body["filter"] = search.Filter{Version: q.version, Language: q.language}
	}
	if q.page != "" {
		body["currentPath"] = q.page
	}
	resp, err := c.do(cmd.Context(), http.MethodPost, "/discovery/v2/assistant/"+url.PathEscape(q.domain)+"/message", body)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	a := answer{Sources: []answerSource{}}
	var whole string // with the block of suggestions, which is for programs
	shown := 0
	show := func(upTo int) error {
		_, err := io.WriteString(w, whole[shown:upTo])
		shown = upTo
		return err
	}
	decoder := stream.NewDecoder(stream.UIMessages, resp.Body)
	for {
		part, err := decoder.Next()
		if errors.Is(err, io.EOF) {
			return a, errors.New("the stream ended before the answer was complete; the thread has it: ask again with --thread " + a.ThreadID)
		}
		if err != nil {
			return a, fmt.Errorf("read the answer: %w", err)
		}
		switch part.Kind {
		case stream.Start:
			a.ThreadID, a.ThreadKey, a.MessageID = part.Thread, part.Key, part.Message
		case stream.Text:
			whole += part.Text
			if err := show(max(shown, thread.SuggestionsBegin(whole))); err != nil {
				return a, err
			}
		case stream.Source:
			a.Sources = append(a.Sources, answerSource{Title: part.Title, URL: part.URL})
		case stream.Error:
			return a, errors.New(part.Text)
		case stream.Finish:
			a.Text, a.Suggestions = thread.Suggested(whole)
			return a, show(max(shown, len(a.Text)))
		}
	}
}
