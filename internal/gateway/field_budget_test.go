package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/money"
)

// paid answers B1 with the usage that was held: 9 and 91.
func paid(gate <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		select {
		case <-gate:
		case <-r.Context().Done():
			return
		}
		const usage = `{"prompt_tokens":9,"completion_tokens":91,"total_tokens":100}`
		if strings.Contains(string(body), `"stream":true`) {
			script([]string{roleEvent, delta("Hello"), stopEvent, strings.Replace(usageEvent, `{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}`, usage, 1), doneEvent}, false)(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c","choices":[],"usage":%s}`, usage)
	}
}

const b1 = `{"model":"m-o","messages":[{"role":"user","content":"Hello!"}],"max_tokens":91}`

// TestBudgetForHalf: 200 requests at once against a budget for 100 of them are served
// exactly 100 times, whole and streamed, also by two workers (F33).
func TestBudgetForHalf(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d workers", workers), func(t *testing.T) {
			t.Parallel()
			gate := make(chan struct{})
			hits := &counter{}
			handler := paid(gate)
			c := build(t, plan{workers: workers, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				hits.add()
				handler(w, r)
			})})
			key := c.newKey("1", nil)
			const requests = 200
			status := make([]answer, requests)
			var wait sync.WaitGroup
			for i := range requests {
				wait.Go(func() {
					s := *c.stack
					s.address = c.workers[i%workers]
					body := b1
					if i%4 >= 2 {
						body = strings.Replace(b1, "{", `{"stream":true,`, 1)
					}
					status[i] = s.chat(key, body)
				})
			}
			time.AfterFunc(500*time.Millisecond, func() { close(gate) })
			wait.Wait()
			counts := map[string]int{}
			for _, a := range status {
				counts[fmt.Sprint(a.status, a.code())]++
			}
			served := counts["200"]
			if served+counts["429budget_exceeded"]+counts["429budget_held"] != requests || served > 100 || workers == 1 && served != 100 {
				t.Errorf("answers %v", counts)
			}
			// Whatever was only held by then is there afterwards, at any worker.
			for i := 0; served < 100; i++ {
				s := *c.stack
				s.address = c.workers[i%workers]
				switch a := s.chat(key, b1); a.status {
				case 200:
					served++
				case 429:
				default:
					t.Fatalf("got %d %s", a.status, a.body)
				}
				if i > 5000 {
					t.Fatalf("only %d of 100 were ever served, %v at once", served, counts)
				}
				time.Sleep(time.Millisecond)
			}
			spent := int64(0)
			for _, rec := range c.records(key, 100) {
				spent += rec.Cost
			}
			if spent != 1_000_000_000 {
				t.Errorf("booked %s of 1", money.FormatNano(spent))
			}
			c.eventually(func() bool {
				k, err := c.store.Key(t.Context(), keyID(key))
				check(t, err)
				return k.Spend == spent
			}, "spend of the key")
			for _, address := range c.workers {
				s := *c.stack
				s.address = address
				c.eventually(func() bool { return s.chat(key, b1).code() == "budget_exceeded" }, "the money is gone and nothing is held")
			}
			if n := hits.value(); n != 100 {
				t.Errorf("the provider was called %d times", n)
			}
		})
	}
}

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

