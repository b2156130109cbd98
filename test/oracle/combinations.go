package main

import (
	"iter"
	"strings"

	"github.com/penstock-gateway/penstock/internal/tokens"
)

// representatives are characters of each class that a pattern tells apart, those whose
// bytes merge with their neighbours' where there are some: only then does a count show
// where a piece ends.
var representatives = strings.Split("a B s ſ 1 ² ٣ ǅ ʰ é É ন ে \u0301 漢 ' / . \x00 😀 \u00a0 \t \r \n", " ")

const longestCombination = 4

// combinationBatches are all texts of up to four representatives and blanks, each also
// with a letter after it, so that its end is not the text's.
func combinationBatches(e tokens.Encoding) iter.Seq[batch] {
	alphabet := append([]string{" "}, representatives...)
	total := 0
	for range longestCombination {
		total = (total + 1) * len(alphabet)
	}
	return func(yield func(batch) bool) {
		for first := 1; first <= total; first += textsPerBatch {
			if !yield(combinationBatch(e, alphabet, first, min(textsPerBatch, total-first+1))) {
				return
			}
		}
	}
}

func combinationBatch(e tokens.Encoding, alphabet []string, first, n int) batch {
	return batch{
		suite:    combinationsSuite,
		encoding: e,
		texts: func() [][]byte {
			texts := make([][]byte, 0, 2*n)
			for i := first; i < first+n; i++ {
				text := combination(alphabet, i)
				texts = append(texts, text, append(text[:len(text):len(text)], 'a'))
			}
			return texts
		},
		origin: func(int) string { return "a combination" },
	}
}

// combination is text n, from 1 on, of all texts over an alphabet, shorter ones first.
func combination(alphabet []string, n int) []byte {
	var text []byte
	for ; n > 0; n = (n - 1) / len(alphabet) {
		text = append(text, alphabet[(n-1)%len(alphabet)]...)
	}
	return text
}
