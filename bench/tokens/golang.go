package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	pkoukk "github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
	"github.com/pkoukk/tiktoken-go-loader/assets"
	"github.com/tiktoken-go/tokenizer/codec"
)

// vocabulary is the file that holds the tokens in order of rank.
const vocabulary = "o200k_base.tiktoken"

// vocabularyRanks gives each token's rank.
func vocabularyRanks() (map[string]int, error) {
	ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe(vocabulary)
	if err != nil {
		return nil, fmt.Errorf("cannot load the vocabulary %s: %w", vocabulary, err)
	}
	return ranks, nil
}

// writeVocabulary puts the vocabulary where other processes find it.
func writeVocabulary(dir string) error {
	b, err := assets.Assets.ReadFile(vocabulary)
	if err != nil {
		return fmt.Errorf("cannot load the vocabulary %s: %w", vocabulary, err)
	}
	return os.WriteFile(filepath.Join(dir, vocabulary), b, 0o600)
}

func openTiktokenGo(context.Context, *environment) (counter, error) {
	c := codec.NewO200kBase()
	return local(func(t *text) int {
		n, err := c.Count(t.str)
		if err != nil {
			return -1 // a count that differs is noticed
		}
		return n
	}), nil
}

func openPkoukk(context.Context, *environment) (counter, error) {
	pkoukk.SetBpeLoader(loader.NewOfflineLoader())
	c, err := pkoukk.GetEncoding("o200k_base")
	if err != nil {
		return nil, fmt.Errorf("cannot load pkoukk/tiktoken-go: %w", err)
	}
	return local(func(t *text) int { return len(c.EncodeOrdinary(t.str)) }), nil
}
