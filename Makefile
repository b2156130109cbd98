# Penstock's commands. `make help` lists them; each stands alone on a fresh machine.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Everything that is downloaded or built for the tools lives here.
CACHE ?= $(CURDIR)/.cache
BIN := $(CURDIR)/bin
GO ?= go
GOLANGCI_LINT_VERSION := v2.15.0
PROGRAMS := gateway spend-collector metrics-sidecar penstock fake-upstream bench
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/penstock-gateway/penstock/internal/version.value=$(VERSION)

.PHONY: help
help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build every program into bin/, static
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ $(addprefix ./cmd/,$(PROGRAMS))

.PHONY: build-penstock
build-penstock:
	@mkdir -p $(BIN)
	@test -x $(BIN)/penstock || echo "building penstock (the first build compiles its libraries: about two minutes)" >&2
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/penstock

.PHONY: run
run: build-penstock ## start the all-in-one on this machine; its flags: ARGS='--port 4001 --config config.yaml'
	@exec $(BIN)/penstock serve $(ARGS)

.PHONY: deps
deps: ## install what the tests need (PostgreSQL, PgBouncer, HAProxy) from Debian
	@hack/install-deps

.PHONY: test
test: deps ## unit, database and process tests, and one short fault test
	hack/go-test ./api/... ./cmd/... ./deploy/... ./internal/... $$($(GO) list ./test/... | grep -v /test/faults$$)
	hack/go-test -run TestKillPostgresAfterAck ./test/faults

.PHONY: test-race
test-race: deps ## the same packages under the race detector (needs a C compiler)
	CGO_ENABLED=1 hack/go-test -race ./internal/... ./test/stack/...

.PHONY: test-faults-short
test-faults-short: deps ## kill the pod's processes under load and count the money, at most six minutes; a seed in PENSTOCK_FAULT_SEED repeats a run
	CGO_ENABLED=1 hack/go-test -race -count 1 -v -timeout 12m ./test/faults $(ARGS)

.PHONY: faults
faults: deps ## the long forms: eight pods, budgets of 1,000 USD, 200,000 requests with 100 kills; about an hour
	CGO_ENABLED=1 PENSTOCK_FAULTS=long hack/go-test -race -count 1 -v -parallel 1 -timeout 3h ./test/faults $(ARGS)

.PHONY: test-sdk
test-sdk: deps ## the official openai clients for Node, Python and Go against four real processes
	test/conformance/run

.PHONY: smoke
smoke: deps build ## 10,000 requests through four processes with kills, then a budget that must stop at 33
	$(BIN)/bench smoke --bin $(BIN)

.PHONY: bench
bench: deps build ## measure large prompts (L1), short chat beside HAProxy (L2), or --scenario flood; flags of 'bench run' in ARGS
	$(BIN)/bench run --bin $(BIN) $(ARGS)

.PHONY: bench-tokens
bench-tokens: ## measure the token counter beside others, about five minutes; flags in ARGS
	GO="$(GO)" CACHE="$(CACHE)" bench/tokens/run $(ARGS)

.PHONY: fuzz-short
fuzz-short: ## each fuzz target for a few seconds
	hack/fuzz 10s

TOKENS_STRINGS ?= 1000000

.PHONY: test-tokens
test-tokens: ## token counts against the original tokenizer's: TOKENS_STRINGS texts and every code point; flags in ARGS
	test/oracle/run -strings $(TOKENS_STRINGS) $(ARGS)

.PHONY: lint
lint: ## golangci-lint with the rules in .golangci.yml, and the house's own checks
	@mkdir -p $(CACHE)/bin
	@test -x $(CACHE)/bin/golangci-lint-$(GOLANGCI_LINT_VERSION) || { echo "building golangci-lint $(GOLANGCI_LINT_VERSION) (once)" >&2; \
	  GOFLAGS= GOBIN=$(CACHE)/bin $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION); \
	  mv $(CACHE)/bin/golangci-lint $(CACHE)/bin/golangci-lint-$(GOLANGCI_LINT_VERSION); }
	GOLANGCI_LINT_CACHE=$(CACHE)/golangci $(CACHE)/bin/golangci-lint-$(GOLANGCI_LINT_VERSION) run ./...
	hack/check-house

.PHONY: generate
generate: ## regenerate the protobuf code, the metric reference, pgbouncer.ini and the token tables
	hack/generate

.PHONY: check-generated
check-generated: generate ## fail when committed generated files differ from their sources
	@git diff --exit-code --stat -- api docs/metrics.md deploy/pgbouncer internal/tokens || { echo "generated files differ: run 'make generate' and commit" >&2; exit 1; }

.PHONY: clean
clean: ## remove what was built (caches stay)
	rm -rf $(BIN)
