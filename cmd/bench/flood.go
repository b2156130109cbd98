package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-gateway/penstock/test/load"
	"github.com/penstock-gateway/penstock/test/stack"
)

// What flood sends, and what it asks for.
const (
	floodTokens  = 1_000_000 // of a prompt
	floodPrompts = 6         // different ones, and each request begins with a number of its own
	liveEvery    = 25 * time.Millisecond
	chatRate     = 10 // small requests per second
	mostLive     = 20 * time.Millisecond
)

// latency is what a client beside the flood saw. Times count from when a request was
// due, so that waiting for the answer before is not left out.
type latency struct {
	requests      int64
	p50, p99, max time.Duration
	faults        map[string]int64
}

// floodSample is one run, or what several gave.
type floodSample struct {
	connections     int // of the flood; 0: without one, for comparison
	perSecond       float64
	tokens          float64 // prompt tokens per second, of answered requests
	requests        int64
	refused         int64 // with 503, which a client is to try again
	faults          map[string]int64
	liveness, chats latency
	late            time.Duration // how late the liveness client itself was, at p99
}

// flooder has what the clients send.
type flooder struct {
	address string
	prompts []*load.Request
	chats   []*load.Request
}

// flood measures without the flood and with it, in turn.
func (o *runOptions) flood(ctx context.Context, b *bench, out io.Writer) ([]floodSample, error) {
	s, key, err := b.stack(ctx, stack.Config{Workers: o.workers, GatewayCPUs: o.gatewayCPUs})
	if err != nil {
		return nil, err
	}
	f := &flooder{address: s.Address(), chats: smallChats(key)}
	if f.prompts, err = floodOf(key, floodTokens); err != nil {
		return nil, err
	}
	// Enough that no client waits for its turn among goroutines: on a busy core the
	// kernel is fairer.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	length := time.Duration(o.seconds * float64(time.Second))
	connections := []int{0, o.connections(scenarioFlood)}
	if _, err := f.measure(ctx, min(length, time.Second), connections[1]); err != nil { // a warm-up
		return nil, err
	}
	runs := make([][]floodSample, len(connections))
	for n := range o.runs {
		for i, c := range connections {
			m, err := f.measure(ctx, length, c)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(out, "run %d, %s: liveness p99 %s, max %s\n", n+1, m.name(), milliseconds(m.liveness.p99), milliseconds(m.liveness.max))
			runs[i] = append(runs[i], m)
		}
	}
	return []floodSample{joinFloods(runs[0]), joinFloods(runs[1])}, nil
}

// floodOf are requests of so many tokens each for the in-process mock.
func floodOf(key string, size int) ([]*load.Request, error) {
	perWord, err := tokensPerWord()
	if err != nil {
		return nil, err
	}
	var all []*load.Request
	for i := range floodPrompts {
		all = append(all, load.Chat(load.ChatOptions{
			Key: key, Model: "mock", Prompt: prompt(int64(i), int(float64(size)/perWord)), MaxTokens: 16, Serial: true,
		}))
	}
	return all, nil
}

// smallChats are short requests for the in-process mock.
func smallChats(key string) []*load.Request {
	var all []*load.Request
	for i := range 8 {
		all = append(all, load.Chat(load.ChatOptions{Key: key, Model: "mock", Prompt: prompt(int64(i), 80), MaxTokens: 16, Serial: true}))
	}
	return all
}

// measure runs the two clients for a time, and the flood if it has connections.
func (f *flooder) measure(ctx context.Context, d time.Duration, connections int) (floodSample, error) {
	s := floodSample{connections: connections}
	const room = 1 << 32 // more than any run sends
	serial := serials.Add(2 * room)
	var wait sync.WaitGroup
	if connections > 0 {
		wait.Go(func() { s.flood(ctx, f, d, serial) })
	}
	wait.Go(func() {
		s.chats = latencyOf(load.Run(ctx, load.Config{Address: f.address, Requests: f.chats, Rate: chatRate, Duration: d, FirstSerial: serial + room}))
	})
	wait.Go(func() { s.liveness, s.late = probeLiveness(ctx, f.address, d, liveEvery) })
	wait.Wait()
	return s, ctx.Err()
}

func (s *floodSample) flood(ctx context.Context, f *flooder, d time.Duration, serial int64) {
	var promptTokens atomic.Int64
	result := load.Run(ctx, load.Config{
		Address: f.address, Requests: f.prompts, Concurrency: s.connections, Duration: d, FirstSerial: serial,
		Done: func(_ int64, a *load.Answer, err error) {
			if err == nil && a.Status == 200 {
				promptTokens.Add(promptTokensOf(a.Body))
			}
		},
	})
	s.perSecond, s.tokens = result.PerSecond(), float64(promptTokens.Load())/result.Elapsed.Seconds()
	s.requests, s.refused, s.faults = result.Requests, result.Statuses[503], result.Faults
}

