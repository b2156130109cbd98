package main

import (
	"testing"

	"github.com/penstock-gateway/penstock/internal/deptest"
)

func TestDeps(t *testing.T) {
	deptest.Check(t, []deptest.Forbidden{
		{Prefix: "github.com/valyala/fasthttp", Reason: "fasthttp is the request path's"},
		{Prefix: "k8s.io", Reason: "the collector knows nothing of Kubernetes"},
		{Prefix: "modernc.org/sqlite", Reason: "SQLite is for the all-in-one; the collector shares its database"},
		{Prefix: "github.com/penstock-gateway/penstock/internal/proxy", Reason: "services meet over sockets"},
		{Prefix: "github.com/penstock-gateway/penstock/internal/gateway", Reason: "services meet over sockets"},
		{Prefix: "github.com/penstock-gateway/penstock/internal/sidecar", Reason: "services meet over sockets"},
	})
}
