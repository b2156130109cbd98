package upstream

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
)

// unzip undoes gzip, which some upstreams send though they were asked for identity. It
// gives what an upstream has flushed as soon as it is there.
type unzip struct {
	response *Response
	z        *gzip.Reader // nil until the first read: its header has to be waited for
	err      error        // what read goes on failing with
}

// gzipped takes the coding out of a header whose body this package decodes.
func (x *exchange) gzipped() bool {
	if x.body.done {
		return false
	}
	coding := x.header.Peek("Content-Encoding")
	if !bytes.EqualFold(coding, []byte("gzip")) && !bytes.EqualFold(coding, []byte("x-gzip")) {
		return false
	}
	x.header.Del("Content-Encoding")
	return true
}

func (u *unzip) read(p []byte) (int, error) {
	c := u.response.x.c
	if c.call.Canceled() {
		return 0, c.target.failed(PhaseBody, SentAll, ErrCanceled)
	}
	if u.err != nil {
		return 0, u.err
	}
	n, err := u.decode(p)
	var ours *Error
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.As(err, &ours):
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = c.target.failed(PhaseBody, SentAll, ErrUnexpectedEnd)
	default: // a wrong header, checksum or code
		err = c.target.failed(PhaseBody, SentAll, ErrProtocol)
	}
	u.err = err
	if n > 0 {
		return n, nil
	}
	return 0, err
}

func (u *unzip) decode(p []byte) (int, error) {
	if u.z == nil {
		z, err := gzip.NewReader(rawBody{u.response})
		// Nothing at all came, where at least a header had to be.
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
		}
		u.z = z
	}
	return u.z.Read(p)
}

// rawBody is the body as it came.
type rawBody struct{ r *Response }

func (b rawBody) Read(p []byte) (int, error) { return b.r.readRaw(p) }
