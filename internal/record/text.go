package record

import (
	"strings"
	"unicode/utf8"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

// Bounds of a record's texts, in bytes. Many of them come from clients; together
// they keep a record within a few KiB, so that it fits the journal and a close is
// not much longer than its open.
const (
	maxID   = 128
	maxName = 256
	maxURL  = 512
	maxWord = 64
	maxTags = 32
)

// clean cuts and repairs the texts of rec in place: a record that a client has
// made unwritable would be a request without a record.
func clean(rec *ledgerv1.SpendRecord) {
	for _, f := range []struct {
		text *string
		max  int
	}{
		{&rec.RequestId, maxID}, {&rec.KeyId, maxID}, {&rec.KeyAlias, maxName},
		{&rec.UserId, maxName}, {&rec.TeamId, maxName}, {&rec.OrganizationId, maxName}, {&rec.EndUser, maxName},
		{&rec.CallType, maxWord}, {&rec.RequestedModel, maxName}, {&rec.Model, maxName}, {&rec.ModelId, maxID},
		{&rec.Provider, maxWord}, {&rec.ApiBase, maxURL}, {&rec.ErrorCode, maxWord}, {&rec.PriceVersion, maxWord},
		{&rec.UpstreamId, maxID}, {&rec.ClientIp, maxWord},
	} {
		*f.text = cleanText(*f.text, f.max)
	}
	rec.Tags = rec.Tags[:min(len(rec.Tags), maxTags)]
	for i, tag := range rec.Tags {
		// Tags may be shared with the key's cache entry: copy before writing.
		if c := cleanText(tag, maxID); c != tag {
			rec.Tags = append([]string(nil), rec.Tags...)
			rec.Tags[i] = c
		}
	}
}

// cleanText returns s as the wire and the database take it, at most max bytes:
// valid UTF-8 without NUL.
func cleanText(s string, max int) string {
	if len(s) > max {
		s = s[:max]
		for i := 0; i < utf8.UTFMax && len(s) > 0 && !endsWhole(s); i++ {
			s = s[:len(s)-1]
		}
	}
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\x00", "?")
	return s
}

// endsWhole says that s does not end in the middle of a character.
func endsWhole(s string) bool {
	r, size := utf8.DecodeLastRuneInString(s)
	return r != utf8.RuneError || size != 1
}

// shorten empties texts that only describe, one after the other, until the record
// fits room, and returns whether it does. What money and identity need stays.
func shorten(rec *ledgerv1.SpendRecord, room int, size func(*ledgerv1.SpendRecord) int) bool {
	for _, text := range []*string{&rec.ApiBase, &rec.UpstreamId, &rec.ClientIp, &rec.PriceVersion, &rec.ErrorCode} {
		if size(rec) <= room {
			return true
		}
		*text = ""
	}
	for _, text := range []*string{&rec.Model, &rec.RequestedModel, &rec.ModelId, &rec.EndUser, &rec.KeyAlias} {
		if size(rec) <= room {
			return true
		}
		*text = cleanText(*text, maxWord)
	}
	if size(rec) > room {
		rec.Tags = nil
	}
	return size(rec) <= room
}
