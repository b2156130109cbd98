package postgres

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// copyReader is records in the binary format of COPY, made as they are read. The driver's
// own COPY looks up an encoder for each value of each row, which was most of what a record
// cost the collector.
type copyReader struct {
	holder  string
	records []store.Record
	begun   bool
	buf     []byte // made and not read yet, from the offset on
	off     int
	ended   bool
}

// copyChunk is how much is made at once.
const copyChunk = 64 << 10

// copyQuery names the columns in the order of appendRecord.
var copyQuery = "COPY spend_records (" + strings.Join(recordColumns, ", ") + ") FROM STDIN (FORMAT binary)"

// Read implements io.Reader.
func (c *copyReader) Read(p []byte) (int, error) {
	if c.off == len(c.buf) {
		if c.ended {
			return 0, io.EOF
		}
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.buf[c.off:])
	c.off += n
	return n, nil
}

// fill makes the next chunk.
func (c *copyReader) fill() error {
	if c.buf == nil {
		c.buf = make([]byte, 0, copyChunk+copyChunk/4)
	}
	b := c.buf[:0]
	if !c.begun {
		c.begun = true
		b = append(b, "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"...) // signature, no flags, no extension
	}
	for len(b) < copyChunk && len(c.records) > 0 {
		var err error
		if b, err = appendRecord(b, c.holder, &c.records[0]); err != nil {
			return err
		}
		c.records = c.records[1:]
	}
	if len(c.records) == 0 {
		c.ended = true
		b = binary.BigEndian.AppendUint16(b, 0xffff) // the end
	}
	c.buf, c.off = b, 0
	return nil
}

// appendRecord appends the values of recordColumns in their order.
func appendRecord(b []byte, holder string, r *store.Record) ([]byte, error) {
	charges, err := json.Marshal(r.Charges)
	if err != nil {
		return b, err
	}
	w := rowWriter{b: binary.BigEndian.AppendUint16(b, uint16(len(recordColumns)))}
	w.text(holder)
	w.time(r.Start)
	w.text(r.RequestID)
	w.bigint(int64(r.Seq))
	for _, s := range [...]string{r.KeyID, r.KeyAlias, r.UserID, r.TeamID, r.OrganizationID, r.EndUser} {
		w.text(s)
	}
	w.texts(r.Tags)
	for _, s := range [...]string{r.CallType, r.RequestedModel, r.Model, r.ModelID, r.Provider, r.APIBase} {
		w.text(s)
	}
	w.time(r.End)
	w.time(r.FirstToken)
	w.boolean(r.Stream)
	w.text(string(r.Status))
	w.integer(int32(r.HTTPStatus))
	w.text(r.ErrorCode)
	for _, n := range [...]int64{r.Usage.Input, r.Usage.Output, r.Usage.Cached, r.Usage.CacheWrite, r.Usage.Reasoning, r.Cost, r.Hold} {
		w.bigint(n)
	}
	w.jsonb(charges)
	w.integer(int32(r.Attempts))
	w.boolean(r.Estimated)
	for _, s := range [...]string{r.PriceVersion, r.UpstreamID, r.ClientIP} {
		w.text(s)
	}
	w.bigint(r.OutputCap)
	return w.b, nil
}

// rowWriter appends values of one row: each is its length and its bytes.
type rowWriter struct{ b []byte }

func (w *rowWriter) length(n int) { w.b = binary.BigEndian.AppendUint32(w.b, uint32(n)) }

func (w *rowWriter) text(s string) {
	w.length(len(s))
	w.b = append(w.b, s...)
}

func (w *rowWriter) bigint(n int64) {
	w.length(8)
	w.b = binary.BigEndian.AppendUint64(w.b, uint64(n))
}

func (w *rowWriter) integer(n int32) {
	w.length(4)
	w.b = binary.BigEndian.AppendUint32(w.b, uint32(n))
}

func (w *rowWriter) boolean(v bool) {
	w.length(1)
	if v {
		w.b = append(w.b, 1)
	} else {
		w.b = append(w.b, 0)
	}
}

// time is a timestamptz, in microseconds since 2000; no time at all is NULL.
func (w *rowWriter) time(t time.Time) {
	const epoch = 946_684_800_000_000
	if t.IsZero() {
		w.length(-1)
		return
	}
	w.bigint(t.UnixMicro() - epoch)
}

// texts is a text[] of one dimension.
func (w *rowWriter) texts(list []string) {
	const textOID = 25
	at := len(w.b)
	w.length(0) // known below
	dimensions := min(len(list), 1)
	w.length(dimensions)
	w.length(0) // no NULLs
	w.length(textOID)
	if dimensions > 0 {
		w.length(len(list))
		w.length(1) // the first index
	}
	for _, s := range list {
		w.text(s)
	}
	binary.BigEndian.PutUint32(w.b[at:], uint32(len(w.b)-at-4))
}

// jsonb is its version and its text.
func (w *rowWriter) jsonb(text []byte) {
	w.length(1 + len(text))
	w.b = append(append(w.b, 1), text...)
}
