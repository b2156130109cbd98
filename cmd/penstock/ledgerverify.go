package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-gateway/penstock/internal/store"
)

// Statuses of `penstock ledger verify` beside 0.
const (
	statusDifferences = 1
	statusUnread      = 2
)

type verifyOptions struct {
	ledgerAt
	since string
	limit int
	json  bool
}

func newLedgerVerify() *cobra.Command {
	o := &verifyOptions{}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Recompute roll-ups, leases, budgets and cursors from the records, and name every difference",
		Long: `verify reads one snapshot of the ledger, changes nothing, and can be run while
requests are served. It ends with status 0 when everything is explained, 1 when a row
says something else than the records, and 2 when it cannot read the ledger.`,
		Example: `  penstock ledger verify --database-url postgres://penstock@db:5432/penstock
  penstock ledger verify --sqlite .penstock/penstock.db --since 2026-03-14
  penstock ledger verify --json | jq .differences`,
		Args: func(cmd *cobra.Command, args []string) error { return unread(cobra.NoArgs(cmd, args)) },
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	// A script that mistypes a flag must not take that for a difference.
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return unread(err) })
	o.addFlags(cmd)
	cmd.Flags().StringVar(&o.since, "since", "", "leave out what began before this day (UTC), such as 2026-03-14")
	cmd.Flags().IntVar(&o.limit, "limit", 0, "the most that each list names; counts and sums are whole (default 100)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the report as JSON; amounts are billionths of a dollar")
	return cmd
}

func unread(err error) error {
	if err == nil {
		return nil
	}
	return exitError{status: statusUnread, err: err}
}

func (o *verifyOptions) run(cmd *cobra.Command) error {
	report, err := o.verify(cmd)
	if err != nil {
		return unread(err)
	}
	if err := o.print(cmd, &report); err != nil {
		return unread(err)
	}
	if !report.Explained() {
		return exitError{status: statusDifferences, err: fmt.Errorf("the ledger has %s", count(int(report.Differences.Count), "unexplained difference"))}
	}
	return nil
}

func (o *verifyOptions) verify(cmd *cobra.Command) (store.Report, error) {
	var since time.Time
	if o.since != "" {
		var err error
		if since, err = time.Parse(time.DateOnly, o.since); err != nil {
			return store.Report{}, fmt.Errorf("cannot read --since %q: want a day such as 2026-03-14", o.since)
		}
	}
	if o.limit < 0 {
		return store.Report{}, errors.New("cannot use a negative --limit")
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	st, err := o.open(ctx)
	if err != nil {
		return store.Report{}, err
	}
	defer st.Close()
	return st.Verify(ctx, store.VerifyOptions{Since: since, Limit: o.limit})
}

func (o *verifyOptions) print(cmd *cobra.Command, r *store.Report) error {
	if !o.json {
		return printReport(cmd.OutOrStdout(), r)
	}
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Explained bool `json:"explained"`
		*store.Report
	}{r.Explained(), r})
}
