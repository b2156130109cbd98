package sidecar

import (
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	telemetryv1 "github.com/penstock-gateway/penstock/api/telemetry/v1"
)

// reports is the gRPC side: each stream is one worker's report.
type reports struct {
	telemetryv1.UnimplementedTelemetryServer
	merger *merger
}

// Report implements telemetryv1.TelemetryServer.
func (r *reports) Report(stream reportStream) error {
	frame, err := r.receive(stream)
	if err != nil {
		return err
	}
	l, refused := r.merger.attach(frame.GetWorker())
	switch refused {
	case dropIdentity:
		return status.Error(codes.InvalidArgument, "cannot take a report without a worker that is new or known")
	case dropWorkers:
		return status.Error(codes.ResourceExhausted, "cannot take a further worker's report")
	}
	defer r.merger.detach(l)
	for {
		if !r.merger.apply(l, frame, time.Now()) {
			return status.Error(codes.Aborted, "the worker reports elsewhere")
		}
		frame, err = r.receive(stream)
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&telemetryv1.ReportSummary{})
		}
		if err != nil {
			return err
		}
	}
}

type reportStream = grpc.ClientStreamingServer[telemetryv1.Frame, telemetryv1.ReportSummary]

// receive counts what gRPC refuses by itself: text that is not UTF-8, sizes, garbage.
func (r *reports) receive(stream reportStream) (*telemetryv1.Frame, error) {
	frame, err := stream.Recv()
	if code := status.Code(err); code == codes.Internal || code == codes.ResourceExhausted {
		r.merger.note(dropFrame)
	}
	return frame, err
}
