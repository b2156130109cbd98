package main

import (
	"testing"

	"github.com/penstock-gateway/penstock/internal/deptest"
)

func TestDeps(t *testing.T) {
	deptest.Check(t, []deptest.Forbidden{
		{Prefix: "github.com/jackc/pgx", Reason: "the sidecar has no business with the database"},
		{Prefix: "modernc.org/sqlite", Reason: "the sidecar has no business with the database"},
		{Prefix: "github.com/valyala/fasthttp", Reason: "fasthttp is the request path's"},
		{Prefix: "k8s.io", Reason: "the sidecar is scraped by Kubernetes and does not ask it"},
		{Prefix: "github.com/penstock-gateway/penstock/internal/proxy", Reason: "services meet over sockets"},
		{Prefix: "github.com/penstock-gateway/penstock/internal/gateway", Reason: "services meet over sockets"},
		{Prefix: "github.com/penstock-gateway/penstock/internal/collector", Reason: "services meet over sockets"},
	})
}
