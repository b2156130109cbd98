// Package version knows which release this binary is.
package version

// value is set by the linker.
var value = "dev"

// String is the release, e.g. "v0.1.0", or "dev" for a build without one.
func String() string { return value }
