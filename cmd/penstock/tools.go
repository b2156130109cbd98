package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock-gateway/penstock/internal/config"
	"github.com/penstock-gateway/penstock/internal/store/postgres"
)

func newMigrate() *cobra.Command {
	var url string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring a PostgreSQL database up to this release's schema",
		Long: `migrate applies the numbered migrations that the database does not have yet. Give it
a direct URL, not PgBouncer's: it holds a lock of the session. The previous release
keeps running on the new schema.`,
		Example: `  penstock migrate --dry-run
  penstock migrate --database-url postgres://penstock@db:5432/penstock`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if url == "" {
				url = os.Getenv("DATABASE_URL")
			}
			if url == "" {
				return errors.New("cannot migrate without --database-url (or env DATABASE_URL)")
			}
			if _, err := parseDatabaseURL(url); err != nil {
				return err
			}
			applied, err := postgres.Migrate(cmd.Context(), url, postgres.Options{DryRun: dryRun})
			verb := "applied"
			if dryRun {
				verb = "would apply"
			}
			for _, m := range applied {
				number, name, _ := strings.Cut(m.Name, "_")
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s %s\n", verb, number, name)
			}
			if err == nil && len(applied) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "the schema is up to date")
			}
			return err
		},
	}
	cmd.Flags().StringVar(&url, "database-url", "", "direct PostgreSQL URL (env DATABASE_URL)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be applied")
	return cmd
}

func newConfig() *cobra.Command {
	parent := &cobra.Command{Use: "config", Short: "Work with configuration files"}
	parent.AddCommand(&cobra.Command{
		Use:     "check FILE",
		Short:   "Read a configuration as the gateway would and say what is wrong with it",
		Example: "  penstock config check config.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("cannot check: give one file; usage: penstock config check FILE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, warnings, err := config.Load(config.Source{Path: args[0], Getenv: os.LookupEnv})
			for _, w := range warnings {
				fmt.Fprintln(cmd.OutOrStdout(), "warning:", w)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is good: %s, checksum %s\n", args[0], count(len(cfg.Deployments), "deployment"), cfg.Checksum)
			return nil
		},
	})
	return parent
}
