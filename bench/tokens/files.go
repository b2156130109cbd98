package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// goEnv asks the go command where something is.
func goEnv(ctx context.Context, name string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", name).Output()
	if err != nil {
		return "", fmt.Errorf("cannot run go env %s (PATH): %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// markdown is every Markdown file of the modules that were downloaded, by name.
func markdown(ctx context.Context) ([]byte, error) {
	root, err := goEnv(ctx, "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	return joined(root, ".md", "cache") // what was downloaded, as it was packed
}

// goSource is Go's standard library with its tests. cmd, whose largest part is tables
// that a program wrote, would drown the rest.
func goSource(ctx context.Context) ([]byte, error) {
	root, err := goEnv(ctx, "GOROOT")
	if err != nil {
		return nil, err
	}
	return joined(filepath.Join(root, "src"), ".go", "cmd", "vendor", "testdata")
}

// joined reads all files of an extension below root in the order of their names, but
// for those in folders of some names, and for those that are not text.
func joined(root, extension string, without ...string) ([]byte, error) {
	skip := map[string]bool{}
	for _, name := range without {
		skip[name] = true
	}
	var all []byte
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && skip[d.Name()]:
			return fs.SkipDir
		case d.IsDir() || !strings.EqualFold(filepath.Ext(path), extension):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if utf8.Valid(text) {
			all = append(append(all, text...), '\n')
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the %s files of %s: %w", extension, root, err)
	}
	return all, nil
}

// window is size bytes of text from the i-th of n evenly spaced lines on. At the text's
// end it goes on at the beginning.
func window(text []byte, i, n, size int) []byte {
	at := i * (len(text) / n)
	at += bytes.IndexByte(text[at:], '\n') + 1
	w := bytes.Clone(text[at:min(at+size, len(text))])
	return append(w, fit(text, min(at, size-len(w)))...)
}
