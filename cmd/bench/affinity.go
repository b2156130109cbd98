package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cpuSet reads a list as taskset takes it: "0", "0,2" or "0-3".
func cpuSet(list string) (*unix.CPUSet, error) {
	set := &unix.CPUSet{}
	for _, part := range strings.Split(list, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		from, err1 := strconv.Atoi(low)
		to, err2 := strconv.Atoi(high)
		if err1 != nil || err2 != nil || from < 0 || to < from || to > 1023 {
			return nil, fmt.Errorf("cannot read the list of CPUs %q: want for example 0 or 1,2 or 0-3", list)
		}
		for cpu := from; cpu <= to; cpu++ {
			set.Set(cpu)
		}
	}
	return set, nil
}

// pinSelf moves this process to some CPUs; what it starts later inherits them.
func pinSelf(list string) error {
	set, err := cpuSet(list)
	if err != nil {
		return err
	}
	threads, err := filepath.Glob("/proc/self/task/[0-9]*")
	if err != nil {
		return err
	}
	for _, dir := range threads {
		tid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(tid, set); err != nil && !os.IsNotExist(err) && err != unix.ESRCH {
			return fmt.Errorf("cannot run on CPUs %s (--load-cpus): %w", list, err)
		}
	}
	return nil
}
