package upstream

import (
	"bufio"
	"bytes"
	"io"
	"sync/atomic"
	"testing"
)

// BenchmarkRoundTrip is a call on a kept loopback connection. The server's
// side is scripted and does not allocate, so allocations are the client's.
func BenchmarkRoundTrip(b *testing.B) {
	for name, size := range map[string]int{"1KiB": 1 << 10, "400KiB": 400 << 10} {
		b.Run(name, func(b *testing.B) {
			tg, call := benchTarget(b, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			buf := make([]byte, 0, 1024)
			for b.Loop() {
				if err := oneCall(tg, call, buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A call on a kept connection must stay cheap in garbage.
func TestAllocationCeiling(t *testing.T) {
	tg, call := benchTarget(t, 1<<10)
	buf := make([]byte, 0, 1024)
	got := testing.AllocsPerRun(200, func() {
		if err := oneCall(tg, call, buf); err != nil {
			t.Fatal(err)
		}
	})
	if got > 12 {
		t.Errorf("%.0f allocations a call", got)
	}
}

func benchTarget(tb testing.TB, size int) (*Target, *Call) {
	call := post()
	call.Body = [][]byte{make([]byte, size/2), make([]byte, size-size/2)}
	var wire atomic.Int64 // the request's length; there is no parsing on the server's side
	srv := serve(tb, listen(tb), func(p *peer) {
		buf := make([]byte, 64<<10)
		for {
			for left := int(wire.Load()); left > 0; {
				n, err := p.Read(buf[:min(left, len(buf))])
				if err != nil {
					return
				}
				left -= n
			}
			if _, err := io.WriteString(p, ok2); err != nil {
				return
			}
		}
	})
	tg := target(tb, srv.url(), nil)
	var head bytes.Buffer
	bw := bufio.NewWriter(&head)
	writeHead(bw, tg, call)
	_ = bw.Flush()
	wire.Store(int64(head.Len() + size))
	return tg, call
}

func oneCall(tg *Target, call *Call, buf []byte) error {
	resp, err := tg.Do(call)
	if err != nil {
		return err
	}
	defer resp.Close()
	_, err = resp.ReadAll(buf[:0])
	return err
}
