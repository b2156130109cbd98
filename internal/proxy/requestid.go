package proxy

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// newRequestID is a version 7 UUID (RFC 9562): unique without coordination, and
// sorted by time, which keeps the database's index on it dense. The usual library
// links database/sql, which this process must not.
func newRequestID() string {
	var id [16]byte
	_, _ = rand.Read(id[6:]) // never fails: it ends the process instead
	var millis [8]byte
	binary.BigEndian.PutUint64(millis[:], uint64(time.Now().UnixMilli()))
	copy(id[:6], millis[2:])
	id[6] = 0x70 | id[6]&0x0f
	id[8] = 0x80 | id[8]&0x3f

	var text [36]byte
	hex.Encode(text[0:8], id[0:4])
	hex.Encode(text[9:13], id[4:6])
	hex.Encode(text[14:18], id[6:8])
	hex.Encode(text[19:23], id[8:10])
	hex.Encode(text[24:36], id[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}
