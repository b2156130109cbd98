package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock-gateway/penstock/internal/config"
	"github.com/penstock-gateway/penstock/internal/store"
)

// folder is the data folder of an all-in-one: database, keys, sockets, journals.
type folder struct{ path string }

func openFolder(path string) (folder, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return folder{}, fmt.Errorf("cannot use the data folder %s (--data): %w", path, err)
	}
	f := folder{path: abs}
	if err := os.MkdirAll(f.runDir(), 0o700); err != nil {
		return folder{}, fmt.Errorf("cannot make the data folder (--data): %w", err)
	}
	if socket := filepath.Join(f.runDir(), "telemetry.sock"); len(socket) > maxSocketPath {
		return folder{}, fmt.Errorf("cannot use the data folder %s (--data): its path is too long for a unix socket, by %d bytes", abs, len(socket)-maxSocketPath)
	}
	return f, nil
}

// maxSocketPath is what Linux allows, without the closing NUL.
const maxSocketPath = 107

func (f folder) runDir() string { return filepath.Join(f.path, "run") }

// podUID names this installation where a pod would have its UID.
func (f folder) podUID() string {
	sum := sha256.Sum256([]byte(f.path))
	return "local-" + hex.EncodeToString(sum[:6])
}

// masterKey is the administrator's key, made at the first start.
func (f folder) masterKey() (config.Secret, error) {
	key, err := f.secret("master-key")
	return config.NewSecret(key), err
}

func (f folder) has(name string) bool {
	_, err := os.Stat(filepath.Join(f.path, name))
	return err == nil
}

// secret reads a key from its file, or makes both.
func (f folder) secret(name string) (string, error) {
	path := filepath.Join(f.path, name)
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		return f.checkSecret(path, strings.TrimSpace(string(text)))
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("cannot read %s: %w", path, err)
	}
	key := "sk-" + newSecret()
	if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("cannot keep a key: %w", err)
	}
	return key, nil
}

func (f folder) checkSecret(path, key string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", path, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("cannot use %s: %w", path, errNotPrivate)
	}
	if len(key) < 16 || !strings.HasPrefix(key, "sk-") {
		return "", fmt.Errorf("cannot use %s: it holds no key; delete it and start again to get a new one", path)
	}
	return key, nil
}

func newSecret() string {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the process instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// firstBudget is what the first key may spend, in nano-dollars: enough to try
// everything, too little to hurt when a provider's key is in the environment.
const firstBudget = 10_000_000_000

// firstKey is the key that a newcomer starts with. It is made with its file, and
// again for a new database, but never brought back when an administrator deleted it.
func (f folder) firstKey(ctx context.Context, st store.Store) (string, error) {
	isNew := !f.has("first-key")
	key, err := f.secret("first-key")
	if err != nil {
		return "", err
	}
	if !isNew {
		page, err := st.ListKeys(ctx, store.KeyFilter{Page: 1, Size: 1})
		if err != nil {
			return "", fmt.Errorf("cannot look for the first key: %w", err)
		}
		if page.Total > 0 {
			return key, nil
		}
	}
	sum := sha256.Sum256([]byte(key))
	budget := int64(firstBudget)
	err = st.CreateKey(ctx, store.Key{
		ID: hex.EncodeToString(sum[:]), Name: "sk-..." + key[len(key)-4:], Alias: "first-key",
		MaxBudget: &budget, MetadataJSON: "{}", SettingsJSON: "{}", CreatedBy: "penstock serve", UpdatedBy: "penstock serve",
	})
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return "", fmt.Errorf("cannot make the first key: %w", err)
	}
	return key, nil
}
