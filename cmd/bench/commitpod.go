package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/test/pg"
	"github.com/penstock-gateway/penstock/test/stack"
)

// ledgerPod is the part of a pod that records pass after the gateway: a spend-collector
// process and a PgBouncer of its own.
type ledgerPod struct {
	dir     string
	bouncer *pg.Bouncer
	cmd     *exec.Cmd
	conn    *grpc.ClientConn
}

func startLedgerPod(ctx context.Context, bin string, server *pg.Server, database string) (*ledgerPod, error) {
	p := &ledgerPod{}
	var err error
	if p.dir, err = os.MkdirTemp("", "pbl"); err != nil {
		return nil, fmt.Errorf("cannot make a folder (TMPDIR): %w", err)
	}
	if p.bouncer, err = pg.StartBouncer(ctx, pg.BouncerConfig{Server: server}); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	if err := p.startCollector(bin, p.bouncer.URL(database)); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	p.conn, err = grpc.NewClient("unix:"+filepath.Join(p.dir, "ledger.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot use the ledger's socket: %w", err), p.stop())
	}
	return p, nil
}

func (p *ledgerPod) startCollector(bin, url string) error {
	log, err := os.Create(filepath.Join(p.dir, "collector.log"))
	if err != nil {
		return fmt.Errorf("cannot write the collector's log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(bin, "spend-collector"), "--run-dir", p.dir)
	cmd.Env = []string{"DATABASE_URL=" + url, "LITELLM_MASTER_KEY=sk-bench", "PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start the spend-collector (--bin %s): %w", bin, err)
	}
	p.cmd = cmd
	return nil
}

func (p *ledgerPod) collector() stack.Usage { return stack.UsageOf(p.cmd.Process.Pid) }
func (p *ledgerPod) pool() stack.Usage      { return stack.UsageOf(p.bouncer.PID()) }

// stop ends both processes and deletes what they wrote.
func (p *ledgerPod) stop() error {
	var errs []error
	if p.conn != nil {
		errs = append(errs, p.conn.Close())
	}
	if p.cmd != nil {
		errs = append(errs, p.cmd.Process.Kill())
		_ = p.cmd.Wait() // it was killed
	}
	if p.bouncer != nil {
		errs = append(errs, p.bouncer.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(p.dir))...)
}

// worker is one holder that has leases of all keys.
type worker struct {
	client ledgerv1.LedgerClient
	holder *ledgerv1.Holder
	leases map[string]*ledgerv1.Lease // by entity
	sent   uint64
}

// newWorker makes a holder known and leases it money of each key.
func (p *ledgerPod) newWorker(ctx context.Context, keys []benchKey) (*worker, error) {
	w := &worker{client: ledgerv1.NewLedgerClient(p.conn), holder: &ledgerv1.Holder{PodUid: "bench", Epoch: make([]byte, 16)}, leases: map[string]*ledgerv1.Lease{}}
	_, _ = rand.Read(w.holder.Epoch) // never fails
	if _, err := w.client.Heartbeat(ctx, &ledgerv1.HeartbeatRequest{Holder: w.holder}, grpc.WaitForReady(true)); err != nil {
		return nil, fmt.Errorf("cannot make a holder known: %w", err)
	}
	req := &ledgerv1.GrantRequest{Holder: w.holder, Seq: 1}
	for _, k := range keys {
		req.Wants = append(req.Wants, &ledgerv1.Want{Entities: []string{k.entity}, AmountNano: 1e12})
	}
	resp, err := w.client.Grant(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("cannot lease money: %w", err)
	}
	for _, l := range resp.Leases {
		w.leases[l.Entity] = l
	}
	if len(w.leases) != len(keys) {
		return nil, fmt.Errorf("cannot lease money: %d of %d budgets gave some", len(w.leases), len(keys))
	}
	return w, nil
}

// send sends batches and returns when the last record is acknowledged.
func (w *worker) send(ctx context.Context, batches []*ledgerv1.RecordBatch) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := w.client.Record(ctx)
	if err != nil {
		return fmt.Errorf("cannot open the record stream: %w", err)
	}
	last := batches[len(batches)-1].Records
	want := last[len(last)-1].Seq
	failed := make(chan error, 1)
	go func() {
		for _, b := range batches {
			if err := stream.Send(b); err != nil {
				failed <- err
				return
			}
		}
		failed <- nil
	}()
	for {
		ack, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("cannot commit records: %w", err)
		}
		if ack.LastSeq == want {
			w.sent = want
			return <-failed
		}
	}
}