func (c *counter) value() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// TestHeldMoneyComesBack after each way in which an upstream can fail: a request that
// needs the whole rest then gets it (F36).
func TestHeldMoneyComesBack(t *testing.T) {
	t.Parallel()
	slow := strings.Replace(models, "general_settings", `- model_name: silent
  litellm_params: {model: openai/gpt-4o-silent, api_base: "%[1]s/v1", api_key: sk-provider, timeout: 0.3, stream_timeout: 0.3, input_cost_per_token: 1e-4, output_cost_per_token: 1e-4}
general_settings`, 1)
	c := build(t, plan{models: slow, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mode := string(body)
		stream := strings.Contains(mode, `"stream":true`)
		switch {
		case strings.Contains(mode, "silent"):
			<-r.Context().Done()
		case strings.Contains(mode, "-500"):
			http.Error(w, "oops", 500)
		case strings.Contains(mode, "-429"):
			http.Error(w, `{"error":{"message":"slow down"}}`, http.StatusTooManyRequests)
		case strings.Contains(mode, "-401"):
			http.Error(w, `{}`, http.StatusUnauthorized)
		case strings.Contains(mode, "-reset"):
			panic(http.ErrAbortHandler)
		case strings.Contains(mode, "-half") && stream:
			script([]string{roleEvent, delta("Hel")}, true)(w, r)
		case strings.Contains(mode, "-half"):
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"id":`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		default: // -broken
			_, _ = io.WriteString(w, `{"id":`)
		}
	})})
	for _, model := range []string{"dead", "silent", "fake-500", "fake-429", "fake-401", "fake-reset", "fake-half", "fake-broken"} {
		for _, stream := range []string{"false", "true"} {
			t.Run(model+" "+stream, func(t *testing.T) {
				t.Parallel()
				s := c.on(t)
				key := s.newKey("1", nil)
				body := strings.Replace(b1, `"m-o"`, `"`+model+`","stream":`+stream, 1)
				var wait sync.WaitGroup
				for range 20 {
					wait.Go(func() { s.rawChat(key, body) })
				}
				wait.Wait()
				spent := int64(0)
				for _, rec := range s.records(key, 20) {
					spent += rec.Cost
				}
				s.whole(key, spent)
			})
		}
	}
}

// TestOutputCapFitsTheBudget: a request without a cap is sent with what the rest affords,
// and the client is told (fit_output_min is its floor).
func TestOutputCapFitsTheBudget(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	free := `{"model":"m-o","messages":[{"role":"user","content":"Hello!"}]}`
	for _, c := range []struct {
		why, budget, body string
		status            int
		limit             string // told to the client
		sent              int    // received by the provider
	}{
		{"all that the model can", "1", free, 200, "1000", 1000},
		{"exactly that", "0.1009", free, 200, "1000", 1000},
		{"a token less", "0.1008", free, 200, "999", 999},
		{"what is left", "0.05", free, 200, "491", 491},
		{"the least", "0.0265", free, 200, "256", 256},
		{"below the least", "0.0264", free, 429, "", 0},
		{"the client's own is never lowered", "0.05", strings.Replace(free, "{", `{"max_tokens":492,`, 1), 429, "", 0},
		{"the client's own is not told", "0.05", strings.Replace(free, "{", `{"max_tokens":491,`, 1), 200, "", 491},
		{"null is none", "0.05", strings.Replace(free, "{", `{"max_tokens":null,`, 1), 200, "491", 491},
		{"two answers", "0.1", strings.Replace(free, "{", `{"n":2,`, 1), 200, "495", 495},
		{"no budget, no cap", "", free, 200, "", 0},
	} {
		for _, stream := range []string{`"stream":false,`, `"stream":true,`} {
			t.Run(c.why+" "+stream, func(t *testing.T) {
				s := s.on(t)
				key := s.newKey(c.budget, nil)
				before := len(s.fake.Ledger())
				a := s.chat(key, strings.Replace(c.body, "{", "{"+stream, 1))
				if a.status != c.status || a.header.Get("x-penstock-output-cap") != c.limit {
					t.Fatalf("got %d, cap %q, want %d %q: %.200s", a.status, a.header.Get("x-penstock-output-cap"), c.status, c.limit, a.body)
				}
				rows := s.fake.Ledger()[before:]
				if c.status != 200 {
					if len(rows) != 0 || a.code() != "budget_exceeded" || a.header.Get("x-should-retry") != "false" {
						t.Errorf("%d calls, code %q", len(rows), a.code())
					}
					return
				}
				if len(rows) != 1 || rows[0].MaxTokens != c.sent {
					t.Errorf("the provider received %+v, want a cap of %d", rows, c.sent)
				}
				if rec := s.records(key, 1)[0]; c.limit != "" && fmt.Sprint(rec.OutputCap) != c.limit {
					t.Errorf("record %+v", rec)
				}
			})
		}
	}
}
