package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/penstock-gateway/penstock/internal/tokens"
)

// oracle is a process of the original tokenizer; see node/count.js for what is said to
// it. It is for one goroutine.
type oracle struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	request []byte
}

// startOracle starts node with the script. The script knows an encoding by its place
// among the arguments, which is its number here.
func startOracle(node, script string) (*oracle, error) {
	arguments := []string{script}
	for _, e := range encodings {
		arguments = append(arguments, e.String())
	}
	o := &oracle{command: exec.Command(node, arguments...)}
	o.command.Stderr = os.Stderr
	in, err := o.command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot talk to the original tokenizer: %w", err)
	}
	out, err := o.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot talk to the original tokenizer: %w", err)
	}
	if err := o.command.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the original tokenizer: %w", err)
	}
	o.in, o.out = in, bufio.NewReader(out)
	return o, nil
}

// ask sends texts. It returns when they are sent; the answer must be read before the
// next texts are.
func (o *oracle) ask(e tokens.Encoding, texts [][]byte) error {
	b := binary.LittleEndian.AppendUint32(o.request[:0], 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(e))
	for _, text := range texts {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
		b = append(b, text...)
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
	o.request = b
	if _, err := o.in.Write(b); err != nil {
		return fmt.Errorf("cannot ask the original tokenizer: %w", err)
	}
	return nil
}

// answer reads the counts of n texts.
func (o *oracle) answer(n int) ([]int, error) {
	raw := make([]byte, 4*n)
	if _, err := io.ReadFull(o.out, raw); err != nil {
		return nil, fmt.Errorf("cannot read the original tokenizer's answer: %w", err)
	}
	counts := make([]int, n)
	for i := range counts {
		counts[i] = int(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return counts, nil
}

// close ends the process.
func (o *oracle) close() error {
	o.in.Close()
	if err := o.command.Wait(); err != nil {
		return fmt.Errorf("the original tokenizer failed: %w", err)
	}
	return nil
}
