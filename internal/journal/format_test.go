package journal

import (
	"bytes"
	"errors"
	"hash/crc32"
	"slices"
	"testing"
)

// sampleSegment is a segment with entries of several sizes, as the ring writes it.
func sampleSegment() (mem []byte, offsets []int) {
	mem = make([]byte, minSegment)
	h := header{identity: Identity{PodUID: "pod", Epoch: [16]byte{1, 2, 3}}, generation: 7, nextSeq: 40, segBytes: minSegment, segments: 1}
	putHeaders(mem, h)
	off := headerBytes
	for i := range uint64(20) {
		payload := bytes.Repeat([]byte{byte('a' + i)}, int(i*i))
		kind := []byte{typeOpen, typeAttempt, typeClose}[i%3]
		word := commitWord(new([32]byte), kind, len(payload), i, 40+i, h.salt(), crc32.Checksum(payload, castagnoli))
		offsets = append(offsets, off)
		off = putEntry(mem, off, word, i, 40+i, payload)
	}
	return mem, append(offsets, off)
}

func TestATornAppendIsNotRead(t *testing.T) {
	t.Parallel()
	whole, offsets := sampleSegment()
	last, end := offsets[len(offsets)-2], offsets[len(offsets)-1]
	// Whatever part of the bytes of the last append is there, without its commit
	// word it is the end of the log.
	for cut := last + 8; cut <= end; cut += 5 {
		mem := slices.Clone(whole)
		clear(mem[last : last+8])
		clear(mem[cut:end])
		l, err := parseSegment(mem)
		if err != nil || len(l.entries) != len(offsets)-2 || l.damaged != 0 {
			t.Fatalf("cut at %d: %d entries, %d damaged, %v", cut-last, len(l.entries), l.damaged, err)
		}
	}
}

// TestBeginningASegmentIsAtomic stops putHeaders after each of its bytes.
func TestBeginningASegmentIsAtomic(t *testing.T) {
	t.Parallel()
	old, offsets := sampleSegment()
	h := header{
		identity: Identity{PodUID: "pod", Epoch: [16]byte{1, 2, 3}}, generation: 8, nextSeq: 60,
		previous: 7, segBytes: minSegment, segments: 1,
	}
	begun := slices.Clone(old)
	putHeaders(begun, h)
	mem := slices.Clone(old)
	check := func(step string, i int) {
		l, err := parseSegment(mem)
		wholeOld := len(l.entries) == len(offsets)-1 && l.header.generation == 7
		emptyNew := len(l.entries) == 0 && l.header.generation == 8
		if err != nil || l.damaged != 0 || !wholeOld && !emptyNew {
			t.Fatalf("%s, byte %d: generation %d, %d entries, %d damaged, %v", step, i, l.header.generation, len(l.entries), l.damaged, err)
		}
	}
	for i := range headerBytes {
		mem[entriesEnd(mem)+i] = begun[entriesEnd(mem)+i]
		check("second header", i)
	}
	for i := range headerBytes {
		mem[i] = begun[i]
		check("first header", i)
	}
	storeWord(mem, headerBytes, 0)
	check("first word", 0)
	if !bytes.Equal(mem, begun) {
		t.Error("the test's order of stores is not that of putHeaders")
	}
}

func TestUnusedSegment(t *testing.T) {
	t.Parallel()
	if _, err := parseSegment(make([]byte, minSegment)); !errors.Is(err, errUnused) {
		t.Errorf("got %v", err)
	}
}

// FuzzParseSegment feeds anything at all.
func FuzzParseSegment(f *testing.F) {
	mem, _ := sampleSegment()
	f.Add(mem)
	f.Add(mem[:600])
	f.Add(mem[:2*headerBytes])
	f.Add([]byte(magic))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, mem []byte) {
		l, err := parseSegment(mem)
		if err != nil {
			return
		}
		room := 0
		for _, e := range l.entries {
			room += entrySize(len(e.payload))
		}
		if room > len(mem) {
			t.Errorf("entries of %d bytes from %d bytes", room, len(mem))
		}
		if _, err := newReplay([]segmentLog{l}).closedWithoutGaps(); err == nil && l.header.nextSeq == 0 {
			t.Error("a header without a next number was taken")
		}
	})
}

// FuzzDamage overwrites a run of a good segment: what lies outside it is found.
func FuzzDamage(f *testing.F) {
	f.Add(uint16(0), []byte{1})
	f.Add(uint16(headerBytes), []byte{0, 0, 0, 0, 0, 0, 0, 0})
	f.Add(uint16(headerBytes+30), []byte("damage"))
	f.Add(uint16(minSegment-headerBytes), bytes.Repeat([]byte{9}, headerBytes))
	f.Fuzz(func(t *testing.T, at uint16, damage []byte) {
		mem, offsets := sampleSegment()
		start := int(at) % len(mem)
		end := start + copy(mem[start:], damage)
		if start < headerBytes && end > entriesEnd(mem) {
			return
		}
		l, err := parseSegment(mem)
		if err != nil {
			t.Fatalf("one header is whole, but: %v", err)
		}
		found := make(map[uint64]bool)
		for _, e := range l.entries {
			found[e.id] = true
		}
		for i := range offsets[:len(offsets)-1] {
			touched := start < offsets[i+1] && end > offsets[i]
			if !touched && !found[uint64(i)] {
				t.Errorf("entry %d at [%d,%d) is lost to damage at [%d,%d)", i, offsets[i], offsets[i+1], start, end)
			}
		}
	})
}

// FuzzParseFolder checks that a name that is taken is the name it stands for.
func FuzzParseFolder(f *testing.F) {
	f.Add("pod-1-00112233445566778899aabbccddeeff")
	f.Add("a-b-c-7-00112233445566778899aabbccddeeff")
	f.Fuzz(func(t *testing.T, name string) {
		if id, err := ParseFolder(name); err == nil && id.Folder() != name {
			t.Errorf("%q is read as %q", name, id.Folder())
		}
	})
}
