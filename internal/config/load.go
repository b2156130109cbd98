package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Codes of warnings, stable for logs.
const (
	WarnKeys        = "keys_not_supported"   // LiteLLM keys that are not acted on, and unknown ones
	WarnProviders   = "models_not_served"    // entries left out: their provider is not supported
	WarnCredentials = "models_no_credential" // entries that will be sent without a credential
	WarnHalfPrices  = "models_half_priced"   // entries that name one of two prices; they stay unpriced
	WarnUnpriced    = "models_unpriced"      // entries that a key with a budget cannot use
	WarnWeights     = "weights_not_limits"   // rpm and tpm, which LiteLLM weighs by and limits with
)

const (
	defaultTimeout  = 600 * time.Second
	defaultRetries  = 3
	defaultStrategy = "simple-shuffle"
)

// Warning is something that the start goes on with, but says. Details are dotted paths,
// with [] for every element of a list, or lines of text.
type Warning struct {
	Code    string
	Text    string
	Details []string
}

// String is the warning on one line.
func (w Warning) String() string { return w.Text + ": " + strings.Join(w.Details, ", ") }

// Load reads, checks and compiles a configuration file. What is wrong in it is found in
// one go: the error joins a *Problem each, with file, line and column. What is right but
// not acted on is in the warnings, beside an error as well, as far as the file could be
// read. A file that LiteLLM starts with, starts.
func Load(src Source) (*Config, []Warning, error) {
	data, err := readFile(src.Path)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	return compile(src, data)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// One byte more than allowed, for parseYAML to see that there is more.
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// compile is Load after the file was read.
func compile(src Source, data []byte) (*Config, []Warning, error) {
	root, err := parseYAML(data)
	if err != nil {
		var p *Problem
		if errors.As(err, &p) {
			p.File = src.Path
		}
		return nil, nil, err
	}
	l := newLoader(src)
	if l.is(root, "", kindMapping) {
		l.run(root)
	}
	if len(l.problems) > 0 {
		return nil, l.warnings(), problems(l.problems)
	}
	if l.config.Checksum, err = checksum(&l.config); err != nil {
		return nil, nil, fmt.Errorf("cannot compute the checksum of the configuration: %w", err)
	}
	return &l.config, l.warnings(), nil
}

// loader holds one compilation.
type loader struct {
	reader
	config Config

	timeout, streamTimeout time.Duration // of the router, 0: none
	requestTimeout         time.Duration // of litellm_settings, 0: none
	retries                *int          // of the router
	litellmRetries         *int          // of litellm_settings

	unserved, noCredential, halfPriced, unpriced []string
	weighed                                      map[string]bool // paths of rpm and tpm
	leftOut                                      map[string]bool // model names with an unserved entry
	ids                                          map[string]bool
}

func newLoader(src Source) *loader {
	getenv := src.Getenv
	if getenv == nil {
		getenv = func(string) (string, bool) { return "", false }
	}
	return &loader{
		reader:  reader{file: src.Path, getenv: getenv, unsupported: map[string]bool{}, unknown: map[string]string{}},
		config:  Config{Settings: defaultSettings(), Environment: map[string]Secret{}},
		weighed: map[string]bool{}, leftOut: map[string]bool{}, ids: map[string]bool{},
	}
}

// run reads the sections in the order in which they depend on each other.
func (l *loader) run(root *node) {
	l.environment(root.get("environment_variables"))
	ignore := func(*node, string) {}
	l.section(root, "", handlers{
		"environment_variables": ignore, "model_list": ignore, "penstock_settings": ignore,
		"general_settings": l.generalSettings,
		"litellm_settings": l.litellmSettings,
		"router_settings":  l.routerSettings,
	}, litellmTop())
	if n := root.get("penstock_settings"); n != nil {
		l.penstockSettings(n, "penstock_settings")
	}
	l.secretsFromEnvironment()
	l.loadPrices(root)
	l.models(root)
	l.checkAliases(root)
}

// environment lays the file's environment_variables over the process's, as LiteLLM does.
func (l *loader) environment(n *node) {
	const path = "environment_variables"
	if n == nil || !l.is(n, path, kindMapping) {
		return
	}
	outer := l.getenv
	for _, f := range n.fields {
		if f.value.kind == kindNull {
			continue
		}
		if value, ok := l.text(f.value, child(path, f.key)); ok {
			l.config.Environment[f.key] = NewSecret(value)
		}
	}
	l.getenv = func(name string) (string, bool) {
		if value, ok := l.config.Environment[name]; ok {
			return value.Reveal(), true
		}
		return outer(name)
	}
}

// secretsFromEnvironment takes what the file left open; the file wins, as in LiteLLM.
func (l *loader) secretsFromEnvironment() {
	if l.config.MasterKey.IsZero() {
		l.config.MasterKey = l.firstSecret("PENSTOCK_MASTER_KEY", "LITELLM_MASTER_KEY")
	}
	if l.config.DatabaseURL.IsZero() {
		l.config.DatabaseURL = l.firstSecret("DATABASE_URL")
	}
}

func (l *loader) firstSecret(names ...string) Secret {
	for _, name := range names {
		if value, ok := l.getenv(name); ok && trimNewline(value) != "" {
			return NewSecret(trimNewline(value))
		}
	}
	return Secret{}
}

func (l *loader) loadPrices(root *node) {
	path := l.config.Settings.PriceMap
	if path != "" && !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(l.file), path)
	}
	prices, err := loadPrices(path)
	if err != nil {
		l.fail(root.get("penstock_settings").get("price_map").at, "penstock_settings.price_map", "%s", err)
	}
	l.config.Prices = prices
}

func (l *loader) warnings() []Warning {
	var all []Warning
	add := func(code, text string, details []string) {
		if len(details) > 0 {
			all = append(all, Warning{Code: code, Text: text, Details: details})
		}
	}
	var named []string
	for path := range l.unsupported {
		named = append(named, path)
	}
	for path, likely := range l.unknown {
		if likely != "" {
			path += " (unknown, " + meant(path[strings.LastIndexByte(path, '.')+1:], likely) + ")"
		} else {
			path += " (unknown)"
		}
		named = append(named, path)
	}
	slices.Sort(named)
	add(WarnKeys, "these keys of the configuration have no effect yet", named)
	add(WarnProviders, "these models are left out, their provider is not supported yet", l.unserved)
	add(WarnCredentials, "these models have no api_key and are sent without a credential", l.noCredential)
	add(WarnHalfPrices, "these models name only one of input_cost_per_token and output_cost_per_token and stay without a price", l.halfPriced)
	add(WarnUnpriced, "these models have no price and are refused to keys with a budget; set input_cost_per_token and output_cost_per_token, or penstock_settings.price_map", l.unpriced)
	add(WarnWeights, "these are used as weight of the group, and limit nothing yet", slices.Sorted(maps.Keys(l.weighed)))
	return all
}

// checksum covers everything that was compiled but the secrets, their presence included:
// whether a credential is in the file or comes later is not another configuration.
func checksum(c *Config) (string, error) {
	plain := *c
	plain.MasterKey, plain.DatabaseURL = Secret{}, Secret{}
	plain.Deployments = make([]*Deployment, len(c.Deployments))
	for i, d := range c.Deployments {
		bare := *d
		bare.APIKey = Secret{}
		plain.Deployments[i] = &bare
	}
	data, err := json.Marshal(plain)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
