package stack

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
)

// Relay stands between PgBouncer and PostgreSQL like the database's name in DNS: it
// leads to one server, then to another. It reads along what the server answers, so that
// a test can act in the moment after a commit. Its methods may be called from several
// goroutines, HoldCommit and AwaitCommit by one at a time.
type Relay struct {
	listener net.Listener
	done     sync.WaitGroup

	mu      sync.Mutex
	target  string
	conns   map[net.Conn]bool
	watch   chan int      // gets the rows of the next commit of records
	holding chan struct{} // not nil: that commit's answer is kept until this is closed
}

func newRelay(target string) (*Relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the relay: %w", err)
	}
	r := &Relay{listener: l, target: target, conns: map[net.Conn]bool{}}
	r.done.Go(r.serve)
	return r, nil
}

func (r *Relay) address() string { return r.listener.Addr().String() }

// Cut breaks every connection that is open. New ones are led to the same server.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		c.Close()
	}
	clear(r.conns)
}

// move leads new connections elsewhere and cuts those that are open.
func (r *Relay) move(target string) {
	r.mu.Lock()
	r.target = target
	r.mu.Unlock()
	r.Cut()
}

func (r *Relay) close() {
	r.listener.Close()
	r.Cut()
	r.done.Wait()
}

// AwaitCommit waits until the server's answer to a commit of records has been passed
// on, and tells how many there were.
func (r *Relay) AwaitCommit(ctx context.Context) (rows int, err error) {
	return r.await(ctx, nil)
}

// HoldCommit waits until the server has committed records, tells how many, and keeps
// the answer to itself until release is called: the collector does not know yet.
func (r *Relay) HoldCommit(ctx context.Context) (rows int, release func(), err error) {
	holding := make(chan struct{})
	rows, err = r.await(ctx, holding)
	return rows, sync.OnceFunc(func() { close(holding) }), err
}

func (r *Relay) await(ctx context.Context, holding chan struct{}) (int, error) {
	watch := make(chan int, 1)
	r.mu.Lock()
	r.watch, r.holding = watch, holding
	r.mu.Unlock()
	select {
	case rows := <-watch:
		return rows, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("cannot see a commit of records: %w", ctx.Err())
	}
}

// committed tells who waits of a commit, before its answer is passed on, which is when
// it returns, or after: then it returns what tells. Nil: nobody waits.
func (r *Relay) committed(rows int) (after func()) {
	r.mu.Lock()
	watch, holding := r.watch, r.holding
	r.watch, r.holding = nil, nil
	r.mu.Unlock()
	switch {
	case watch == nil:
		return nil
	case holding == nil:
		return func() { watch <- rows }
	}
	watch <- rows
	<-holding
	return nil
}

func (r *Relay) serve() {
	for {
		in, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		out, err := net.Dial("tcp", r.target)
		if err != nil {
			in.Close()
		} else {
			r.conns[in], r.conns[out] = true, true
			r.done.Go(func() { r.questions(out, in) })
			r.done.Go(func() { r.answers(in, out) })
		}
		r.mu.Unlock()
	}
}

func (r *Relay) end(a, b net.Conn) {
	a.Close()
	b.Close()
	r.mu.Lock()
	delete(r.conns, a)
	delete(r.conns, b)
	r.mu.Unlock()
}

func (r *Relay) questions(to, from net.Conn) {
	defer r.end(to, from)
	_, _ = io.Copy(to, from) // ends when either side does
}

// answers passes messages on one by one: a type, a length that counts itself, and what
// it is about. Nothing else comes without TLS.
func (r *Relay) answers(to, from net.Conn) {
	defer r.end(to, from)
	in, out := bufio.NewReaderSize(from, 32<<10), bufio.NewWriterSize(to, 32<<10)
	var message []byte
	rows := 0 // that were copied in this transaction
	for {
		var err error
		if message, err = readMessage(in, message[:0]); err != nil {
			return
		}
		var told func()
		switch kind, tag := message[0], message[5:]; {
		case kind == 'C' && bytes.HasPrefix(tag, []byte("COPY ")):
			n := 0
			_, _ = fmt.Sscanf(string(tag), "COPY %d", &n) // the server writes a number
			rows += n
		case kind == 'C' && bytes.HasPrefix(tag, []byte("COMMIT")) && rows > 0:
			told = r.committed(rows)
		case kind == 'Z' && tag[0] == 'I': // no transaction is open
			rows = 0
		}
		if _, err = out.Write(message); err == nil && (in.Buffered() == 0 || told != nil) {
			err = out.Flush()
		}
		if told != nil {
			told()
		}
		if err != nil {
			return
		}
	}
}

// mostOfMessage is far above what PostgreSQL answers here.
const mostOfMessage = 64 << 20

func readMessage(in io.Reader, b []byte) ([]byte, error) {
	b = append(b, make([]byte, 5)...)
	if _, err := io.ReadFull(in, b); err != nil {
		return b, err
	}
	n := int(binary.BigEndian.Uint32(b[1:]))
	if n < 4 || n > mostOfMessage {
		return b, fmt.Errorf("cannot read a message of %d bytes", n)
	}
	b = append(b, make([]byte, n-4)...)
	_, err := io.ReadFull(in, b[5:])
	return b, err
}
