package config

import (
	"fmt"
	"log/slog"
)

// redacted stands where a secret would be printed.
const redacted = "[redacted]"

// Secret is a text that no way of printing shows. The zero Secret is empty.
type Secret struct {
	// A pointer, because fmt calls no method for a verb that does not fit (%p) and
	// prints the fields: then it prints an address.
	text *string
}

// NewSecret keeps a text secret.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// Reveal returns the text. Use it only where the secret is sent or compared.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero says whether there is no secret.
func (s Secret) IsZero() bool { return s.text == nil }

// String returns a placeholder, or "" for an empty secret.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return redacted
}

// GoString is String, for %#v.
func (s Secret) GoString() string { return s.String() }

// Format is String for every verb: %d would print the field otherwise.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue is String, for log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String, for encoders of text, JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
