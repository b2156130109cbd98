package postgres_test

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/store/postgres"
	"github.com/penstock-gateway/penstock/test/pg"
)

// name stands for a database's name in DNS: it leads to one server, then to another.
type name struct {
	listener net.Listener

	mu     sync.Mutex
	target string
	conns  map[net.Conn]bool
	done   sync.WaitGroup
}

func newName(t *testing.T, target string) *name {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	n := &name{listener: l, target: target, conns: map[net.Conn]bool{}}
	n.done.Go(n.serve)
	t.Cleanup(func() {
		l.Close()
		n.move("")
		n.done.Wait()
	})
	return n
}

// move leads new connections elsewhere and cuts those that are open.
func (n *name) move(target string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.target = target
	for c := range n.conns {
		c.Close()
	}
	clear(n.conns)
}

func (n *name) serve() {
	for {
		in, err := n.listener.Accept()
		if err != nil {
			return
		}
		n.mu.Lock()
		out, err := net.Dial("tcp", n.target)
		if err != nil {
			in.Close()
		} else {
			n.conns[in], n.conns[out] = true, true
			n.done.Go(func() { copyAndClose(in, out) })
			n.done.Go(func() { copyAndClose(out, in) })
		}
		n.mu.Unlock()
	}
}

func copyAndClose(to, from net.Conn) {
	_, _ = io.Copy(to, from) // ends when either side does
	to.Close()
	from.Close()
}

// A failover: connections are cut, the name leads to the standby, which takes writes only
// some time later. PgBouncer must not keep its connection to a server that is read-only.
func TestFailover(t *testing.T) {
	t.Parallel()
	primary, err := pg.Start(t.Context(), pg.Config{})
	check(t, err)
	defer func() { _ = primary.Stop() }()
	db := primary.Database(t)
	_, err = postgres.Migrate(t.Context(), primary.URL(db), postgres.Options{})
	check(t, err)
	standby, err := pg.StartStandby(t.Context(), primary)
	check(t, err)
	defer func() { _ = standby.Stop() }()
	n := newName(t, primary.Address())
	b, err := pg.StartBouncer(t.Context(), pg.BouncerConfig{ServerURL: "postgres://postgres:x@" + n.listener.Addr().String() + "/?sslmode=disable"})
	check(t, err)
	defer func() { _ = b.Stop() }()

	c := newClient(t, "h", b.URL(db))
	for range 3 {
		c.awaitGood()
	}
	n.move(standby.Address())
	c.awaitCause("the database is read-only")
	check(t, standby.Promote(t.Context()))
	if took := c.awaitGood(); took > 5*time.Second {
		t.Errorf("works again only %v after the promotion", took)
	}
	check(t, primary.Kill())
	for range 3 {
		c.awaitGood()
	}
	got, err := standby.Query(t.Context(), db, "SELECT count(*), count(DISTINCT seq) FROM spend_records")
	if want := fmt.Sprintf("%d|%d", c.seq, c.seq); err != nil || got != want {
		t.Errorf("records|different: got %s (%v), want %s", got, err, want)
	}
}
