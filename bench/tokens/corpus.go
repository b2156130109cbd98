package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// The kinds of text.
const (
	kindProse    = "prose"
	kindMarkdown = "Markdown"
	kindGo       = "Go source"
)

func kinds() []string { return []string{kindProse, kindMarkdown, kindGo} }

// plan is how much is measured.
type plan struct {
	prompts int   // distinct ones of each kind
	tokens  []int // sizes of prompts, ascending; the last one is what the ratios are of
	hostile int   // bytes of a hostile input; it is also measured doubled
	others  int   // the same for other candidates, which would take minutes
}

func (o *options) plan() plan {
	if o.quick {
		return plan{prompts: 2, tokens: []int{500, 750, 1000}, hostile: 4_400, others: 500}
	}
	return plan{prompts: 24, tokens: []int{50_000, 75_000, 100_000}, hostile: 440_000, others: 10_000}
}

// largest is the size that the ratios are of, in tokens.
func (p plan) largest() int { return p.tokens[len(p.tokens)-1] }

// set is prompts of one kind and size.
type set struct {
	kind   string
	tokens int // of each text, exactly
	texts  []*text
}

// corpus is all that is counted.
type corpus struct {
	sets    []*set
	sources map[string]int // bytes of text that the prompts were cut from, where it is bounded
}

// bytesPerToken is more than any of the texts has, so that enough is taken to cut from.
const bytesPerToken = 8

// makeCorpus cuts the prompts and writes them into files for other processes.
func makeCorpus(ctx context.Context, dir string, p plan, count func([]byte) int) (*corpus, error) {
	ranks, err := vocabularyRanks()
	if err != nil {
		return nil, err
	}
	words, err := loadWords(dictionary, ranks)
	if err != nil {
		return nil, err
	}
	readmes, err := markdown(ctx)
	if err != nil {
		return nil, err
	}
	library, err := goSource(ctx)
	if err != nil {
		return nil, err
	}
	size := bytesPerToken*p.largest() + 2*chunk
	raw := map[string]func(i int) []byte{
		kindProse:    func(i int) []byte { return prose(words, uint64(i), size) },
		kindMarkdown: func(i int) []byte { return window(readmes, i, p.prompts, size) },
		kindGo:       func(i int) []byte { return window(library, i, p.prompts, size) },
	}
	c := &corpus{sources: map[string]int{kindMarkdown: len(readmes), kindGo: len(library)}}
	for _, kind := range kinds() {
		sets, err := makeSets(dir, kind, p, raw[kind], count)
		if err != nil {
			return nil, fmt.Errorf("cannot make prompts of %s: %w", kind, err)
		}
		c.sets = append(c.sets, sets...)
	}
	return c, nil
}

// makeSets cuts each of a kind's texts to all sizes.
func makeSets(dir, kind string, p plan, raw func(i int) []byte, count func([]byte) int) ([]*set, error) {
	sets := make([]*set, len(p.tokens))
	for n, tokens := range p.tokens {
		sets[n] = &set{kind: kind, tokens: tokens}
	}
	for i := range p.prompts {
		b := raw(i)
		ends, err := cuts(b, p.tokens, count)
		if err != nil {
			return nil, err
		}
		for n, end := range ends {
			t, err := writeText(dir, fmt.Sprintf("%s-%d-%d", kind, p.tokens[n], i), b[:end:end])
			if err != nil {
				return nil, err
			}
			sets[n].texts = append(sets[n].texts, t)
		}
	}
	return sets, nil
}

func writeText(dir, name string, b []byte) (*text, error) {
	file := filepath.Join(dir, name+".txt")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		return nil, fmt.Errorf("cannot write a prompt (TMPDIR): %w", err)
	}
	return newText(file, b), nil
}

// hard is a text that some libraries count wrong, with what tiktoken gives.
type hard struct {
	text   string
	tokens int
}

// hardTexts are lines with blanks at their end, and a character that is not printed.
func hardTexts() []hard {
	return []hard{
		{"\n \n", 1}, {"a\n    \nb", 3}, {"\r\n    \r\n", 1}, {"x\t\n\t\ny", 3}, {"\t\t\t\n\t\t\t\n", 1},
		{"\x7fabc", 2}, {"a\x7fb", 3},
	}
}
