package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/penstock-gateway/penstock/internal/config"
)

// greeting is what a newcomer is told once everything listens. Each curl line works
// as it stands, except where it names a secret that only the reader has.
type greeting struct {
	address string // host:port as a client on this machine writes it
	metrics string // the same; empty: none
	folder  folder
	config  *config.Config
	master  masterKey
	key     firstKey
}

// masterKey says where the administrator finds the master key, never what it is.
type masterKey struct {
	where  string
	header string // of curl, quoted for a shell
}

// findMasterKey tells where the master key came from: getenv is the environment as
// it was before the configuration added to it, so as another shell may have it.
func findMasterKey(cfg *config.Config, f folder, getenv func(string) (string, bool)) masterKey {
	if cfg.MasterKey.IsZero() {
		path := f.file("master-key")
		return masterKey{where: "in " + path, header: `-H "Authorization: Bearer $(cat ` + shellQuote(path) + `)"`}
	}
	for _, name := range []string{"PENSTOCK_MASTER_KEY", "LITELLM_MASTER_KEY"} {
		if v, ok := getenv(name); ok && strings.TrimRight(v, "\r\n") == cfg.MasterKey.Reveal() {
			return masterKey{where: "in $" + name, header: `-H "Authorization: Bearer $` + name + `"`}
		}
	}
	return masterKey{where: "the configuration's", header: `-H 'Authorization: Bearer <your master key>'`}
}

func (g greeting) print(w io.Writer) {
	fmt.Fprintf(w, "Penstock is listening on http://%s  (%s; GET /v1/models)\n", g.address, count(len(modelNames(g.config)), "model"))
	fmt.Fprintf(w, "Data folder:  %s\n", g.folder.path)
	if g.key.gone {
		fmt.Fprintf(w, "First key:    none; the one in %s was deleted from this database\n", g.folder.file(firstKeyFile))
	} else {
		fmt.Fprintf(w, "First key:    %s  (%s)\n", g.key.secret, g.key.terms())
	}
	fmt.Fprintf(w, "Master key:   %s, for /key/* and /spend/*\n", g.master.where)
	if g.metrics != "" {
		fmt.Fprintf(w, "Metrics:      http://%s/metrics\n", g.metrics)
	}
	g.printChat(w)
	fmt.Fprintf(w, "\nand see what it cost (a moment later):\n\ncurl -s http://%s/spend/logs %s\n\n", g.address, g.master.header)
}

// printChat says how to send the first request, and before it what is missing for it.
func (g greeting) printChat(w io.Writer) {
	budgeted := g.key.gone || g.key.row.MaxBudget != nil
	model, ok := g.model(budgeted)
	secret := g.key.secret
	switch {
	case g.key.gone:
		secret = "<its key>"
		fmt.Fprintf(w, "\nMake a key:\n\n%s\n", g.generate(map[string]any{"max_budget": 10}))
	case !ok && budgeted:
		secret = "<its key>"
		if model, ok = g.model(false); ok {
			fmt.Fprintf(w, "\nNo model of this key has a price, and a key with a budget gets none without (403 model_unpriced).\n"+
				"Set input_cost_per_token and output_cost_per_token in its litellm_params, or make a key without a budget:\n\n%s\n", g.generate(map[string]any{}))
		}
	}
	if !ok {
		model = "<one of GET /v1/models>"
	}
	body := compactJSON(chatBody{Model: model, Messages: []chatMessage{{Role: "user", Content: "Hello!"}}})
	fmt.Fprintf(w, "\nTry it from another shell:\n\ncurl -s http://%s/v1/chat/completions -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -d %s\n",
		g.address, secret, shellQuote(body))
}

type chatBody struct {
	Model    string        `json:"model"`
	Messages []chatMessage `json:"messages"`
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (g greeting) generate(fields map[string]any) string {
	return fmt.Sprintf("curl -s http://%s/key/generate %s -d %s", g.address, g.master.header, shellQuote(compactJSON(fields)))
}

// model is the first that the key may ask for by a name that is known here; priced:
// with a price in each of its deployments, as a key with a budget needs it.
func (g greeting) model(priced bool) (string, bool) {
	unfit := map[string]bool{}
	for _, d := range g.config.Deployments {
		chat := d.Mode == "" || d.Mode == "chat"
		if d.Wildcard() || !chat || priced && d.Price == nil {
			unfit[d.ModelName] = true
		}
	}
	for _, name := range modelNames(g.config) {
		if allowed := g.key.row.Models; !unfit[name] && (len(allowed) == 0 || slices.Contains(allowed, name)) {
			return name, true
		}
	}
	return "", false
}

// modelNames are the model groups in the order of the configuration.
func modelNames(cfg *config.Config) []string {
	var names []string
	for _, d := range cfg.Deployments {
		if !slices.Contains(names, d.ModelName) {
			names = append(names, d.ModelName)
		}
	}
	return names
}

// local is a listening address as a client on this machine writes it.
func local(address net.Addr) string {
	host, port, err := net.SplitHostPort(address.String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("localhost", port)
	}
	return address.String()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// compactJSON writes numbers and texts, which cannot fail, without HTML's escapes.
func compactJSON(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	return strings.TrimSpace(b.String())
}
