package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/store/postgres"
	"github.com/penstock-gateway/penstock/internal/store/sqlite"
)

func newLedger() *cobra.Command {
	parent := &cobra.Command{Use: "ledger", Short: "Check the ledger's sums, and correct what it had to assume"}
	parent.AddCommand(newLedgerVerify(), newLedgerCorrect())
	return parent
}

// exitError is an error that ends the program with a status of its own.
type exitError struct {
	status int
	err    error
}

func (e exitError) Error() string { return e.err.Error() }
func (e exitError) Unwrap() error { return e.err }

// exitStatus is the program's status after err.
func exitStatus(err error) int {
	var e exitError
	if errors.As(err, &e) {
		return e.status
	}
	return 1
}

// ledgerAt says where a ledger is that a command works on.
type ledgerAt struct{ databaseURL, sqlite string }

func (at *ledgerAt) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&at.databaseURL, "database-url", "", "PostgreSQL, direct or of PgBouncer (env DATABASE_URL)")
	cmd.Flags().StringVar(&at.sqlite, "sqlite", "", "the file of an all-in-one, such as .penstock/"+sqliteFile)
}

// open opens a ledger that is there; it never makes one.
func (at *ledgerAt) open(ctx context.Context) (store.Store, error) {
	if at.sqlite != "" && at.databaseURL != "" {
		return nil, errors.New("cannot open two ledgers: give --database-url or --sqlite")
	}
	if at.sqlite != "" {
		if _, err := os.Stat(at.sqlite); err != nil {
			return nil, fmt.Errorf("cannot open the ledger (--sqlite): %w", err)
		}
		return sqlite.Open(ctx, sqlite.Config{Path: at.sqlite})
	}
	address := at.databaseURL
	if address == "" {
		address = os.Getenv("DATABASE_URL")
	}
	if address == "" {
		return nil, errors.New("cannot open the ledger: give --database-url (or env DATABASE_URL) or --sqlite")
	}
	url, err := parseDatabaseURL(address)
	if err != nil {
		return nil, err
	}
	st, err := postgres.Open(ctx, postgres.Config{URL: address})
	if err != nil {
		return nil, errDatabaseURL // the reason may repeat a password
	}
	if err := probe(ctx, st, url); err != nil {
		st.Close()
		return nil, err
	}
	return st, nil
}
