// Command openai-go has OpenAI's own package for Go ask a real server. It prints what is wrong, a line each.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func main() {
	url, key, domain := os.Args[1], os.Args[2], os.Args[3]
	ctx := context.Background()
	expect := func(what string, ok bool, got any) {
		if !ok {
			fmt.Printf("%s: %+v\n", what, got)
		}
	}
	client := openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey(key), option.WithMaxRetries(0))
	models, err := client.Models.List(ctx)
	expect("models", err == nil && len(models.Data) == 1 && models.Data[0].ID == domain, err)

	params := openai.ChatCompletionNewParams{Model: domain, Messages: []openai.ChatCompletionMessageParamUnion{
		openai.SystemMessage("Speak of rockets."), openai.UserMessage("When does the ferry leave?")}}
	whole, err := client.Chat.Completions.New(ctx, params)
	if err != nil {
		fmt.Println("an answer:", err)
		return
	}
	said := whole.Choices[0].Message
	expect("an answer", strings.Contains(said.Content, "every hour") && whole.Choices[0].FinishReason == "stop", said)
	expect("its sources", len(said.Annotations) > 0 && strings.HasPrefix(said.Annotations[0].URLCitation.URL, "https://harbour.example.com/ferries"), said)

	params.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := client.Chat.Completions.NewStreaming(ctx, params)
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		expect("a chunk", all.AddChunk(stream.Current()), stream.Current())
	}
	expect("a stream", stream.Err() == nil && len(all.Choices) == 1 && all.Choices[0].Message.Content == said.Content, stream.Err())

	params.Model = "gpt-4o"
	_, err = client.Chat.Completions.New(ctx, params)
	var refused *openai.Error
	expect("an unknown model", errors.As(err, &refused) && refused.StatusCode == 404, err)
}
