package main

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// children are the programs in languages that need no compiler. Rust's is built by run.
//
//go:embed children/node children/python
var children embed.FS

// child counts in another process that lives as long as the measurement, so that its
// start is not in the figures. A line of file names, separated by tabs, asks it to count
// each file once; it answers with a line of "tokens:nanoseconds", measured by itself
// around the counting alone, of a text that it holds as its language's string. Its first
// line says that it is ready.
type child struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

// startChild runs a program until it is closed or ctx ends.
func startChild(ctx context.Context, env []string, program string, args ...string) (*child, error) {
	c := &child{name: filepath.Base(program), cmd: exec.CommandContext(ctx, program, args...)}
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", c.name, err)
	}
	if line, err := c.out.ReadString('\n'); err != nil || line != "ready\n" {
		return nil, errors.Join(fmt.Errorf("cannot start %s: it said %q: %w", c.name, line, err), c.close())
	}
	return c, nil
}

func (c *child) pass(texts []*text) (pass, error) {
	files := make([]string, len(texts))
	for i, t := range texts {
		files[i] = t.file
	}
	if _, err := io.WriteString(c.in, strings.Join(files, "\t")+"\n"); err != nil {
		return pass{}, fmt.Errorf("cannot ask %s to count: %w", c.name, err)
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		return pass{}, fmt.Errorf("cannot read the answer of %s: %w", c.name, err)
	}
	p, err := parseAnswer(strings.TrimSuffix(line, "\n"), len(texts))
	if err != nil {
		return pass{}, fmt.Errorf("cannot read the answer of %s: %w", c.name, err)
	}
	return p, nil
}

// parseAnswer reads "tokens:nanoseconds" n times, separated by tabs.
func parseAnswer(line string, n int) (pass, error) {
	p := pass{allocations: -1, bytes: -1}
	for field := range strings.SplitSeq(line, "\t") {
		tokens, elapsed, _ := strings.Cut(field, ":")
		count, err1 := strconv.Atoi(tokens)
		ns, err2 := strconv.ParseInt(elapsed, 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return pass{}, err
		}
		p.tokens = append(p.tokens, count)
		p.elapsed = append(p.elapsed, time.Duration(ns))
	}
	if len(p.tokens) != n {
		return pass{}, fmt.Errorf("it counted %d texts of %d", len(p.tokens), n)
	}
	return p, nil
}

// close lets the child end by itself.
func (c *child) close() error {
	if err := errors.Join(c.in.Close(), c.cmd.Wait()); err != nil {
		return fmt.Errorf("cannot end %s: %w", c.name, err)
	}
	return nil
}

// openNode opens the package of that name.
func openNode(script string) func(context.Context, *environment) (counter, error) {
	return func(ctx context.Context, e *environment) (counter, error) {
		modules := filepath.Join(e.tools, "node", "node_modules")
		if _, err := os.Stat(modules); err != nil {
			return nil, errAbsent
		}
		return startChild(ctx, []string{"NODE_PATH=" + modules}, "node", filepath.Join(e.dir, "children", "node", script))
	}
}

func openPython(ctx context.Context, e *environment) (counter, error) {
	python := filepath.Join(e.tools, "python", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		return nil, errAbsent
	}
	return startChild(ctx, nil, python, filepath.Join(e.dir, "children", "python", "tiktoken_counter.py"), filepath.Join(e.dir, vocabulary))
}

func openRust(ctx context.Context, e *environment) (counter, error) {
	program := filepath.Join(e.tools, "rust", "penstock-bench-tokens")
	if _, err := os.Stat(program); err != nil {
		return nil, errAbsent
	}
	return startChild(ctx, nil, program)
}

// errAbsent is a candidate whose language is not on this machine.
var errAbsent = errors.New("not installed")
