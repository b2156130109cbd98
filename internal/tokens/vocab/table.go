// Package vocab holds the vocabularies of the encodings as tables that are used
// in place from the binary: nothing is decoded, built or allocated when a
// process starts. The tables are compiled by vocab/compile; DESIGN.md of package
// tokens says what each is for.
package vocab

import (
	"fmt"
	"unsafe"
)

// None stands where no token is.
const None = ^uint32(0)

// Outside is no token's id, for what stands before or behind a text.
const Outside = uint32(1<<18 - 1)

// Bytes is the number of tokens of one byte: their ids are below it.
const Bytes = 256

// MaxToken is the length of the longest token in bytes.
const MaxToken = 128

// Table is one vocabulary. It is read only and safe for concurrent use. An id is
// a token's rank: the lower of two merges comes first.
type Table struct {
	shortPilots []byte
	short       []uint64 // tokens of at most 8 bytes, zero padded
	shortIDs    []uint32
	longPilots  []byte
	long        [][2]uint64 // tokens of 9 to 16 bytes, zero padded
	longIDs     []uint32
	farPilots   []byte
	far         [][2]uint64 // the first 16 bytes of longer tokens
	farGroups   []uint32    // for each slot: where its tokens begin in farIDs
	farCounts   []uint32    // and how many there are
	farIDs      []uint32    // the longest of a group first
	farStarts   []uint32    // for each of farIDs, and one more: where its bytes begin in farText
	farText     []byte
	pairPilots  []byte
	pairs       []uint64 // left id, right id, merged id: 18 bits each
	twoBytes    []uint32 // by two bytes, little-endian: their token
	byteIDs     []uint32 // by one byte: its token
	lengths     []uint32 // by StartHash: which lengths tokens that start so may have
	tokens      []token  // by id

	data string // all of it
}

// token is how a token came to be and what it starts with.
type token struct {
	left, right uint32 // the two tokens that it was merged from
	shorter     uint32 // the longest token that it starts with, other than itself
	length      uint32 // in bytes
}

// Magic begins a compiled table: the format's name and version.
const Magic = "penstock vocab 1"

// Sections are the parts of a compiled table in their order. Behind Magic stand
// their lengths in bytes, each 8 bytes, then the parts, each at a multiple of 64.
const Sections = 19

const headerSize = len(Magic) + Sections*8

// Align rounds a position up to where a section may begin.
func Align(n int) int { return (n + 63) &^ 63 }

// open finds the sections of a compiled table and views them as what they are.
// The data must stay as it is.
func open(data string) (*Table, error) {
	if len(data) < headerSize || data[:len(Magic)] != Magic {
		return nil, fmt.Errorf("cannot open a vocabulary: it does not begin with %q; run 'make generate' and build again", Magic)
	}
	var parts [Sections]string
	at := Align(headerSize)
	for i := range parts {
		size := int(word(data, len(Magic)+8*i))
		if size < 0 || at+size > len(data) {
			return nil, fmt.Errorf("cannot open a vocabulary: part %d ends beyond its %d bytes; run 'make generate' and build again", i, len(data))
		}
		parts[i] = data[at : at+size]
		at = Align(at + size)
	}
	return &Table{
		shortPilots: view[byte](parts[0]), short: view[uint64](parts[1]), shortIDs: view[uint32](parts[2]),
		longPilots: view[byte](parts[3]), long: view[[2]uint64](parts[4]), longIDs: view[uint32](parts[5]),
		farPilots: view[byte](parts[6]), far: view[[2]uint64](parts[7]),
		farGroups: view[uint32](parts[8]), farCounts: view[uint32](parts[9]),
		farIDs: view[uint32](parts[10]), farStarts: view[uint32](parts[11]), farText: view[byte](parts[12]),
		pairPilots: view[byte](parts[13]), pairs: view[uint64](parts[14]),
		twoBytes: view[uint32](parts[15]), byteIDs: view[uint32](parts[16]),
		lengths: view[uint32](parts[17]), tokens: view[token](parts[18]),
		data: data,
	}, nil
}

// Warm reads a byte of each page, so that the table is in memory, and returns
// their sum, so that it is read indeed.
func (t *Table) Warm() (sum byte) {
	const page = 4096
	for i := 0; i < len(t.data); i += page {
		sum += t.data[i]
	}
	return sum
}

func word(s string, at int) uint64 {
	w := uint64(0)
	for i := 7; i >= 0; i-- {
		w = w<<8 | uint64(s[at+i])
	}
	return w
}

// cell is what sections are made of: words of the machine's own byte order.
type cell interface {
	byte | uint32 | uint64 | [2]uint64 | token
}

// view reads a section as a slice without copying it. Tables are little-endian
// and aligned, as are all machines that Penstock is built for and what their
// linkers do with embedded files; where either does not hold, it is decoded.
func view[T cell](section string) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if len(section) == 0 {
		return nil
	}
	data := unsafe.StringData(section)
	if littleEndian() && uintptr(unsafe.Pointer(data))%unsafe.Alignof(zero) == 0 {
		return unsafe.Slice((*T)(unsafe.Pointer(data)), len(section)/size)
	}
	return decode[T](section, size)
}

func littleEndian() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 1
}

// decode copies a section. Every cell is made of words of at most 8 bytes.
func decode[T cell](section string, size int) []T {
	out := make([]T, len(section)/size)
	unit := min(size, 8)
	if size == int(unsafe.Sizeof(token{})) && unsafe.Alignof(out[0]) == 4 {
		unit = 4
	}
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(out))), len(section))
	for i := range raw {
		from := i
		if !littleEndian() {
			from = i/unit*unit + unit - 1 - i%unit
		}
		raw[i] = section[from]
	}
	return out
}
