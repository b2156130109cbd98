package main

import (
	"fmt"
	"io"
	"sync"

	"github.com/penstock-gateway/penstock/internal/tokens"
	"github.com/penstock-gateway/penstock/internal/tokens/tokenstest"
)

var sprintf = fmt.Sprintf

// following is put after a text that ends in an ASCII letter or digit. No pattern
// crosses that boundary, so the counts add up, and the text's end is no longer the
// end, where a counter goes more slowly and more carefully.
const following = " and a good many plain words follow, more than any counter reads ahead of itself"

// comparison is what is known of the counts of all batches. It is safe for concurrent
// use.
type comparison struct {
	counter        *tokens.Counter
	references     map[tokens.Encoding]*tokenstest.Reference
	referenceEvery int // each such text is counted by the reference, too
	shown          int // differences are printed up to so many
	out            io.Writer

	mu        sync.Mutex
	tallies   map[tallyKey]tally
	reference tally
	printed   int
}

type tallyKey struct {
	suite    suite
	encoding tokens.Encoding
}

type tally struct{ compared, differ int }

func (t *tally) add(other tally) {
	t.compared += other.compared
	t.differ += other.differ
}

// work asks an oracle for the counts of batches until there are no more.
func (c *comparison) work(o *oracle, batches <-chan batch) error {
	after := make(map[tokens.Encoding]int)
	for _, e := range encodings {
		if err := o.ask(e, [][]byte{[]byte(following)}); err != nil {
			return err
		}
		counts, err := o.answer(1)
		if err != nil {
			return err
		}
		after[e] = counts[0]
	}
	for b := range batches {
		texts := b.texts()
		if err := o.ask(b.encoding, texts); err != nil {
			return err
		}
		ours := c.count(b.encoding, texts)
		theirs, err := o.answer(len(texts))
		if err != nil {
			return err
		}
		c.compare(b, texts, ours, theirs, after[b.encoding])
	}
	return nil
}

// counts are the ways in which our counter is asked for one text.
type counts struct {
	first    int
	again    int // when the counter has seen it
	followed int // with more text after it, or -1 where that would not add up
}

func (c *comparison) count(e tokens.Encoding, texts [][]byte) []counts {
	all := make([]counts, len(texts))
	var longer []byte
	for i, text := range texts {
		all[i] = counts{first: c.counter.Count(e, text), again: c.counter.Count(e, text), followed: -1}
		if len(text) > 0 && isLetterOrDigit(text[len(text)-1]) {
			longer = append(append(longer[:0], text...), following...)
			all[i].followed = c.counter.Count(e, longer)
		}
	}
	return all
}

func isLetterOrDigit(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b|0x20 && b|0x20 <= 'z'
}

func (c *comparison) compare(b batch, texts [][]byte, ours []counts, theirs []int, after int) {
	total, reference := tally{compared: len(texts)}, tally{}
	for i, text := range texts {
		want := theirs[i]
		if got := ours[i]; got.first != want || got.again != want || got.followed >= 0 && got.followed != want+after {
			total.differ++
			c.show(sprintf("%s: %s (%s): the original counts %d tokens; ours %d, again %d, %s; the reference %d",
				b.encoding, quote(text), b.origin(i), want, got.first, got.again, got.describe(after), c.references[b.encoding].Count(text)))
		}
		if i%c.referenceEvery == 0 {
			reference.compared++
			if got := c.references[b.encoding].Count(text); got != want {
				reference.differ++
				c.show(sprintf("%s: %s (%s): the original counts %d tokens, the reference %d", b.encoding, quote(text), b.origin(i), want, got))
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := tallyKey{b.suite, b.encoding}
	sum := c.tallies[key]
	sum.add(total)
	c.tallies[key] = sum
	c.reference.add(reference)
}

func (n counts) describe(after int) string {
	if n.followed < 0 {
		return "followed not asked"
	}
	return sprintf("followed %d", n.followed-after)
}

// quote shows a text in ASCII; of a long one the origin tells the rest.
func quote(text []byte) string {
	const most = 400
	if len(text) > most {
		return sprintf("%+q… of %d bytes", text[:most], len(text))
	}
	return sprintf("%+q", text)
}

func (c *comparison) show(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.printed++; c.printed <= c.shown {
		fmt.Fprintln(c.out, line)
	}
}
