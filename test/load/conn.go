// Package load sends chat requests as fast as one core can and reads every answer to
// its end: an HTTP/1.1 client that checks what it gets, a closed loop, and a fixed rate
// with latency from the intended time.
package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// answerTimeout bounds one request, so that a gateway that hangs fails a test.
const answerTimeout = 60 * time.Second

// Answer is what came back. Body and the rest are valid until the next Do.
type Answer struct {
	Status    int
	RequestID string // x-penstock-request-id
	Body      []byte
	Stream    bool // an event stream was asked for
	WithUsage bool // usage was asked for, or comes anyway
}

var (
	usageMember = []byte(`"usage":{`)
	usageEnd    = []byte(`"total_tokens":`)
	doneEvent   = []byte("data: [DONE]\n\n")
)

// Fault says what a complete, good answer lacks; empty: nothing.
func (a *Answer) Fault() string {
	switch {
	case a.Status != 200:
		return "status " + strconv.Itoa(a.Status)
	case a.Stream && !bytes.HasSuffix(a.Body, doneEvent):
		return "no [DONE]"
	case a.WithUsage && (!bytes.Contains(a.Body, usageMember) || !bytes.Contains(a.Body, usageEnd)):
		return "no usage"
	case !a.Stream && (len(a.Body) == 0 || a.Body[len(a.Body)-1] != '}'):
		return "not a whole object"
	}
	return ""
}

// Conn is a client with one connection, which is made when it is needed. It is for
// one goroutine.
type Conn struct {
	address string
	conn    net.Conn
	in      *bufio.Reader
	body    []byte
	serial  [serialDigits]byte
}

// Dial prepares a client; it connects with the first request.
func Dial(address string) *Conn { return &Conn{address: address, in: bufio.NewReaderSize(nil, 64<<10)} }

// Close closes the connection, if there is one.
func (c *Conn) Close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// Do sends one request, with serial in its place, and reads the whole answer. After an
// error the next call connects anew; nothing is ever sent twice.
func (c *Conn) Do(r *Request, serial int64) (Answer, error) {
	a, err := c.do(r, serial)
	if err != nil {
		c.Close()
	}
	return a, err
}

func (c *Conn) do(r *Request, serial int64) (Answer, error) {
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.address, 5*time.Second)
		if err != nil {
			return Answer{}, err
		}
		c.conn = conn
		c.in.Reset(conn)
	}
	if err := c.conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return Answer{}, err
	}
	parts := net.Buffers{r.before, r.serial(&c.serial, serial), r.after}
	if _, err := parts.WriteTo(c.conn); err != nil {
		return Answer{}, err
	}
	return c.read(r)
}

// head is what matters of a response's header.
type head struct {
	length  int // -1: none
	chunked bool
	close   bool
}

func (c *Conn) read(r *Request) (Answer, error) {
	a := Answer{Stream: r.stream, WithUsage: r.usage}
	h, err := c.readHead(&a)
	if err != nil {
		return a, err
	}
	c.body = c.body[:0]
	switch {
	case h.chunked:
		err = c.readChunks()
	case h.length >= 0:
		err = c.readExactly(h.length)
	default:
		err = errors.New("cannot tell where the answer ends")
	}
	a.Body = c.body
	if h.close {
		c.Close()
	}
	return a, err
}

func (c *Conn) readHead(a *Answer) (head, error) {
	h := head{length: -1}
	line, err := c.line()
	if err != nil {
		return h, err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return h, fmt.Errorf("cannot read the status line %q", line)
	}
	if a.Status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return h, fmt.Errorf("cannot read the status line %q", line)
	}
	for {
		line, err := c.line()
		if err != nil {
			return h, err
		}
		if len(line) == 0 {
			return h, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("content-length")):
			if h.length, err = strconv.Atoi(string(value)); err != nil || h.length < 0 {
				return h, fmt.Errorf("cannot read the length %q", value)
			}
		case bytes.EqualFold(name, []byte("transfer-encoding")):
			h.chunked = bytes.EqualFold(value, []byte("chunked"))
		case bytes.EqualFold(name, []byte("connection")):
			h.close = bytes.EqualFold(value, []byte("close"))
		case bytes.EqualFold(name, []byte("x-penstock-request-id")):
			a.RequestID = string(value)
		}
	}
}

// line is valid until the next read.
func (c *Conn) line() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

func (c *Conn) readExactly(n int) error {
	at := len(c.body)
	for cap(c.body) < at+n {
		c.body = append(c.body[:cap(c.body)], 0)
	}
	c.body = c.body[:at+n]
	got, err := io.ReadFull(c.in, c.body[at:])
	c.body = c.body[:at+got]
	return err
}

func (c *Conn) readChunks() error {
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		size, err := strconv.ParseUint(string(line), 16, 31)
		if err != nil {
			return fmt.Errorf("cannot read the chunk size %q", line)
		}
		if err := c.readExactly(int(size)); err != nil {
			return err
		}
		if line, err = c.line(); err != nil {
			return err
		}
		if len(line) != 0 {
			return errors.New("cannot find the end of a chunk")
		}
		if size == 0 {
			return nil
		}
	}
}
