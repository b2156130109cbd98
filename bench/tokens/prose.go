package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// dictionary is what the Debian package wamerican-large installs: 170,421 words.
const dictionary = "/usr/share/dict/american-english-large"

// shortWords are the words of one or two letters that are English and not the name of a
// unit or an element, of which the dictionary has many.
const shortWords = " a I am an as at be by do go he if in is it me my no of on or so to up us we "

// The distribution of words is Zipf's with the head flattened as Mandelbrot did: rank k
// comes with a frequency of (zipfShift+k)^-zipfExponent.
const (
	zipfExponent = 1.01
	zipfShift    = 4
)

// loadWords reads the dictionary in order of frequency. Nobody ships English frequencies
// under a free licence, but a vocabulary is ordered by them: what was merged early is
// frequent. Words that are not in the vocabulary are rare; their order is drawn.
func loadWords(path string, ranks map[string]int) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the dictionary for prose: install the Debian package wamerican-large: %w", err)
	}
	words := slices.DeleteFunc(strings.Fields(string(text)), func(w string) bool {
		return len(w) <= 2 && !strings.Contains(shortWords, " "+w+" ")
	})
	r := rand.New(rand.NewPCG(1, 1))
	r.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	slices.SortStableFunc(words, func(a, b string) int { return rankOf(ranks, a) - rankOf(ranks, b) })
	return words, nil
}

func rankOf(ranks map[string]int, word string) int {
	if rank, ok := ranks[" "+word]; ok {
		return rank
	}
	return 1 << 30
}

// prose is English-like text of at least size bytes, the same for the same seed.
func prose(words []string, seed uint64, size int) []byte {
	r := rand.New(rand.NewPCG(seed, 2))
	zipf := rand.NewZipf(r, zipfExponent, zipfShift, uint64(len(words)-1))
	var text []byte
	begin := true // of a sentence
	for len(text) < size {
		switch word := words[zipf.Uint64()]; {
		case r.IntN(50) == 0:
			text = fmt.Append(text, r.IntN(10_000))
		case begin:
			first, size := utf8.DecodeRuneInString(word)
			text = append(utf8.AppendRune(text, unicode.ToUpper(first)), word[size:]...)
		default:
			text = append(text, word...)
		}
		mark := punctuation(r)
		begin = mark[0] != ' ' && mark[0] != ','
		text = append(text, mark...)
	}
	return text
}

// punctuation is what stands behind a word.
func punctuation(r *rand.Rand) string {
	switch n := r.IntN(200); {
	case n < 2:
		return ".\n\n"
	case n < 12:
		return ". "
	case n < 13:
		return "? "
	case n < 26:
		return ", "
	}
	return " "
}
