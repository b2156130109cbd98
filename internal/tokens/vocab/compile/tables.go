package main

import (
	"encoding/binary"
	"errors"
	"sort"

	"github.com/penstock-gateway/penstock/internal/tokens/vocab"
)

// writer gathers the sections of a table.
type writer struct {
	sections [][]byte
	err      error
}

func (w *writer) bytes(b []byte) { w.sections = append(w.sections, b) }

func (w *writer) words(all []uint64) {
	var b []byte
	for _, x := range all {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	w.bytes(b)
}

func (w *writer) ids(all []uint32) {
	var b []byte
	for _, x := range all {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	w.bytes(b)
}

// tables is the file of a vocabulary.
func (v *words) tables() ([]byte, error) {
	w := new(writer)
	v.short(w)
	v.long(w)
	v.far(w)
	v.pairs(w)
	v.small(w)
	v.tokens(w)
	if w.err != nil {
		return nil, w.err
	}
	if len(w.sections) != vocab.Sections {
		return nil, errors.New("the sections are not as many as package vocab reads")
	}
	out := []byte(vocab.Magic)
	for _, s := range w.sections {
		out = binary.LittleEndian.AppendUint64(out, uint64(len(s)))
	}
	for _, s := range w.sections {
		out = append(out, make([]byte, vocab.Align(len(out))-len(out))...)
		out = append(out, s...)
	}
	return out, nil
}

// key is up to 16 bytes of text, zero padded.
func key(text string) [2]uint64 {
	var b [16]byte
	copy(b[:], text)
	return [2]uint64{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])}
}

// lengthFrom lists the tokens of from to to bytes by their ids. Those that end in
// NUL are left out, which padding would hide.
func (v *words) lengthFrom(from, to int) (texts []string, ids []uint32) {
	for id := range v.last + 1 {
		text, ok := v.byID[id]
		if n := len(text); ok && n >= from && n <= to && text[n-1] != 0 {
			texts, ids = append(texts, text), append(ids, id)
		}
	}
	return texts, ids
}

func (w *writer) perfect(hashes []uint64) perfect {
	p, err := hashAll(hashes)
	if err != nil {
		w.err = err
	}
	w.bytes(p.pilots)
	return p
}

func (v *words) short(w *writer) {
	texts, ids := v.lengthFrom(1, 8)
	hashes := make([]uint64, len(texts))
	for i, t := range texts {
		hashes[i] = vocab.Hash1(key(t)[0])
	}
	p := w.perfect(hashes)
	slots, slotIDs := make([]uint64, len(p.slots)), make([]uint32, len(p.slots))
	for s, i := range p.slots {
		slotIDs[s] = vocab.None // an empty slot holds 0, which is no text's key
		if i >= 0 {
			slots[s], slotIDs[s] = key(texts[i])[0], ids[i]
		}
	}
	w.words(slots)
	w.ids(slotIDs)
}

// twoWords writes a table of keys of 16 bytes and returns it.
func (w *writer) twoWords(texts []string) perfect {
	hashes := make([]uint64, len(texts))
	for i, t := range texts {
		k := key(t)
		hashes[i] = vocab.Hash2(k[0], k[1])
	}
	p := w.perfect(hashes)
	slots := make([]uint64, 0, 2*len(p.slots))
	for _, i := range p.slots {
		k := [2]uint64{}
		if i >= 0 {
			k = key(texts[i])
		}
		slots = append(slots, k[0], k[1])
	}
	w.words(slots)
	return p
}

func (v *words) long(w *writer) {
	texts, ids := v.lengthFrom(9, 16)
	p := w.twoWords(texts)
	slotIDs := make([]uint32, len(p.slots))
	for s, i := range p.slots {
		slotIDs[s] = vocab.None
		if i >= 0 {
			slotIDs[s] = ids[i]
		}
	}
	w.ids(slotIDs)
}

// far writes the tokens of more than 16 bytes, grouped by their first 16.
func (v *words) far(w *writer) {
	texts, _ := v.lengthFrom(17, vocab.MaxToken)
	groups := map[string][]string{}
	var prefixes []string
	for _, t := range texts {
		if groups[t[:16]] == nil {
			prefixes = append(prefixes, t[:16])
		}
		groups[t[:16]] = append(groups[t[:16]], t)
	}
	p := w.twoWords(prefixes)
	from, count := make([]uint32, len(p.slots)), make([]uint32, len(p.slots))
	var ids, starts []uint32
	var text []byte
	for s, i := range p.slots {
		if i < 0 {
			continue
		}
		group := groups[prefixes[i]]
		sort.SliceStable(group, func(i, j int) bool { return len(group[i]) > len(group[j]) })
		from[s], count[s] = uint32(len(ids)), uint32(len(group))
		for _, t := range group {
			ids, starts = append(ids, v.ids[t]), append(starts, uint32(len(text)))
			text = append(text, t...)
		}
	}
	w.ids(from)
	w.ids(count)
	w.ids(ids)
	w.ids(append(starts, uint32(len(text))))
	w.bytes(text)
}

func (v *words) pairs(w *writer) {
	var hashes, pairs []uint64
	for id := range v.last + 1 {
		if s, ok := v.split[id]; ok {
			pair := uint64(s[0])<<18 | uint64(s[1])
			hashes = append(hashes, vocab.Hash1(pair))
			pairs = append(pairs, pair<<18|uint64(id))
		}
	}
	p := w.perfect(hashes)
	slots := make([]uint64, len(p.slots))
	for s, i := range p.slots {
		slots[s] = ^uint64(0)
		if i >= 0 {
			slots[s] = pairs[i]
		}
	}
	w.words(slots)
}

// small writes the tables by one byte, by two bytes, and by the hash of three.
func (v *words) small(w *writer) {
	two := make([]uint32, 1<<16)
	for i := range two {
		two[i] = vocab.None
		if id, ok := v.ids[string([]byte{byte(i), byte(i >> 8)})]; ok {
			two[i] = id
		}
	}
	w.ids(two)
	one := make([]uint32, vocab.Bytes)
	for i := range one {
		one[i] = v.ids[string([]byte{byte(i)})]
	}
	w.ids(one)
	lengths := make([]uint32, vocab.StartSets)
	texts, _ := v.lengthFrom(3, vocab.MaxToken)
	for _, t := range texts {
		lengths[vocab.StartHash(key(t)[0])] |= 1 << min(len(t), 17)
	}
	w.ids(lengths)
}

// tokens writes what is known by id.
func (v *words) tokens(w *writer) {
	var cells []uint32
	for id := range v.last + 1 {
		text := v.byID[id]
		split, ok := v.split[id]
		if !ok {
			split = [2]uint32{id, id}
		}
		cells = append(cells, split[0], split[1], v.shorter(text), uint32(len(text)))
	}
	w.ids(cells)
}
