package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/penstock-gateway/penstock/internal/config"
)

type greeting struct {
	address string
	metrics string
	key     string
	folder  folder
	config  *config.Config
	// ownMaster says that the master key was made here and stands in the data folder.
	ownMaster bool
}

// greet tells a newcomer what to do next. The curl line works as it stands.
func greet(w io.Writer, g greeting) {
	model := g.config.Deployments[0].ModelName
	where, admin := "in the environment or the configuration", "$LITELLM_MASTER_KEY"
	if g.ownMaster {
		path := filepath.Join(g.folder.path, "master-key")
		where, admin = "in "+path, "$(cat '"+path+"')"
	}
	fmt.Fprintf(w, `Penstock is listening on http://%s  (%d models; GET /v1/models)
Data folder:  %s
First key:    %s  (a budget of 10 USD)
Master key:   %s, for /key/* and /spend/*
`, g.address, len(g.config.Deployments), g.folder.path, g.key, where)
	if g.metrics != "" {
		fmt.Fprintf(w, "Metrics:      http://%s/metrics\n", g.metrics)
	}
	fmt.Fprintf(w, `
Try it from another shell:

curl -s http://%s/v1/chat/completions -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -d '{"model":"%s","messages":[{"role":"user","content":"Hello!"}]}'

and see what it cost:

curl -s http://%s/spend/logs -H "Authorization: Bearer %s"

`, g.address, g.key, model, g.address, admin)
}
