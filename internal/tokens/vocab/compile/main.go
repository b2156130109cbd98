// Command compile makes the tables of package vocab from the vocabularies that
// github.com/tiktoken-go/tokenizer embeds: one .bin file for each encoding, byte
// for byte the same at each run.
//
//	go run ./internal/tokens/vocab/compile -out internal/tokens/vocab
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tiktoken-go/tokenizer/codec"
)

func main() {
	out := flag.String("out", ".", "the folder that the tables are written to")
	flag.Parse()
	encodings := []struct {
		name string
		open func() *codec.Codec
	}{
		{name: "o200k_base", open: codec.NewO200kBase},
		{name: "cl100k_base", open: codec.NewCl100kBase},
		{name: "p50k_base", open: codec.NewP50kBase},
		{name: "r50k_base", open: codec.NewR50kBase},
	}
	for _, e := range encodings {
		if err := compile(e.open(), filepath.Join(*out, e.name+".bin")); err != nil {
			fmt.Fprintf(os.Stderr, "cannot compile the vocabulary %s: %v\n", e.name, err)
			os.Exit(1)
		}
	}
}

func compile(c *codec.Codec, file string) error {
	v, err := read(c)
	if err != nil {
		return err
	}
	data, err := v.tables()
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, data, 0o644); err != nil { //nolint:gosec // a source file, for all to read
		return err
	}
	fmt.Printf("%s: %d tokens, %d bytes\n", file, len(v.ids), len(data))
	return nil
}
