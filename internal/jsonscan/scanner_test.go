package jsonscan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// valid reads body as one JSON text and nothing more.
func valid(body []byte, depth int) error {
	s := NewScanner(body, depth)
	s.Skip()
	s.End()
	return s.Err()
}

func TestStrictness(t *testing.T) {
	t.Parallel()
	good := []string{
		`0`, `-0`, `-0.0e-0`, `1E+5`, `123456789012345678901234567890`, ` [ ] `, `{}`, `"\u0000\/\b\f"`, "\"\x7f\"",
		`[null,true,false]`, `{"a":{"a":[{}]}}`, `"\ud800"`, `"😀é"`, `{"":1}`, `"` + strings.Repeat("ab\\n", 50) + `"`,
	}
	for _, body := range good {
		if err := valid([]byte(body), 0); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		if !json.Valid([]byte(body)) {
			t.Errorf("%s: encoding/json disagrees", body)
		}
	}
	bad := []struct{ why, body string }{
		{"nothing", ``},
		{"only white space", ` `},
		{"leading zero", `016`},
		{"no digit", `-`},
		{"plus sign", `+1`},
		{"no digit before the point", `.5`},
		{"no digit behind the point", `1.`},
		{"no exponent", `1e`},
		{"not a number", `NaN`},
		{"infinity", `-Infinity`},
		{"hexadecimal", `0x10`},
		{"half a literal", `tru`},
		{"a literal too long", `nullx`},
		{"trailing data", `{} {}`},
		{"trailing comma in an object", `{"a":1,}`},
		{"trailing comma in an array", `[1,]`},
		{"leading comma", `[,1]`},
		{"no comma", `[1 2]`},
		{"no colon", `{"a" 1}`},
		{"key without quotes", `{a:1}`},
		{"number as a key", `{1:1}`},
		{"wrong bracket", `[1}`},
		{"no end of an object", `{"a":1`},
		{"no end of an array", `[1`},
		{"no end of a string", `"abc`},
		{"escape at the end", `"\`},
		{"unknown escape", `"\x"`},
		{"short hexadecimal escape", `"\u12"`},
		{"bad hexadecimal escape", `"\u12g4"`},
		{"control character", "\"a\x01b\""},
		{"newline in a string", "\"a\nb\""},
		{"invalid UTF-8", "\"a\xffb\""},
		{"overlong UTF-8", "\"\xc0\xaf\""},
		{"surrogate in UTF-8", "\"\xed\xa0\x80\""},
		{"cut UTF-8", "\"a\xe4\xbd\""},
		{"invalid UTF-8 far behind", `"` + strings.Repeat("x", 100) + "\xff\""},
		{"byte order mark", "\ufeff{}"},
		{"comment", `{} // x`},
		{"form feed as white space", "\f{}"},
		{"single quotes", `'a'`},
	}
	for _, tc := range bad {
		if err := valid([]byte(tc.body), 0); err == nil {
			t.Errorf("%s: %q is accepted", tc.why, tc.body)
		}
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	nested := func(n int) []byte {
		return []byte(strings.Repeat(`[`, n) + strings.Repeat(`]`, n))
	}
	if err := valid(nested(DefaultMaxDepth), 0); err != nil {
		t.Error(err)
	}
	if err := valid(nested(DefaultMaxDepth+1), 0); err == nil {
		t.Error("a level too much is accepted")
	}
	// A hostile body must not be followed down.
	if err := valid(bytes.Repeat([]byte(`[{"a":`), 1<<20), 0); err == nil {
		t.Error("endless nesting is accepted")
	}
}

// Every flaw is found at every distance from the blocks and from the end.
func TestFlawsAtEveryOffset(t *testing.T) {
	t.Parallel()
	for n := range 2*block + 5 {
		pad := strings.Repeat("x", n)
		for _, flaw := range []string{"\x00", "\x1f", "\n", "\\q", "\xff", "\x80"} {
			for _, m := range []int{0, 1, 2, 3, 5, 8, 9, block, ahead, ahead + 1, 2 * block} {
				body := `"` + pad + flaw + strings.Repeat("y", m) + `"`
				if valid([]byte(body), 0) == nil {
					t.Errorf("%q is accepted", body)
				}
			}
		}
		for _, fine := range []string{"\x20", "\x7f", "!", "#", "[", "]", "é", "😀", `\"`, `\\`, `\u00e9`} {
			body := `"` + pad + fine + pad + `"`
			if err := valid([]byte(body), 0); err != nil {
				t.Errorf("%q: %v", body, err)
			}
		}
	}
}

func TestErrorSaysWhere(t *testing.T) {
	t.Parallel()
	cases := []struct {
		body   string
		offset int
	}{
		{`{"a":tru}`, 5},
		{`{"a":01}`, 6},
		{"{\"a\":\"xy\xff\"}", 8},
		{`[1,2`, 4},
		{`[] x`, 3},
		{"[\"abcdefghijkl\x02\"]", 14},
	}
	for _, tc := range cases {
		err := valid([]byte(tc.body), 0)
		var e *Error
		if !errors.As(err, &e) || e.Offset != tc.offset {
			t.Errorf("%q: %v, want an error at byte %d", tc.body, err, tc.offset)
		}
	}
}

func TestUnescape(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`""`, `"plain"`, `"a\nb\tc\rd\be\ff"`, `"\"\\\/"`, `"\u00e9\u4f60"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00x"`,
		`"\ud83d\ud83d\ude00"`, `"\ud83d\u0041"`, `"\ud83d\n"`, `"\uD83D\uDE00"`, `"x\u0000y"`, `"é\\u00e9"`,
	} {
		var want string
		if err := json.Unmarshal([]byte(body), &want); err != nil {
			t.Fatal(err)
		}
		if got := AppendUnescaped(nil, []byte(body), Span{0, len(body)}); string(got) != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func TestUnescapedIsAViewWhereItCan(t *testing.T) {
	t.Parallel()
	body := []byte(`"plain"`)
	var buf []byte
	if got := Unescaped(body, Span{0, len(body)}, &buf); &got[0] != &body[1] || buf != nil {
		t.Error("a plain string was copied")
	}
	body = []byte(`"a\nb"`)
	if got := Unescaped(body, Span{0, len(body)}, &buf); string(got) != "a\nb" {
		t.Errorf("%q", got)
	}
}

func TestInt(t *testing.T) {
	t.Parallel()
	good := map[string]int64{"0": 0, "-0": 0, "91": 91, "-7": -7, "9223372036854775807": 1<<63 - 1}
	for body, want := range good {
		s := NewScanner([]byte(body), 0)
		if n, ok := s.Int(); n != want || !ok {
			t.Errorf("%s: %d %v", body, n, ok)
		}
	}
	for _, body := range []string{"9223372036854775808", "1.0", "1e0", "99999999999999999999999", "0.5"} {
		s := NewScanner([]byte(body), 0)
		if n, ok := s.Int(); ok {
			t.Errorf("%s: taken as %d", body, n)
		}
	}
}

func FuzzString(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\\n\x00\x1f", "é\u2028<>&", "\xff\xed\xa0\x80", strings.Repeat("a\\", 20)} {
		f.Add(s)
	}
	f.Add(strings.Repeat("\n\t你", 80))
	f.Fuzz(func(t *testing.T, s string) {
		if len(s)%2 == 1 { // long enough for whole blocks
			s = strings.Repeat(s, room/len(s)+1)
		}
		quoted := AppendString(nil, s)
		if err := valid(quoted, 0); err != nil {
			t.Fatalf("%q: %v", quoted, err)
		}
		var want string
		if err := json.Unmarshal(quoted, &want); err != nil {
			t.Fatal(err)
		}
		clean := strings.ToValidUTF8(s, "")
		if got := AppendUnescaped(nil, quoted, Span{0, len(quoted)}); string(got) != want || utf8.ValidString(s) && want != clean {
			t.Fatalf("%q became %q, encoding/json reads %q", s, got, want)
		}
	})
}

func FuzzValid(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e-3,"x\u00e9\n",null,true]}`, `[[[]]]`, `"\ud800\udc00"`, `-0.1E+2`, "{\"\xff\":1}", ` {} x`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		err := valid(body, 10_000)
		want := json.Valid(body) && utf8.Valid(body)
		if (err == nil) != want {
			t.Fatalf("%q: %v, encoding/json and utf8 say %v", body, err, want)
		}
	})
}

func ExampleScanner() {
	s := NewScanner([]byte(`{"a":[1,2],"b":{"c":"x"}}`), 0)
	s.Object()
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		span := s.Skip()
		fmt.Printf("%s at %d to %d\n", key, span.Start, span.End)
	}
	s.End()
	fmt.Println(s.Err())
	// Output:
	// a at 5 to 10
	// b at 15 to 24
	// <nil>
}
