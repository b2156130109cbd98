package upstream

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// check refuses what could not be written as one unambiguous request. A line
// break in a header value would let a client write headers of its own.
func (c *Call) check() error {
	if !httpguts.ValidHeaderFieldName(c.Method) {
		return fmt.Errorf("%w: method %q", ErrInvalidCall, c.Method)
	}
	if !validPath(c.Path) {
		return fmt.Errorf("%w: path %q", ErrInvalidCall, c.Path)
	}
	for _, h := range c.Headers {
		if !httpguts.ValidHeaderFieldName(h[0]) || !httpguts.ValidHeaderFieldValue(h[1]) {
			// The value may be a credential and is not shown.
			return fmt.Errorf("%w: header %q", ErrInvalidCall, h[0])
		}
	}
	return nil
}

// validPath accepts a path with an optional query, escaped already.
func validPath(s string) bool {
	if s == "" || s[0] != '/' {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f || s[i] == '#' {
			return false
		}
	}
	return true
}

// ownHeader names the headers that this package writes itself.
func ownHeader(name string) bool {
	for _, own := range [...]string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Accept-Encoding"} {
		if strings.EqualFold(name, own) {
			return true
		}
	}
	return false
}

// send writes the whole request. Large pieces pass through bw without a copy.
func (c *conn) send(call *Call) error {
	bw := writers.Get().(*bufio.Writer)
	bw.Reset(c)
	writeHead(bw, c.target, call)
	for _, piece := range call.Body {
		bw.Write(piece)
	}
	err := bw.Flush() // gives the first error of all writes before it
	bw.Reset(nil)
	writers.Put(bw)
	return err
}

func writeHead(bw *bufio.Writer, t *Target, call *Call) {
	for _, s := range [...]string{call.Method, " ", t.prefix, call.Path, " HTTP/1.1\r\nHost: ", t.host, "\r\nAccept-Encoding: identity\r\n"} {
		bw.WriteString(s)
	}
	if t.proxy != nil && t.tls == nil && t.proxy.auth != "" {
		writeHeader(bw, "Proxy-Authorization", t.proxy.auth)
	}
	for _, h := range call.Headers {
		if !ownHeader(h[0]) {
			writeHeader(bw, h[0], h[1])
		}
	}
	if n := call.bodyLen(); n > 0 || call.Method != "GET" && call.Method != "HEAD" {
		bw.WriteString("Content-Length: ")
		bw.Write(strconv.AppendInt(bw.AvailableBuffer(), int64(n), 10))
		bw.WriteString("\r\n")
	}
	bw.WriteString("\r\n")
}

func writeHeader(bw *bufio.Writer, name, value string) {
	bw.WriteString(name)
	bw.WriteString(": ")
	bw.WriteString(value)
	bw.WriteString("\r\n")
}
