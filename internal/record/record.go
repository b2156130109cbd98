// Package record carries the spend record from a request's settle to the
// collector: into the journal before anything is sent, and from there over the
// ledger stream, in order, until the database has it.
package record

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/journal"
)

// Config describes a Recorder. Journal, Client and Holder are required.
type Config struct {
	Journal *journal.Journal
	Client  ledgerv1.LedgerClient
	Holder  *ledgerv1.Holder

	BatchRows  int           // rows per message; default 500
	BatchWait  time.Duration // how long a message that is not full waits for rows; default 10 ms
	Window     int           // rows sent and not acked; default 20,000
	AckTimeout time.Duration // without progress for so long the stream is made anew; default 30 s
	BackoffMin time.Duration // first pause before a reconnect; default 50 ms
	BackoffMax time.Duration // longest pause; default 2 s
	StopFlush  time.Duration // bound of the final flush in Stop; default 10 s
	Logger     *slog.Logger  // default: slog.Default()
}

func (cfg Config) withDefaults() Config {
	setInt := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	setTime := func(v *time.Duration, to time.Duration) {
		if *v == 0 {
			*v = to
		}
	}
	setInt(&cfg.BatchRows, 500)
	setInt(&cfg.Window, 20_000)
	setTime(&cfg.BatchWait, 10*time.Millisecond)
	setTime(&cfg.AckTimeout, 30*time.Second)
	setTime(&cfg.BackoffMin, 50*time.Millisecond)
	setTime(&cfg.BackoffMax, 2*time.Second)
	setTime(&cfg.StopFlush, 10*time.Second)
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return cfg
}

// Recorder writes records to the journal and sends them. All methods may be
// called from several goroutines. It keeps no record in memory: what waits for
// its ack waits in the journal.
type Recorder struct {
	cfg       Config
	buffers   sync.Pool // *[]byte
	shortened atomic.Uint64

	mu    sync.Mutex
	acked uint64
	moved chan struct{} // closed and replaced when acked grows

	cancel context.CancelFunc
	done   chan struct{}
}

// Ticket is the handle of a record that was opened.
type Ticket struct {
	entry journal.Entry
}

// New returns a Recorder that is not started; Open, Attempt and Close work at once.
func New(cfg Config) *Recorder {
	return &Recorder{
		cfg:     cfg.withDefaults(),
		buffers: sync.Pool{New: func() any { return new([]byte) }},
		moved:   make(chan struct{}),
	}
}

// Open journals, before the first dispatch, what is to be booked if the process
// dies before Close: rec with all that is held as its cost and its charges. The
// status is set to interrupted, and texts that are too long are cut, in rec. It
// fails with journal.ErrFull when there is no room; nothing may be sent then.
func (r *Recorder) Open(rec *ledgerv1.SpendRecord) (Ticket, error) {
	rec.Status = ledgerv1.SpendRecord_STATUS_INTERRUPTED
	buf, err := r.marshal(rec)
	if err != nil {
		return Ticket{}, err
	}
	defer r.buffers.Put(buf)
	entry, err := r.cfg.Journal.Open(*buf)
	return Ticket{entry: entry}, err
}

// Attempt replaces what Open wrote, before a further dispatch that may be billed:
// rec has the raised hold. When it fails the dispatch must not be made.
func (r *Recorder) Attempt(t Ticket, rec *ledgerv1.SpendRecord) error {
	rec.Status = ledgerv1.SpendRecord_STATUS_INTERRUPTED
	buf, err := r.marshal(rec)
	if err != nil {
		return err
	}
	defer r.buffers.Put(buf)
	return r.cfg.Journal.Attempt(t.entry, *buf)
}

// Close makes the record final and returns its number. There is always room for
// it; texts that only describe are emptied where it has grown too much since Open.
// It fails with journal.ErrDropped when policy Drop lost the record.
func (r *Recorder) Close(t Ticket, rec *ledgerv1.SpendRecord) (seq uint64, err error) {
	buf, err := r.marshal(rec)
	if err != nil {
		return 0, err
	}
	defer r.buffers.Put(buf)
	seq, err = r.cfg.Journal.Close(t.entry, *buf)
	if !errors.Is(err, journal.ErrTooLarge) {
		return seq, err
	}
	r.shortened.Add(1)
	if !shorten(rec, r.cfg.Journal.CloseRoom(t.entry), func(rec *ledgerv1.SpendRecord) int { return proto.Size(rec) }) {
		return 0, err
	}
	short, err := r.marshal(rec)
	if err != nil {
		return 0, err
	}
	defer r.buffers.Put(short)
	return r.cfg.Journal.Close(t.entry, *short)
}

// marshal writes rec into a pooled buffer; the number is given by the journal.
func (r *Recorder) marshal(rec *ledgerv1.SpendRecord) (*[]byte, error) {
	clean(rec)
	rec.Seq = 0
	buf := r.buffers.Get().(*[]byte)
	out, err := proto.MarshalOptions{}.MarshalAppend((*buf)[:0], rec)
	if err != nil {
		r.buffers.Put(buf)
		return nil, fmt.Errorf("cannot write record: %w", err)
	}
	*buf = out
	return buf, nil
}

// Acked is the highest number that the database has.
func (r *Recorder) Acked() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.acked
}

// NextSeq is the number that the next Close will get.
func (r *Recorder) NextSeq() uint64 { return r.cfg.Journal.Stats().NextSeq }

// Shortened counts records whose describing texts were emptied to make them fit.
func (r *Recorder) Shortened() uint64 { return r.shortened.Load() }

// Start begins to send. It is called once.
func (r *Recorder) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel, r.done = cancel, make(chan struct{})
	go func() {
		defer close(r.done)
		r.send(ctx)
	}()
}

// Flush waits until every record that is closed now is acked, or ctx ends.
func (r *Recorder) Flush(ctx context.Context) error {
	last := r.NextSeq() - 1
	for {
		r.mu.Lock()
		acked, moved := r.acked, r.moved
		r.mu.Unlock()
		if acked >= last {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("cannot flush %d records to the collector: %w", last-acked, ctx.Err())
		}
	}
}

// Stop flushes, for at most Config.StopFlush and within ctx, and ends the sender.
// Records that did not get through stay in the journal, for adoption. The journal
// is stopped after the Recorder, by its owner.
func (r *Recorder) Stop(ctx context.Context) error {
	if r.done == nil {
		return nil
	}
	flush, cancel := context.WithTimeout(ctx, r.cfg.StopFlush)
	defer cancel()
	err := r.Flush(flush)
	r.cancel()
	<-r.done
	return err
}
