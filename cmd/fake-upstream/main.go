// Command fake-upstream is a provider for tests and benchmarks that keeps a ledger of
// what it served.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/penstock-gateway/penstock/internal/fakeupstream"
	"github.com/penstock-gateway/penstock/internal/version"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "fake-upstream:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	o := &options{mode: fakeupstream.DefaultMode()}
	cmd := &cobra.Command{
		Use:           "fake-upstream",
		Short:         "An OpenAI-compatible provider that behaves as told and keeps a ledger",
		Long:          long(),
		Version:       version.String(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.listen, "listen", "127.0.0.1:8089", "address to serve on; port 0 takes a free one, which is printed")
	cmd.Flags().IntVar(&o.rows, "ledger-rows", 0, "rows kept before the oldest go (0: two million)")
	for _, s := range settings(o) {
		cmd.Flags().Var(s, s.Name, s.Help)
	}
	return cmd
}
