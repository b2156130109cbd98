package main

import (
	"fmt"
	"io"
)

// report collects checks and prints each as it is made.
type report struct {
	out            io.Writer
	passed, failed int
}

// check notes one check; the text says what was found.
func (r *report) check(what string, ok bool, format string, args ...any) {
	verdict := "ok  "
	if ok {
		r.passed++
	} else {
		r.failed++
		verdict = "FAIL"
	}
	fmt.Fprintf(r.out, "%s %s: %s\n", verdict, what, fmt.Sprintf(format, args...))
}

// fail notes a check that could not be made.
func (r *report) fail(what string, err error) { r.check(what, false, "%v", err) }

// end prints the sum and is the command's verdict.
func (r *report) end() error {
	fmt.Fprintf(r.out, "checks: %d passed, %d failed\n", r.passed, r.failed)
	if r.failed > 0 {
		return fmt.Errorf("%d checks failed", r.failed)
	}
	return nil
}
