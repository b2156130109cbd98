package main

import (
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
	"syscall"

	"github.com/penstock-gateway/penstock/internal/config"
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

func (f folder) runDir() string { return f.file("run") }

// lock keeps a second process out of the folder for as long as the file is open: it
// would take the sockets away from the first. The kernel ends it with the process.
func (f folder) lock() (*os.File, error) {
	file, err := os.OpenFile(f.file("serve.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the data folder (--data): %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return file, nil
	}
	file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("cannot serve: the data folder %s is in use by another penstock serve (--data)", f.path)
	}
	return nil, fmt.Errorf("cannot lock the data folder %s (--data): %w", f.path, err)
}

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

func (f folder) file(name string) string { return filepath.Join(f.path, name) }

func (f folder) has(name string) bool {
	_, err := os.Stat(f.file(name))
	return err == nil
}

// secret reads a key from its file, or makes both.
func (f folder) secret(name string) (string, error) {
	path := f.file(name)
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

var errNotPrivate = errors.New("it is readable by others: chmod 600")

func newSecret() string {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the process instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}
