package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/store/sqlite"
)

// home is a data folder and its databases.
type home struct {
	t *testing.T
	folder
}

func newHome(t *testing.T) home {
	t.Helper()
	f, err := openFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return home{t: t, folder: f}
}

// database opens a database of the folder by its name, as a start would.
func (h home) database(name string) database {
	h.t.Helper()
	isNew := !h.has(name)
	st, err := sqlite.Open(h.t.Context(), sqlite.Config{Path: h.file(name)})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(st.Close)
	return database{Store: st, name: name, isNew: isNew}
}

// start is what a start of serve does about the first key.
func (h home) start(db database) firstKey {
	h.t.Helper()
	key, err := h.firstKey(h.t.Context(), db)
	if err != nil {
		h.t.Fatal(err)
	}
	return key
}

func (h home) remove(name string) {
	h.t.Helper()
	if err := os.Remove(h.file(name)); err != nil {
		h.t.Fatal(err)
	}
}

func (h home) delete(db database, key firstKey) {
	h.t.Helper()
	if gone, err := db.DeleteKeys(h.t.Context(), []string{key.row.ID}, "test"); err != nil || len(gone) != 1 {
		h.t.Fatalf("deleted %v, %v", gone, err)
	}
}

// usable checks that what is printed is a key of the database.
func (h home) usable(db database, key firstKey) store.Key {
	h.t.Helper()
	row, err := db.Key(h.t.Context(), key.row.ID)
	if err != nil || key.gone {
		h.t.Fatalf("the key that is printed is not in the database: %v, gone %v", err, key.gone)
	}
	return row
}

func TestFirstKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why string
		run func(h home)
	}{
		{"the first start makes it with its budget", func(h home) {
			db := h.database("a.db")
			key := h.start(db)
			if row := h.usable(db, key); row.Alias != "first-key" || row.MaxBudget == nil || *row.MaxBudget != firstBudget {
				h.t.Errorf("got %+v", row)
			}
		}},
		{"a later start prints the same one", func(h home) {
			first := h.start(h.database("a.db"))
			db := h.database("a.db")
			if again := h.start(db); again.secret != first.secret {
				h.t.Error("another key is printed")
			}
			h.usable(db, first)
		}},
		{"a new file is a new key: the old one's alias is taken", func(h home) {
			h.start(h.database("a.db"))
			h.remove(firstKeyFile)
			db := h.database("a.db")
			if row := h.usable(db, h.start(db)); !strings.HasPrefix(row.Alias, "first-key-") {
				h.t.Errorf("alias %q", row.Alias)
			}
		}},
		{"another database with keys of its own does not know it", func(h home) {
			newHome(h.t).start(h.database("b.db"))
			first := h.start(h.database("a.db"))
			db := h.database("b.db")
			key := h.start(db)
			if h.usable(db, key); key.secret != first.secret {
				h.t.Error("the folder's key has changed")
			}
		}},
		{"one that was deleted does not come back with a fresh budget", func(h home) {
			db := h.database("a.db")
			h.delete(db, h.start(db))
			for range 2 {
				if key := h.start(h.database("a.db")); !key.gone {
					h.t.Error("it is back")
				}
			}
		}},
		{"a database that was thrown away is a new one", func(h home) {
			db := h.database("a.db")
			h.start(db)
			db.Close()
			for _, suffix := range []string{"", "-wal", "-shm"} {
				_ = os.Remove(h.file("a.db" + suffix)) // SQLite has removed some
			}
			db = h.database("a.db")
			h.usable(db, h.start(db))
		}},
		{"a start that ended between file and key is made good", func(h home) {
			db := h.database("a.db")
			if _, err := h.secret(firstKeyFile); err != nil {
				h.t.Fatal(err)
			}
			db.isNew = false
			h.usable(db, h.start(db))
		}},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			c.run(newHome(t))
		})
	}
}

func TestFirstKeyTerms(t *testing.T) {
	t.Parallel()
	five := int64(5_000_000_000)
	for _, c := range []struct {
		why  string
		row  store.Key
		want string
	}{
		{"an administrator took the budget away", store.Key{}, "no budget"},
		{"the budget is the database's, not the first one", store.Key{MaxBudget: &five, BudgetDuration: "1mo"}, "a budget of 5 USD per 1mo"},
		{"a budget that is used up explains a 429", store.Key{MaxBudget: &five, Spend: five}, "a budget of 5 USD, 5 spent"},
		{"a blocked key explains a 401", store.Key{Blocked: true}, "no budget, blocked"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			if got := (firstKey{row: c.row}).terms(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestKeyFiles(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	key, err := h.secret("master-key")
	if err != nil || !strings.HasPrefix(key, "sk-") {
		t.Fatalf("got %q, %v", key, err)
	}
	if err := os.Chmod(h.file("master-key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := h.secret("master-key"); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others can read is used: %v", err)
	}
	if err := os.WriteFile(h.file("empty"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.secret("empty"); err == nil {
		t.Error("an empty file is used as a key")
	}
}

func TestFolderPathTooLong(t *testing.T) {
	t.Parallel()
	if _, err := openFolder(filepath.Join(t.TempDir(), strings.Repeat("d", 110))); err == nil || !strings.Contains(err.Error(), "--data") {
		t.Errorf("got %v", err)
	}
}
