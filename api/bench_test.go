package api

import (
	"testing"
	"time"
)

// What each request pays before its key is looked up.
func BenchmarkParseSecret(b *testing.B) {
	secret := NewSecret(AssistantKey)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := ParseSecret(secret); !ok {
			b.Fatal("a new secret is refused")
		}
		HashSecret(secret)
	}
}

func BenchmarkNewID(b *testing.B) {
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		NewID(JobPrefix, now)
	}
}
