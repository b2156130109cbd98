// Command metrics-sidecar sums up the telemetry of a pod's workers and serves it.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/penstock-gateway/penstock/internal/version"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "metrics-sidecar:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	o := &options{}
	check := false
	cmd := &cobra.Command{
		Use:   "metrics-sidecar",
		Short: "Sums up the telemetry of a pod's workers; serves /metrics, /rates and /health",
		Long: `metrics-sidecar takes the telemetry of the pod's workers (gRPC) on
RUN-DIR/telemetry.sock and serves its sums over HTTP. The counts of workers that are
gone are kept in RUN-DIR/telemetry.state.`,
		Example: `  metrics-sidecar --run-dir /run/penstock --listen :9090
  curl http://localhost:9090/metrics
  metrics-sidecar --listen :9090 --check`,
		Version:       version.String(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check {
				return o.check(cmd.Context())
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.runDir, "run-dir", defaultRunDir(), "folder of the pod's sockets; env PENSTOCK_RUN_DIR")
	cmd.Flags().StringVar(&o.listen, "listen", ":9090", "address of /metrics, /rates and /health")
	cmd.Flags().BoolVar(&check, "check", false, "ask the sidecar that runs at --listen whether it is well, and exit 0 or 1")
	return cmd
}
