package admin

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/penstock-gateway/penstock/internal/money"
)

// fieldReader reads typed fields of an object. The first fault is kept, so that the
// caller checks once at the end. A field that is absent reads as nil; null reads as
// the empty value, which in an update takes the setting away.
type fieldReader struct {
	obj  object
	used map[string]bool
	err  error
}

func newFieldReader(obj object) *fieldReader {
	return &fieldReader{obj: obj, used: map[string]bool{}}
}

// take returns the raw field. ok is false when it is absent or a fault was found.
func (f *fieldReader) take(name string) (raw json.RawMessage, ok bool) {
	f.used[name] = true
	raw, ok = f.obj.fields[name]
	return raw, ok && f.err == nil
}

func (f *fieldReader) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// text reads a name or an id.
func (f *fieldReader) text(name string) *string {
	raw, ok := f.take(name)
	if !ok {
		return nil
	}
	var s *string
	if json.Unmarshal(raw, &s) != nil {
		f.fail(badField(name, "must be a string"))
		return nil
	}
	if s == nil {
		return new(string)
	}
	if len(*s) > maxText || !cleanText(*s) {
		f.fail(badField(name, "must have at most %d bytes without control characters", maxText))
		return nil
	}
	return s
}

// texts reads a list of names.
func (f *fieldReader) texts(name string) *[]string {
	raw, ok := f.take(name)
	if !ok {
		return nil
	}
	var list []*string
	if json.Unmarshal(raw, &list) != nil {
		f.fail(badField(name, "must be a list of strings"))
		return nil
	}
	out := make([]string, 0, len(list))
	for _, s := range list {
		if s == nil || len(*s) > maxText || !cleanText(*s) {
			f.fail(badField(name, "must be a list of strings of at most %d bytes without control characters", maxText))
			return nil
		}
		out = append(out, *s)
	}
	return &out
}

// textMap reads an object of names.
func (f *fieldReader) textMap(name string) *map[string]string {
	raw, ok := f.take(name)
	if !ok {
		return nil
	}
	var m map[string]*string
	if json.Unmarshal(raw, &m) != nil {
		f.fail(badField(name, "must be an object of strings"))
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		if v == nil || len(k) > maxText || len(*v) > maxText || !cleanText(k) || !cleanText(*v) {
			f.fail(badField(name, "must be an object of strings of at most %d bytes without control characters", maxText))
			return nil
		}
		out[k] = *v
	}
	return &out
}

// flag reads true or false; null counts as absent.
func (f *fieldReader) flag(name string) *bool {
	raw, ok := f.take(name)
	if !ok {
		return nil
	}
	var b *bool
	if json.Unmarshal(raw, &b) != nil {
		f.fail(badField(name, "must be true or false"))
		return nil
	}
	return b
}

// amount reads dollars as nano-dollars, exactly from the literal. A pointer to nil
// means null.
func (f *fieldReader) amount(name string) **int64 {
	raw, ok := f.take(name)
	if !ok {
		return nil
	}
	var nano *int64
	if isNull(raw) {
		return &nano
	}
	n, err := parseAmount(name, raw)
	if err != nil {
		f.fail(err)
		return nil
	}
	nano = &n
	return &nano
}

// maxBudget bounds an amount to a billion dollars: sums of several stay in int64.
const maxBudget = int64(1e18)

// parseAmount reads the dollars of a field as nano-dollars.
func parseAmount(name string, raw json.RawMessage) (int64, error) {
	n, err := money.ParseNano(string(bytes.TrimSpace(raw)))
	switch {
	case err != nil:
		return 0, badField(name, "must be an amount in dollars from 0 to %s, as a number such as 12.5", money.FormatNano(maxBudget))
	case n > maxBudget:
		return 0, badField(name, "must be at most %s dollars", money.FormatNano(maxBudget))
	}
	return n, nil
}

// jsonObject reads an object of any content, as canonical JSON.
func (f *fieldReader) jsonObject(name string) *string {
	raw, ok := f.take(name)
	if !ok {
		return nil
	}
	v, err := decodeValue(name, raw)
	if err != nil {
		f.fail(err)
		return nil
	}
	switch v.(type) {
	case nil:
		v = map[string]any{}
	case map[string]any:
	default:
		f.fail(badField(name, "must be an object"))
		return nil
	}
	text := string(encodeValue(v))
	return &text
}

// encodeValue writes what decodeValue read; that cannot fail.
func encodeValue(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

// isCount says whether raw is a whole number, 0 or more.
func isCount(raw json.RawMessage) bool {
	_, err := strconv.ParseUint(string(bytes.TrimSpace(raw)), 10, 63)
	return err == nil
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }
