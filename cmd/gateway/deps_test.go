package main

import (
	"testing"

	"github.com/penstock-gateway/penstock/internal/deptest"
)

func TestDeps(t *testing.T) {
	deptest.Check(t, []deptest.Forbidden{
		{Prefix: "github.com/jackc/pgx", Reason: "a request never waits for a database driver"},
		{Prefix: "modernc.org/sqlite", Reason: "a request never waits for a database driver"},
		{Prefix: "database/sql", Reason: "a request never waits for a database driver"},
		{Prefix: "k8s.io", Reason: "the data path knows nothing of Kubernetes"},
		{Prefix: "sigs.k8s.io", Reason: "the data path knows nothing of Kubernetes"},
		{Prefix: "github.com/prometheus/client_golang", Reason: "scrapes belong to the metrics-sidecar"},
		{Prefix: "github.com/penstock-gateway/penstock/internal/store", Reason: "the ledger's database is the collector's"},
		{Prefix: "github.com/penstock-gateway/penstock/internal/collector", Reason: "services meet over sockets"},
		{Prefix: "github.com/penstock-gateway/penstock/internal/sidecar", Reason: "services meet over sockets"},
		{Prefix: "github.com/tiktoken-go", Reason: "vocabularies are compiled into tables"},
	})
}
