package prompt

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
)

// PNGSize reads width and height, in pixels, from a JSON string that holds a
// PNG as a data URL or as bare base64; 0, 0 for anything else. Only the first
// bytes are looked at, and sizes beyond 1,000,000 pixels are not believed.
func PNGSize(quoted []byte) (width, height int64) {
	const header = 24 // signature, then the IHDR chunk up to the height
	const encoded = header / 3 * 4
	const scheme = "data:image/png;base64,"
	head := quoted[1:min(len(quoted), 1+len(scheme)+encoded)]
	if len(head) >= len(scheme) && bytes.EqualFold(head[:len(scheme)], []byte(scheme)) {
		head = head[len(scheme):]
	}
	var raw [header]byte
	if len(head) < encoded {
		return 0, 0
	}
	if _, err := base64.StdEncoding.Decode(raw[:], head[:encoded]); err != nil {
		return 0, 0
	}
	if string(raw[:8]) != "\x89PNG\r\n\x1a\n" || string(raw[12:16]) != "IHDR" {
		return 0, 0
	}
	const most = 1_000_000
	w, h := binary.BigEndian.Uint32(raw[16:]), binary.BigEndian.Uint32(raw[20:])
	if w > most || h > most {
		return 0, 0
	}
	return int64(w), int64(h)
}

// Ceil is a / b, rounded up.
func Ceil(a, b int64) int64 { return (a + b - 1) / b }
