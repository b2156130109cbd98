package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/valyala/fasthttp"
)

type framing uint8

const (
	framingLength framing = iota
	framingChunked
	framingUntilClose
)

type chunkState uint8

const (
	chunkSize chunkState = iota
	chunkData
	chunkEnd
	chunkTrailer
)

// maxTrailer bounds the trailers, in bytes; they are read and dropped.
const maxTrailer = 16 << 10

// body undoes the framing of one response.
type body struct {
	framing framing
	length  int   // as announced, or -1
	left    int64 // bytes of the body, or of the chunk, still to come
	state   chunkState
	trailer int
	done    bool
}

func newBody(method string, h *fasthttp.ResponseHeader) body {
	status, length := h.StatusCode(), h.ContentLength()
	switch {
	case method == "HEAD", status == fasthttp.StatusNoContent, status == fasthttp.StatusNotModified:
		return body{done: true}
	case length >= 0:
		return body{length: length, left: int64(length), done: length == 0}
	case length == -1:
		return body{framing: framingChunked, length: -1}
	default:
		return body{framing: framingUntilClose, length: -1}
	}
}

// read gives what is there, up to len(p). With bytes it may also give the
// error that the next read would meet. p is not empty.
func (b *body) read(br *bufio.Reader, p []byte) (int, error) {
	if b.done {
		return 0, io.EOF
	}
	switch b.framing {
	case framingLength:
		n, err := br.Read(p[:min(int64(len(p)), b.left)])
		b.left -= int64(n)
		b.done = b.left == 0
		return n, noEOF(err)
	case framingUntilClose:
		n, err := br.Read(p)
		b.done = err == io.EOF
		return n, err
	default:
		return b.readChunked(br, p)
	}
}

// readChunked gives the data of as many chunks as are buffered, but waits only
// for the first byte. It goes on over line ends that are buffered, so that the
// body is done as soon as its end is here.
func (b *body) readChunked(br *bufio.Reader, p []byte) (int, error) {
	n := 0
	for !b.done {
		if b.state == chunkData {
			if n == len(p) || n > 0 && br.Buffered() == 0 {
				return n, nil
			}
			m, err := br.Read(p[n:min(int64(len(p)), int64(n)+b.left)])
			n += m
			b.left -= int64(m)
			if b.left == 0 {
				b.state = chunkEnd
			}
			if err != nil {
				return n, noEOF(err)
			}
			continue
		}
		if n > 0 && !lineBuffered(br) {
			return n, nil
		}
		if err := b.line(br); err != nil {
			return n, err
		}
	}
	if n > 0 {
		return n, nil
	}
	return 0, io.EOF
}

func lineBuffered(br *bufio.Reader) bool {
	buffered, _ := br.Peek(br.Buffered())
	return bytes.IndexByte(buffered, '\n') >= 0
}

// line reads one line of the chunk framing and moves the state.
func (b *body) line(br *bufio.Reader) error {
	line, err := br.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return fmt.Errorf("%w: a line of the chunk framing is too long", ErrProtocol)
	}
	if err != nil {
		return noEOF(err)
	}
	line = bytes.TrimSuffix(line[:len(line)-1], []byte("\r"))
	switch b.state {
	case chunkSize:
		b.left, err = parseChunkSize(line)
		b.state = chunkData
		if b.left == 0 {
			b.state = chunkTrailer
		}
		return err
	case chunkEnd:
		b.state = chunkSize
		if len(line) > 0 {
			return fmt.Errorf("%w: a chunk is longer than its size", ErrProtocol)
		}
	case chunkTrailer:
		b.done = len(line) == 0
		if b.trailer += len(line); b.trailer > maxTrailer {
			return fmt.Errorf("%w: the trailers are too large", ErrProtocol)
		}
	}
	return nil
}

// parseChunkSize reads the hexadecimal size before any extension.
func parseChunkSize(line []byte) (int64, error) {
	size, _, _ := bytes.Cut(line, []byte(";"))
	size = bytes.TrimRight(size, " \t")
	if len(size) == 0 || len(size) > 15 {
		return 0, fmt.Errorf("%w: a chunk size has %d digits", ErrProtocol, len(size))
	}
	n := int64(0)
	for _, c := range size {
		digit, ok := hexDigit(c)
		if !ok {
			return 0, fmt.Errorf("%w: a chunk size is not hexadecimal", ErrProtocol)
		}
		n = n<<4 | int64(digit)
	}
	return n, nil
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	default:
		return 0, false
	}
}

// noEOF turns an end that comes too early into ErrUnexpectedEnd.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return ErrUnexpectedEnd
	}
	return err
}
