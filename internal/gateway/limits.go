package gateway

import (
	"bufio"
	"bytes"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/penstock-gateway/penstock/internal/config"
)

// quickReconnect suits a socket on the same machine: a collector that restarted
// is found again within a fraction of a second.
var quickReconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
	MinConnectTimeout: time.Second,
}

type limits struct {
	requests int64
	bytes    int64
}

const (
	// bodyShare of the memory may be request bodies: the rest is for answers, the
	// journal, tables and the collector's garbage.
	bodyShare = 4
	// requestMemory is what a request in flight takes beside its body, generously.
	requestMemory = 64 << 10
	defaultMemory = 1 << 30
)

// limitsOf derives the caps from the memory limit where the configuration leaves
// them open.
func limitsOf(s config.Settings, workers int) limits {
	memory := memoryLimit() / int64(max(1, workers))
	l := limits{requests: s.MaxInFlight, bytes: s.MaxBodyBytesInFlight}
	if l.bytes == 0 {
		l.bytes = max(memory/bodyShare, 2*s.MaxBodyBytes)
	}
	if l.requests == 0 {
		l.requests = max(memory/bodyShare/requestMemory, 64)
	}
	return l
}

// limitMemory has the garbage collector keep the process below its share of the
// container's memory: with bodies of many megabytes it would let the heap grow to
// twice what is alive. Who has set GOMEMLIMIT knows better.
func limitMemory(workers int) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryShare(memoryLimit(), workers))
	}
}

// memoryShare leaves a fifth for what is not the heap: stacks, the kernel's buffers,
// the journal's pages.
func memoryShare(limit int64, workers int) int64 { return limit / int64(max(1, workers)) / 5 * 4 }

// memoryLimit is the container's limit, else the machine's memory.
func memoryLimit() int64 {
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// A machine without a limit says "max", or a number beyond any memory.
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n < 1<<50 {
			return n
		}
	}
	return machineMemory()
}

func machineMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return defaultMemory
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[0] != "MemTotal:" {
			continue
		}
		if kib, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			return kib << 10
		}
	}
	return defaultMemory
}

// longestRequest is how long a request may run, all its attempts and their pauses
// together: slots of a pod that was lost with its memory come back that late.
func longestRequest(c *config.Config) time.Duration {
	longest := time.Duration(0)
	for _, d := range c.Deployments {
		longest = max(longest, time.Duration(1+d.NumRetries)*(max(d.Timeout, d.StreamTimeout)+betweenAttempts))
	}
	return longest + slowestClient
}

const (
	betweenAttempts = 10 * time.Second // more than a pause is long
	slowestClient   = time.Minute      // reading the body, and writing what is left of the answer
)
