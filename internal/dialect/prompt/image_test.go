package prompt

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"strconv"
	"strings"
	"testing"
)

func encoded(t testing.TB, width, height int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func TestPNGSize(t *testing.T) {
	t.Parallel()
	whole := encoded(t, 640, 3)
	cases := []struct {
		why, data     string
		width, height int64
	}{
		{"bare base64", whole, 640, 3},
		{"a data URL", "data:image/png;base64," + whole, 640, 3},
		{"its scheme in capitals", "DATA:IMAGE/PNG;BASE64," + whole, 640, 3},
		{"another type", "data:image/jpeg;base64," + whole, 0, 0},
		{"nothing", "", 0, 0},
		{"a URL", "https://example.com/a/very/long/path/to/some.png", 0, 0},
		{"cut before the height", whole[:28], 0, 0},
		{"escaped slashes are not decoded", strings.Replace(whole, whole[10:12], `\/`, 1), 0, 0},
	}
	for _, tc := range cases {
		if w, h := PNGSize([]byte(strconv.Quote(tc.data))); w != tc.width || h != tc.height {
			t.Errorf("%s: %d x %d, want %d x %d", tc.why, w, h, tc.width, tc.height)
		}
	}
}

// FuzzPNGSize checks against the standard library: what has a size there has the
// same one here.
func FuzzPNGSize(f *testing.F) {
	f.Add([]byte(encoded(f, 7, 9)))
	f.Add([]byte("data:image/png;base64," + encoded(f, 1, 1)))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.ContainsAny(data, "\"\\") {
			return // the end of a string, or an escape
		}
		width, height := PNGSize([]byte(`"` + string(data) + `"`))
		if width < 0 || height < 0 || width > 1_000_000 || height > 1_000_000 {
			t.Fatalf("%d x %d", width, height)
		}
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(string(data), "data:image/png;base64,"))
		if err != nil {
			return
		}
		if c, err := png.DecodeConfig(bytes.NewReader(raw)); err == nil && c.Width <= 1_000_000 && c.Height <= 1_000_000 {
			if int64(c.Width) != width || int64(c.Height) != height {
				t.Fatalf("%d x %d, want %d x %d", width, height, c.Width, c.Height)
			}
		}
	})
}
