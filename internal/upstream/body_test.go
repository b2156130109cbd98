package upstream

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// readBody undoes the framing of wire with reads of size n.
func readBody(b body, r io.Reader, n int) (string, error) {
	var out strings.Builder
	br := bufio.NewReaderSize(r, 64)
	p := make([]byte, n)
	for {
		m, err := b.read(br, p)
		out.Write(p[:m])
		//nolint:errorlint // io.EOF itself is a whole body's end, an error that wraps it is not
		if err == io.EOF {
			return out.String(), nil
		}
		if err != nil {
			return out.String(), err
		}
	}
}

func TestChunked(t *testing.T) {
	t.Parallel()
	cases := []struct {
		why, wire, want string
		err             error
	}{
		{"plain", "5\r\nhello\r\n0\r\n\r\n", "hello", nil},
		{"two chunks", "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", "hello", nil},
		{"extensions and trailers are dropped", "2;a=b\r\nhi\r\n0;x\r\nX-A: 1\r\nX-B: 2\r\n\r\n", "hi", nil},
		{"capital digits, leading zeros", "000A\r\n0123456789\r\n0\r\n\r\n", "0123456789", nil},
		{"bare line feeds are seen in the field", "2\nhi\n0\n\n", "hi", nil},
		{"empty body", "0\r\n\r\n", "", nil},
		{"end in data", "5\r\nhel", "hel", ErrUnexpectedEnd},
		{"end after data", "2\r\nhi", "hi", ErrUnexpectedEnd},
		{"end before the last chunk is no clean end", "2\r\nhi\r\n", "hi", ErrUnexpectedEnd},
		{"end in trailers", "2\r\nhi\r\n0\r\nX: 1\r\n", "hi", ErrUnexpectedEnd},
		{"no size", "\r\nhi\r\n", "", ErrProtocol},
		{"no hexadecimal", "zz\r\nhi\r\n", "", ErrProtocol},
		{"negative", "-1\r\nhi\r\n", "", ErrProtocol},
		{"size over 60 bits", "1000000000000000\r\n", "", ErrProtocol},
		{"chunk longer than its size", "2\r\nhixx\r\n0\r\n\r\n", "hi", ErrProtocol},
		{"endless size line", strings.Repeat("1", 100), "", ErrProtocol},
		{"trailers without end", "0\r\n" + strings.Repeat("X: aaaaaaaaaaaaaaaaaaaaaaaa\r\n", 1000), "", ErrProtocol},
	}
	for _, c := range cases {
		for _, size := range []int{1, 3, 4096} {
			t.Run(fmt.Sprintf("%s/%d", c.why, size), func(t *testing.T) {
				t.Parallel()
				for name, r := range map[string]io.Reader{
					"whole":    strings.NewReader(c.wire),
					"one byte": iotest.OneByteReader(strings.NewReader(c.wire)),
				} {
					got, err := readBody(body{framing: framingChunked}, r, size)
					if got != c.want || !errors.Is(err, c.err) {
						t.Errorf("%s: got %q, %v; want %q, %v", name, got, err, c.want, c.err)
					}
				}
			})
		}
	}
}

// The end that is buffered together with the last data is taken with it, so
// that a caller who stops at [DONE] still leaves a connection to reuse.
func TestChunkedEndIsTakenEagerly(t *testing.T) {
	t.Parallel()
	b := body{framing: framingChunked}
	br := bufio.NewReader(strings.NewReader("2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"))
	p := make([]byte, 5)
	n, err := b.read(br, p)
	if got := string(p[:n]); got != "hello" || err != nil || !b.done {
		t.Errorf("got %q, %v, done %v", got, err, b.done)
	}
}

func TestLengthAndUntilClose(t *testing.T) {
	t.Parallel()
	cases := []struct {
		why, wire, want string
		body            body
		err             error
	}{
		{"bytes behind the body are not the body's", "helloHTTP", "hello", body{left: 5}, nil},
		{"shorter than promised", "hel", "hel", body{left: 5}, ErrUnexpectedEnd},
		{"until close", "hello", "hello", body{framing: framingUntilClose}, nil},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			got, err := readBody(c.body, strings.NewReader(c.wire), 4)
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %q, %v; want %q, %v", got, err, c.want, c.err)
			}
		})
	}
}

func TestKeepAliveHint(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"timeout=5":                4 * time.Second,
		"timeout=5, max=100":       4 * time.Second,
		"max=100, Timeout=60":      59 * time.Second,
		"timeout=1":                0,
		"timeout=0":                -time.Second,
		"":                         -2,
		"timeout=":                 -2,
		"timeout=-4":               -2,
		"timeout=9999999999999999": -2,
		"max=1":                    -2,
	} {
		got, ok := keepAliveHint([]byte(value))
		if !ok {
			got = -2
		}
		if got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
}

// Whatever comes and however it is cut, the decoder gives the same bytes, and
// what it calls complete can be encoded again to the same body.
func FuzzChunked(f *testing.F) {
	f.Add("5\r\nhello\r\n0\r\n\r\n", 3)
	f.Add("2;x\r\nhi\r\n0\r\nA: b\r\n\r\n", 1)
	f.Add("fffffffffffffff\r\n", 7)
	f.Fuzz(func(t *testing.T, wire string, size int) {
		size = 1 + size&63
		got, err := readBody(body{framing: framingChunked}, strings.NewReader(wire), size)
		slow, slowErr := readBody(body{framing: framingChunked}, iotest.OneByteReader(strings.NewReader(wire)), size)
		if (err == nil) != (slowErr == nil) || got != slow {
			t.Fatalf("cut differently: %q %v and %q %v", got, err, slow, slowErr)
		}
		if err != nil && !errors.Is(err, ErrProtocol) && !errors.Is(err, ErrUnexpectedEnd) {
			t.Fatalf("unclassified error %v", err)
		}
		if err != nil || got == "" {
			return
		}
		again, err := readBody(body{framing: framingChunked}, strings.NewReader(fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(got), got)), size)
		if diff := cmp.Diff(got, again); diff != "" || err != nil {
			t.Fatalf("not the same again: %v %s", err, diff)
		}
	})
}