func latencyOf(r *load.Result) latency {
	return latency{requests: r.Requests, p50: r.Percentile(50), p99: r.Percentile(99), max: r.Percentile(100), faults: r.Faults}
}

func (s *floodSample) name() string {
	if s.connections == 0 {
		return "no flood"
	}
	return fmt.Sprintf("flood, %d connections", s.connections)
}

// joinFloods takes each number's own median, the largest maximum, and the sum of what
// was counted.
func joinFloods(runs []floodSample) floodSample {
	all := floodSample{
		connections: runs[0].connections,
		perSecond:   middle(runs, func(s floodSample) float64 { return s.perSecond }),
		tokens:      middle(runs, func(s floodSample) float64 { return s.tokens }),
		late:        middle(runs, func(s floodSample) time.Duration { return s.late }),
		liveness:    joinLatencies(runs, func(s floodSample) latency { return s.liveness }),
		chats:       joinLatencies(runs, func(s floodSample) latency { return s.chats }),
		faults:      map[string]int64{},
	}
	for _, s := range runs {
		all.requests += s.requests
		all.refused += s.refused
		for what, n := range s.faults {
			all.faults[what] += n
		}
	}
	return all
}

func joinLatencies(runs []floodSample, field func(floodSample) latency) latency {
	all := latency{
		p50:    middle(runs, func(s floodSample) time.Duration { return field(s).p50 }),
		p99:    middle(runs, func(s floodSample) time.Duration { return field(s).p99 }),
		faults: map[string]int64{},
	}
	for _, s := range runs {
		l := field(s)
		all.requests += l.requests
		all.max = max(all.max, l.max)
		for what, n := range l.faults {
			all.faults[what] += n
		}
	}
	return all
}

// floodDefect says why the measurement is not good enough; empty: it is.
func floodDefect(all []floodSample) string {
	var why []string
	for _, s := range all {
		for _, l := range []struct {
			what string
			latency
		}{{"liveness", s.liveness}, {"small chat", s.chats}} {
			if len(l.faults) > 0 || l.requests == 0 {
				why = append(why, fmt.Sprintf("%s, %s: not every answer was good: %v", s.name(), l.what, l.faults))
			}
		}
		if s.connections == 0 {
			continue
		}
		if s.perSecond == 0 {
			why = append(why, fmt.Sprintf("%s: no prompt was answered", s.name()))
		}
		if others := unexpected(s.faults); len(others) > 0 {
			why = append(why, fmt.Sprintf("%s: %s", s.name(), strings.Join(others, ", ")))
		}
		if s.liveness.p99 > mostLive {
			why = append(why, fmt.Sprintf("%s: liveness p99 %s, want at most %s", s.name(), milliseconds(s.liveness.p99), milliseconds(mostLive)))
		}
	}
	return strings.Join(why, "; ")
}

// unexpected are the faults of the flood that are not refusals.
func unexpected(faults map[string]int64) []string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(faults)) {
		if !strings.HasPrefix(what, "status 503") {
			all = append(all, what)
		}
	}
	return all
}

// floodTable is Markdown: the command, the machine, a line without the flood and one
// with it, and the verdict.
func (o *runOptions) floodTable(all []floodSample) string {
	var b strings.Builder
	fmt.Fprintf(&b, "`%s`, %s\n\n", o.commandLine(), machine())
	b.WriteString("| | prompts/s | prompt tokens/s | refused | liveness p50 | p99 | max | small chat p50 | p99 | max | client late, p99 |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, s := range all {
		fmt.Fprintf(&b, "| %s | %s | %s | %d of %d |", s.name(), number(s.perSecond), number(s.tokens), s.refused, s.requests)
		for _, d := range []time.Duration{s.liveness.p50, s.liveness.p99, s.liveness.max, s.chats.p50, s.chats.p99, s.chats.max, s.late} {
			fmt.Fprintf(&b, " %s |", milliseconds(d))
		}
		b.WriteString("\n")
	}
	verdict := "pass"
	if why := floodDefect(all); why != "" {
		verdict = "**FAIL**: " + why
	}
	fmt.Fprintf(&b, "\nLiveness under flood, p99 ≤ %s: %s.\n", milliseconds(mostLive), verdict)
	return b.String()
}
