package conformance

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
)

// answers are what a provider sends: NAME.json without a stream, NAME.sse with one.
//
//go:embed answers
var answers embed.FS

// piece is how many bytes of a stream are written at a time: few enough to split
// events, JSON escapes and UTF-8 characters.
const piece = 7

// player is a provider that plays the answer its model names ("played-NAME") and
// keeps what it received.
type player struct {
	listener net.Listener
	server   *http.Server
	done     chan error

	mu       sync.Mutex
	received map[string][]byte // bodies by X-Client-Request-Id
}

func startPlayer() (*player, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot serve the recorded answers: %w", err)
	}
	p := &player{listener: l, done: make(chan error, 1), received: map[string][]byte{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", p.play)
	mux.Handle("GET /answers/", http.FileServerFS(answers))
	mux.HandleFunc("GET /received/{id}", p.show)
	p.server = &http.Server{Handler: mux}
	go func() { p.done <- p.server.Serve(l) }()
	return p, nil
}

func (p *player) url() string { return "http://" + p.listener.Addr().String() }

func (p *player) stop() error {
	err := p.server.Close()
	if served := <-p.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// play answers byte for byte what was recorded.
func (p *player) play(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the gateway left
	}
	var asked struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	p.received[r.Header.Get("X-Client-Request-Id")] = body
	p.mu.Unlock()
	kind, ending := "application/json", ".json"
	if asked.Stream {
		kind, ending = "text/event-stream", ".sse"
	}
	text, err := answers.ReadFile("answers/" + strings.TrimPrefix(asked.Model, "played-") + ending)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", kind)
	send(w, text)
}

func send(w http.ResponseWriter, text []byte) {
	control := http.NewResponseController(w)
	for len(text) > 0 {
		n := min(piece, len(text))
		if _, err := w.Write(text[:n]); err != nil {
			return // the gateway left
		}
		if control.Flush() != nil {
			return
		}
		text = text[n:]
	}
}

// show is the body that came with a request id.
func (p *player) show(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	body, known := p.received[r.PathValue("id")]
	p.mu.Unlock()
	if !known {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(body) // a reader that left needs no answer
}
