package vocab

import (
	_ "embed" // the tables below
	"fmt"
)

// The compiled vocabularies, see vocab/compile.
var (
	//go:embed o200k_base.bin
	o200kBase string
	//go:embed cl100k_base.bin
	cl100kBase string
	//go:embed p50k_base.bin
	p50kBase string
	//go:embed r50k_base.bin
	r50kBase string
)

// Open returns the vocabulary of an encoding by the name that tiktoken uses.
func Open(encoding string) (*Table, error) {
	data := ""
	switch encoding {
	case "o200k_base":
		data = o200kBase
	case "cl100k_base":
		data = cl100kBase
	case "p50k_base":
		data = p50kBase
	case "r50k_base":
		data = r50kBase
	default:
		return nil, fmt.Errorf("cannot open the vocabulary of %q: unknown", encoding)
	}
	t, err := open(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", encoding, err)
	}
	return t, nil
}
