package main

import (
	"errors"
	"fmt"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/penstock-gateway/penstock/internal/money"
	"github.com/penstock-gateway/penstock/internal/store"
)

type correctOptions struct {
	ledgerAt
	lease     string
	requestID string
	holder    string
	seq       uint64
	cost      string
	by        string
	reason    string
}

func newLedgerCorrect() *cobra.Command {
	o := &correctOptions{}
	cmd := &cobra.Command{
		Use:   "correct",
		Short: "Take back the lost charge of a lease, or set what an interrupted request cost",
		Long: `correct sets right what the ledger had to assume: that everything leased to a worker
that disappeared was spent, and that an interrupted request cost all that was held.
Each correction is made once, moves the budget, and stands in the table audit.`,
		Example: `  penstock ledger correct --lease 0f3c…/0/9a41…/12/7 --reason "the node was off"
  penstock ledger correct --request-id 7f0e… --cost 0.0123 --reason "the provider's invoice"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.lease, "lease", "", "the lease, as verify names it: holder/grant/budget")
	f.StringVar(&o.requestID, "request-id", "", "the interrupted request")
	f.StringVar(&o.cost, "cost", "", "what it really cost, in dollars")
	f.StringVar(&o.holder, "holder", "", "with --seq: which of several records of one request id")
	f.Uint64Var(&o.seq, "seq", 0, "with --holder: the record's number")
	f.StringVar(&o.by, "by", userName(), "who says so, for the audit")
	f.StringVar(&o.reason, "reason", "", "why, for the audit")
	cmd.MarkFlagsOneRequired("lease", "request-id")
	cmd.MarkFlagsMutuallyExclusive("lease", "request-id")
	cmd.MarkFlagsRequiredTogether("request-id", "cost")
	return cmd
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "penstock ledger correct"
}

func (o *correctOptions) run(cmd *cobra.Command) error {
	st, err := o.open(cmd.Context())
	if err != nil {
		return err
	}
	defer st.Close()
	done, err := o.correct(cmd, st)
	switch {
	case errors.Is(err, store.ErrCorrected) && o.lease != "":
		return fmt.Errorf("cannot take back: nothing is charged as lost for the lease %s (any more)", o.lease)
	case err != nil:
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: was %s dollars, is %s\n", done.Subject, dollars(done.Before), dollars(done.After))
	return err
}

func (o *correctOptions) correct(cmd *cobra.Command, st store.Corrector) (store.Correction, error) {
	if o.lease != "" {
		holder, ref, err := store.ParseLeaseName(o.lease)
		if err != nil {
			return store.Correction{}, err
		}
		return st.TakeBack(cmd.Context(), store.TakeBack{Holder: holder, LeaseRef: ref, By: o.by, Reason: o.reason})
	}
	cost, err := money.ParseNano(o.cost)
	if err != nil {
		return store.Correction{}, fmt.Errorf("cannot read --cost: %w", err)
	}
	return st.CorrectRecord(cmd.Context(), store.CorrectRecord{
		RequestID: o.requestID, Holder: store.HolderID(o.holder), Seq: o.seq, Cost: cost, By: o.by, Reason: o.reason,
	})
}
