package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// pin moves this process to one CPU; the children that it starts later inherit that.
func pin(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	threads, err := filepath.Glob("/proc/self/task/[0-9]*")
	if err != nil {
		return err
	}
	for _, dir := range threads {
		tid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("cannot run on CPU %d (--cpu): %w", cpu, err)
		}
	}
	runtime.GOMAXPROCS(1)
	return nil
}
