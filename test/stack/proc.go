package stack

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of the times in /proc: 100 per second on every Linux.
const clockTick = time.Second / 100

// Usage is what a process and its children have taken so far.
type Usage struct {
	CPU time.Duration
	RSS int64 // bytes, now
}

// stat is what is read of /proc/PID/stat.
type stat struct {
	pid, parent int
	cpu         time.Duration // its own and that of children that have ended
	rss         int64
}

// readStat reads one process; false: it is gone.
func readStat(pid int) (stat, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, false
	}
	// The name is in parentheses and may hold anything: count from its end.
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest)
	if len(f) < 22 {
		return stat{}, false
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(f[i], 10, 64) // the kernel writes numbers
		return n
	}
	ticks := number(11) + number(12) + number(13) + number(14)
	return stat{
		pid: pid, parent: int(number(1)), cpu: time.Duration(ticks) * clockTick,
		rss: number(21) * int64(os.Getpagesize()),
	}, true
}

// children lists the live children of a process.
func children(parent int) []int {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var found []int
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if s, ok := readStat(pid); ok && s.parent == parent {
			found = append(found, pid)
		}
	}
	return found
}

// UsageOf adds up a process and its children.
func UsageOf(pid int) Usage {
	var u Usage
	for _, id := range append(children(pid), pid) {
		if s, ok := readStat(id); ok {
			u.CPU += s.cpu
			u.RSS += s.rss
		}
	}
	return u
}
