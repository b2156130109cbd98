package store

import "context"

type adminKey struct{}

// WithAdmin marks what is done under a context as an administrator's. A store that many
// share serves it apart from what requests wait for, whatever method it is: the same key
// is read for a request and for an administrator.
func WithAdmin(ctx context.Context) context.Context {
	return context.WithValue(ctx, adminKey{}, true)
}

// ForAdmin says whether WithAdmin marked the context.
func ForAdmin(ctx context.Context) bool {
	marked, _ := ctx.Value(adminKey{}).(bool)
	return marked
}
