// Package pgbouncer holds the settings that a pod's PgBouncer runs with, so that
// tests run with the very same.
package pgbouncer

import _ "embed"

//go:embed pgbouncer.ini
var ini string

// INI is the text of pgbouncer.ini.
func INI() string { return ini }
