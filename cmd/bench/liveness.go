package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// probeLiveness asks for GET /health/liveness at fixed times on one connection of its
// own. late is how late this client itself asked, at p99, of the times when it did not
// wait for the answer before: where that is much, the figures are not the gateway's.
func probeLiveness(ctx context.Context, address string, d, every time.Duration) (l latency, late time.Duration) {
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1, DisableCompression: true}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	var all, own []time.Duration
	l.faults = map[string]int64{}
	start := time.Now()
	for at := start; at.Sub(start) < d && ctx.Err() == nil; at = at.Add(every) {
		if wait := time.Until(at); wait > 0 {
			time.Sleep(wait)
			own = append(own, time.Since(at))
		}
		l.requests++
		if err := alive(ctx, client, "http://"+address+"/health/liveness"); err != nil {
			l.faults[err.Error()]++
			continue
		}
		all = append(all, time.Since(at))
	}
	slices.Sort(all)
	slices.Sort(own)
	l.p50, l.p99, l.max = percentile(all, 50), percentile(all, 99), percentile(all, 100)
	return l, percentile(own, 99)
}

func alive(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	return nil
}

// percentile is what p percent of sorted values stay within; 0 of none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(p/100*float64(len(sorted))))]
}
