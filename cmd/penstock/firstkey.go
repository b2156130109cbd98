package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/penstock-gateway/penstock/internal/money"
	"github.com/penstock-gateway/penstock/internal/store"
)

// firstBudget is what the first key may spend, in nano-dollars: enough to try
// everything, too little to hurt when a provider's key is in the environment.
const firstBudget = 10_000_000_000

const (
	firstKeyFile = "first-key"
	// firstKeyPlaces lists the databases that have had the first key, by name, one a line.
	firstKeyPlaces = "first-key.databases"
)

// firstKey is the key that a newcomer starts with.
type firstKey struct {
	secret string
	row    store.Key
	// gone says that the database had the key and has it no more.
	gone bool
}

// firstKey finds the first key, or makes it: with its file, and for a database that
// has not had it. It never brings back what an administrator deleted, with a fresh
// budget.
func (f folder) firstKey(ctx context.Context, db database) (firstKey, error) {
	isNew := db.isNew || !f.has(firstKeyFile)
	secret, err := f.secret(firstKeyFile)
	if err != nil {
		return firstKey{}, err
	}
	places, err := f.places()
	if err != nil {
		return firstKey{}, err
	}
	sum := sha256.Sum256([]byte(secret))
	id := hex.EncodeToString(sum[:])
	row, err := db.Key(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound) && !isNew && slices.Contains(places, db.name):
		return firstKey{secret: secret, gone: true}, nil
	case errors.Is(err, store.ErrNotFound):
		row, err = makeFirstKey(ctx, db, secret, id)
	}
	if err != nil {
		return firstKey{}, fmt.Errorf("cannot find or make the first key: %w", err)
	}
	return firstKey{secret: secret, row: row}, f.addPlace(places, db.name)
}

func makeFirstKey(ctx context.Context, db database, secret, id string) (store.Key, error) {
	budget := int64(firstBudget)
	key := store.Key{
		ID: id, Name: "sk-..." + secret[len(secret)-4:], Alias: "first-key",
		MaxBudget: &budget, MetadataJSON: "{}", SettingsJSON: "{}", CreatedBy: "penstock serve", UpdatedBy: "penstock serve",
	}
	err := db.CreateKey(ctx, key)
	if errors.Is(err, store.ErrConflict) { // the first key of another data folder, or of an earlier file
		key.Alias += "-" + id[:4]
		err = db.CreateKey(ctx, key)
	}
	return key, err
}

func (f folder) places() ([]string, error) {
	text, err := os.ReadFile(f.file(firstKeyPlaces))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read where the first key is: %w", err)
	}
	return strings.Fields(string(text)), nil
}

func (f folder) addPlace(places []string, name string) error {
	if slices.Contains(places, name) {
		return nil
	}
	text := strings.Join(append(places, name), "\n") + "\n"
	if err := os.WriteFile(f.file(firstKeyPlaces), []byte(text), 0o600); err != nil {
		return fmt.Errorf("cannot note where the first key is: %w", err)
	}
	return nil
}

// terms says what the key may do, as the database has it.
func (k firstKey) terms() string {
	var parts []string
	if k.row.MaxBudget == nil {
		parts = append(parts, "no budget")
	} else {
		text := "a budget of " + money.FormatNano(*k.row.MaxBudget) + " USD"
		if k.row.BudgetDuration != "" {
			text += " per " + k.row.BudgetDuration
		}
		parts = append(parts, text)
		if k.row.Spend > 0 {
			parts = append(parts, money.FormatNano(k.row.Spend)+" spent")
		}
	}
	if k.row.Blocked {
		parts = append(parts, "blocked")
	}
	if !k.row.Expires.IsZero() && time.Now().After(k.row.Expires) {
		parts = append(parts, "expired")
	}
	return strings.Join(parts, ", ")
}
