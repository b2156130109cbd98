package main

import (
	"testing"

	"github.com/penstock-gateway/penstock/internal/deptest"
)

func TestDeps(t *testing.T) {
	deptest.Check(t, []deptest.Forbidden{
		{Prefix: "k8s.io", Reason: "the all-in-one is for places without Kubernetes"},
		{Prefix: "sigs.k8s.io", Reason: "the all-in-one is for places without Kubernetes"},
		{Prefix: "github.com/tiktoken-go", Reason: "vocabularies are compiled into tables"},
	})
}
