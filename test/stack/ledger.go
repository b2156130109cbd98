package stack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/penstock-gateway/penstock/internal/fakeupstream"
	"github.com/penstock-gateway/penstock/internal/store"
)

// KeyOptions are the fields of /key/generate that a test sets.
type KeyOptions struct {
	Alias    string   `json:"key_alias,omitempty"`
	Budget   float64  `json:"max_budget,omitempty"` // US dollars; zero: none
	Duration string   `json:"budget_duration,omitempty"`
	Models   []string `json:"models,omitempty"`
}

// NewKey makes a virtual key through the gateway's admin API.
func (s *Stack) NewKey(ctx context.Context, o KeyOptions) (string, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	answer, err := s.request(ctx, http.MethodPost, "http://"+s.Address()+"/key/generate", body)
	if err != nil {
		return "", fmt.Errorf("cannot make a key: %w", err)
	}
	var made struct {
		Key string `json:"key"`
	}
	if err := json.Unmarshal(answer, &made); err != nil || made.Key == "" {
		return "", fmt.Errorf("cannot read the new key of %s: %w", answer, err)
	}
	return made.Key, nil
}

// Admin posts to the admin API.
func (s *Stack) Admin(ctx context.Context, path string, fields map[string]any) error {
	body, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	_, err = s.request(ctx, http.MethodPost, "http://"+s.Address()+path, body)
	return err
}

// KeyID is the id of a key in records and budgets.
func KeyID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// Records are all of a key, newest first, straight from PostgreSQL.
func (s *Stack) Records(ctx context.Context, key string) ([]store.Record, error) {
	filter := store.RecordFilter{KeyID: KeyID(key), Limit: 10_000}
	var all []store.Record
	for {
		page, err := s.ledger().Records(ctx, filter)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < filter.Limit {
			return all, nil
		}
		last := page[len(page)-1]
		filter.BeforeStart, filter.BeforeID = last.Start, last.RequestID
	}
}

// AwaitRecords waits until a key has at least n records, and returns all of them.
func (s *Stack) AwaitRecords(ctx context.Context, key string, n int) (all []store.Record, err error) {
	err = poll(ctx, func() error {
		if all, err = s.Records(ctx, key); err != nil {
			return err
		}
		if len(all) < n {
			return fmt.Errorf("there are %d records of %d", len(all), n)
		}
		return nil
	})
	return all, err
}

// Budget is a key's budget row, in nano-dollars.
type Budget struct{ Limit, Spent, Overrun, Leased, Lost int64 }

// Budget reads the current budget of a key.
func (s *Stack) Budget(ctx context.Context, key string) (Budget, error) {
	out, err := s.postgres().Query(ctx, database,
		"SELECT limit_n, spent, overrun, leased, lost FROM budgets WHERE current AND entity = 'key:"+KeyID(key)+"'")
	if err != nil {
		return Budget{}, err
	}
	var b Budget
	if _, err := fmt.Sscanf(strings.ReplaceAll(out, "|", " "), "%d %d %d %d %d", &b.Limit, &b.Spent, &b.Overrun, &b.Leased, &b.Lost); err != nil {
		return b, fmt.Errorf("cannot read the budget %q: %w", out, err)
	}
	return b, nil
}

// AwaitQuiet waits until nothing of a key's budget is leased any more, and returns it.
func (s *Stack) AwaitQuiet(ctx context.Context, key string) (b Budget, err error) {
	err = poll(ctx, func() error {
		if b, err = s.Budget(ctx, key); err != nil {
			return err
		}
		if b.Leased != 0 {
			return fmt.Errorf("%d nano-dollars are still leased", b.Leased)
		}
		return nil
	})
	return b, err
}

// Query runs SQL behind everybody's back.
func (s *Stack) Query(ctx context.Context, sql string) (string, error) {
	return s.postgres().Query(ctx, database, sql)
}

// FakeSummary adds up what the fake upstream saw.
func (s *Stack) FakeSummary(ctx context.Context) (sum fakeupstream.Summary, err error) {
	text, err := s.fetch(ctx, s.shared.fakeURL+"/ledger/summary")
	if err != nil {
		return sum, err
	}
	return sum, json.Unmarshal(text, &sum)
}

// FakeLedger is everything that the fake upstream served, once nothing is in flight.
func (s *Stack) FakeLedger(ctx context.Context) ([]fakeupstream.Entry, error) {
	err := poll(ctx, func() error {
		sum, err := s.FakeSummary(ctx)
		if err == nil && sum.InFlight != 0 {
			err = fmt.Errorf("%d requests are in flight at the upstream", sum.InFlight)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.served(ctx)
}

// served is everything that the fake upstream has in its ledger now.
func (s *Stack) served(ctx context.Context) ([]fakeupstream.Entry, error) {
	var all []fakeupstream.Entry
	for {
		before := len(all)
		text, err := s.fetch(ctx, fmt.Sprintf("%s/ledger?after=%d", s.shared.fakeURL, before))
		if err != nil {
			return nil, err
		}
		rows := json.NewDecoder(bytes.NewReader(text))
		for {
			var e fakeupstream.Entry
			err := rows.Decode(&e)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("cannot read the upstream's ledger: %w", err)
			}
			all = append(all, e)
		}
		if len(all) == before {
			return all, nil
		}
	}
}

// Metrics is a scrape of the metrics-sidecar.
func (s *Stack) Metrics(ctx context.Context) (string, error) {
	text, err := s.fetch(ctx, fmt.Sprintf("http://127.0.0.1:%d/metrics", s.metrics))
	return string(text), err
}

// AwaitCounter waits until a counter without labels has reached want: workers report
// four times a second.
func (s *Stack) AwaitCounter(ctx context.Context, name string, want int64) (value int64, err error) {
	err = poll(ctx, func() error {
		scrape, err := s.Metrics(ctx)
		if err != nil {
			return err
		}
		_, rest, found := strings.Cut(scrape, "\n"+name+" ")
		line, _, _ := strings.Cut(rest, "\n")
		number, err := strconv.ParseFloat(line, 64)
		if value = int64(number); !found || err != nil || value < want {
			return fmt.Errorf("%s is %q, not %d yet", name, line, want)
		}
		return nil
	})
	return value, err
}

func (s *Stack) fetch(ctx context.Context, url string) ([]byte, error) {
	return s.request(ctx, http.MethodGet, url, nil)
}

// request is one with the master key that has to be answered 200.
func (s *Stack) request(ctx context.Context, method, url string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+masterKey)
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %s", url, resp.Status, text)
	}
	return text, err
}
