// Command penstock is the whole gateway in one process for a laptop or a VM, and
// the tool for what is done once: migrations, checks of a configuration.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/penstock-gateway/penstock/internal/version"
)

func main() {
	if err := newRoot().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "penstock:", err)
		os.Exit(exitStatus(err))
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "penstock",
		Short:         "An LLM gateway: virtual keys, budgets that cannot be passed, every request booked once",
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newServe(), newMigrate(), newLedger(), newConfig(), newCount(), newVersion())
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the release",
		Args:  cobra.NoArgs,
		Run:   func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), version.String()) },
	}
}
