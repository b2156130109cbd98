package fakeupstream

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkChat is this program's own share of a request; it must stay far below a
// gateway's, or benchmarks measure the wrong thing.
func BenchmarkChat(b *testing.B) {
	for name, body := range map[string]string{
		"short":    `{"model":"fake-gpt","messages":[{"role":"user","content":"one two three"}]}`,
		"streamed": `{"model":"fake-gpt","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"one two three"}]}`,
	} {
		b.Run(name, func(b *testing.B) {
			s := New(Config{})
			b.ReportAllocs()
			for b.Loop() {
				s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body)))
			}
		})
	}
}
