package main

import (
	"math/rand/v2"
	"strings"

	"github.com/penstock-gateway/penstock/internal/tokens"
)

// words is a vocabulary that tokenizers split in different ways: common English, long
// words, names of code, numbers, other alphabets.
var words = strings.Fields(`the of and to in is that for it as was with be by on not this but from or have an they which
one you were all her she there would their we him been has when who will no more if out so up said what its about than into
them can only other time new some could these two may first then do any like my now over such our man me even most made after
also did many off before must well back through years where much your way down should because long each just state those people
gateway request budget latency throughput kubernetes deployment configuration authentication authorization observability
internationalization characteristics infrastructure responsibilities misunderstanding electroencephalography
func return err nil context.Context map[string]any json:"model" if(x>=0){y+=1;} SELECT * FROM spend_records WHERE
1999 2048 3.14159 0x7fff 1,000,000 42% $19.99 Zürich naïve café Straße übermäßig données Größenordnung
日本語 東京都 データベース 機械学習 привет мир распределённая система 你好 世界 한국어 مرحبا 🙂 👩‍💻`)

// prompt is text of n words, the same for the same seed: sentences and paragraphs.
func prompt(seed int64, n int) string {
	r := rand.New(rand.NewPCG(uint64(seed), 7))
	var b strings.Builder
	sentence := 0
	for i := range n {
		w := words[r.IntN(len(words))]
		// Common words come often, as in any text.
		if r.IntN(3) > 0 {
			w = words[r.IntN(90)]
		}
		b.WriteString(w)
		switch sentence++; {
		case i == n-1:
		case sentence > 8 && r.IntN(6) == 0 && r.IntN(5) == 0:
			b.WriteString(".\n\n")
			sentence = 0
		case sentence > 8 && r.IntN(6) == 0:
			b.WriteString(". ")
			sentence = 0
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// tokensPerWord is how many tokens a word of prompt makes.
func tokensPerWord() (float64, error) {
	counter, err := tokens.NewCounter()
	if err != nil {
		return 0, err
	}
	const sample = 5_000
	return float64(counter.Count(tokens.O200kBase, []byte(prompt(0, sample)))) / sample, nil
}
