package ledgertest

import (
	"context"

	"google.golang.org/grpc"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

func (c *client) Subjects(ctx context.Context, in *ledgerv1.SubjectsRequest, _ ...grpc.CallOption) (*ledgerv1.SubjectsResponse, error) {
	return call(ctx, c.l, "Subjects", in, c.l.Subjects)
}

// Subjects answers that there is nothing behind any name.
func (l *Ledger) Subjects(_ context.Context, in *ledgerv1.SubjectsRequest) (*ledgerv1.SubjectsResponse, error) {
	out := &ledgerv1.SubjectsResponse{}
	for _, name := range in.GetNames() {
		out.Subjects = append(out.Subjects, &ledgerv1.Subject{Name: name})
	}
	return out, nil
}
