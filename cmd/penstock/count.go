package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/penstock-gateway/penstock/internal/dialect/openai"
	"github.com/penstock-gateway/penstock/internal/jsonscan"
	"github.com/penstock-gateway/penstock/internal/tokens"
)

// maxCountBytes bounds what is read of one file: the text is held in memory.
const maxCountBytes = 1 << 30

// counting is the command's flags.
type counting struct {
	model    string
	encoding string
	chat     bool
	asJSON   bool
	counter  *tokens.Counter
}

// counted is the count of one file.
type counted struct {
	File     string `json:"file"`
	Tokens   int64  `json:"tokens"`
	Bytes    int    `json:"bytes"`
	Encoding string `json:"encoding"`
	Exact    bool   `json:"exact"`
}

func newCount() *cobra.Command {
	c := &counting{}
	cmd := &cobra.Command{
		Use:   "count [FILE...]",
		Short: "Count the tokens of files or of standard input",
		Long: `Count the tokens of each FILE, or of standard input where none or - is given, as the
gateway does: exactly for OpenAI's encodings, in o200k_base as an estimate for others.

A file is counted as plain text; special tokens in it, such as <|endoftext|>, are text,
too. With --chat a file is the JSON body of a chat completion request, and the count is
the prompt's, as the gateway holds money for it. Files may be up to 1 GiB.`,
		Example: `  penstock count README.md
  echo "Hello, world" | penstock count --model gpt-4
  penstock count --encoding cl100k_base --json docs/*.md
  penstock count --chat request.json`,
		RunE: func(cmd *cobra.Command, files []string) error { return c.run(cmd, files) },
	}
	f := cmd.Flags()
	f.StringVar(&c.model, "model", "", "count as this model does (default: the body's with --chat, else gpt-4o)")
	f.StringVar(&c.encoding, "encoding", "", "count in this encoding: o200k_base, cl100k_base, p50k_base or r50k_base")
	f.BoolVar(&c.chat, "chat", false, "the input is a chat completion request in JSON")
	f.BoolVar(&c.asJSON, "json", false, "print a JSON object for each file")
	cmd.MarkFlagsMutuallyExclusive("model", "encoding")
	return cmd
}

func (c *counting) run(cmd *cobra.Command, files []string) error {
	var err error
	if c.encoding != "" {
		if _, err = tokens.EncodingNamed(c.encoding); err != nil {
			return fmt.Errorf("%w (--encoding)", err)
		}
	}
	if c.counter, err = tokens.NewCounter(); err != nil {
		return err
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	total := counted{File: "total"}
	for _, file := range files {
		n, err := c.file(cmd.InOrStdin(), file)
		if err != nil {
			return err
		}
		if err := c.print(cmd.OutOrStdout(), n, len(files) > 1); err != nil {
			return err
		}
		total.Tokens += n.Tokens
	}
	if len(files) > 1 && !c.asJSON {
		return c.print(cmd.OutOrStdout(), total, true)
	}
	return nil
}

func (c *counting) print(out io.Writer, n counted, named bool) error {
	var err error
	switch {
	case c.asJSON:
		err = json.NewEncoder(out).Encode(n)
	case named:
		_, err = fmt.Fprintf(out, "%9d %s\n", n.Tokens, n.File)
	default:
		_, err = fmt.Fprintln(out, n.Tokens)
	}
	return err
}

func (c *counting) file(stdin io.Reader, name string) (counted, error) {
	text, err := readFile(stdin, name)
	if err != nil {
		return counted{}, fmt.Errorf("cannot count %s: %w", name, err)
	}
	n := counted{File: name, Bytes: len(text)}
	model := c.model
	if model == "" {
		model = "gpt-4o"
	}
	var chat *jsonscan.Chat
	if c.chat {
		if chat, err = jsonscan.ScanChat(text, jsonscan.Limits{}); err != nil {
			return counted{}, fmt.Errorf("cannot count %s: %w", name, err)
		}
		if c.model == "" {
			model = chat.Model
		}
	}
	encoding, exact := tokens.ForModel(model)
	if c.encoding != "" {
		if encoding, err = tokens.EncodingNamed(c.encoding); err != nil {
			return counted{}, err
		}
		exact = true
	}
	n.Encoding = encoding.String()
	ofText := func(text []byte) int { return c.counter.Count(encoding, text) }
	if chat == nil {
		n.Tokens, n.Exact = int64(ofText(text)), exact
		return n, nil
	}
	var scratch []byte
	size := openai.CountPrompt(text, chat, model, ofText, &scratch)
	n.Tokens, n.Exact = size.Tokens, exact && size.Exact
	return n, nil
}

func readFile(stdin io.Reader, name string) ([]byte, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxCountBytes+1))
	if err == nil && len(text) > maxCountBytes {
		return nil, errors.New("it is larger than 1 GiB; split it at a line's end")
	}
	return text, err
}
