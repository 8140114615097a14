package chatapp

import (
	"context"
	"testing"
	"time"

	"docent/api"
)

// Anybody may ask in a public chat, as often as they like: what that takes, others' chats do not miss.
func TestAProjectsChatTakesNoPlaceOfAnothers(t *testing.T) {
	app := New(api.ChannelDiscord, []byte("secret"), time.Now)
	over := make(chan struct{})
	wait := func(context.Context) { <-over }
	taken := 0
	for app.Go("loud", wait) {
		if taken++; taken > 1000 {
			t.Fatal("there is no bound")
		}
	}
	ran := make(chan struct{})
	if !app.Go("quiet", func(context.Context) { close(ran) }) {
		t.Fatalf("after %d questions of another project's chat nobody else is answered", taken)
	}
	<-ran
	close(over)
	if err := app.Close(); err != nil {
		t.Fatal(err)
	}
	again := make(chan struct{})
	if !app.Go("loud", func(context.Context) { close(again) }) {
		t.Error("places are not given back")
	}
	<-again
	if err := app.Close(); err != nil || len(app.busy) > 0 {
		t.Errorf("%v, %v", err, app.busy)
	}
}
