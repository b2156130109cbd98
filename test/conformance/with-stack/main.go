// Command with-stack starts the pod, runs a command that finds it through its
// environment, and stops the pod again. It fails when the command does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/penstock-gateway/penstock/test/conformance"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "with-stack:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	bin := flag.String("bin", "bin", "folder to build the programs into")
	workers := flag.Int("workers", 1, "the gateway's --workers")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: with-stack [-bin DIR] [-workers N] COMMAND [ARGUMENT…]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		return errors.New("cannot run: give a command")
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	pod, err := conformance.Start(ctx, conformance.Config{BinDir: *bin, Workers: *workers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pod.Stop()) }()
	cmd := exec.CommandContext(ctx, flag.Arg(0), flag.Args()[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), pod.Env()...)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cannot complete %s: %w\n%s", flag.Arg(0), err, pod.Logs())
	}
	return nil
}
