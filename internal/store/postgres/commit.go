package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// shards is the number of rows that one day's sum is spread over.
const shards = 16

// Commit implements store.Ledger. Records go in first and the daily sums, the
// rows that other holders want too, last, so that they are locked the shortest.
func (s *Store) Commit(ctx context.Context, holder store.HolderID, records []store.Record) (uint64, error) {
	var last uint64
	err := s.flush.tx(ctx, "commit records", func(t *tx) (err error) {
		if last, err = t.lockCursor(holder); err != nil {
			return err
		}
		fresh, err := store.Fresh(records, last)
		if err != nil || len(fresh) == 0 {
			return err
		}
		if err := t.commit(holder, fresh); err != nil {
			return err
		}
		last = fresh[len(fresh)-1].Seq
		return t.exec(`UPDATE cursors SET last_seq = $2 WHERE holder = $1`, string(holder), int64(last))
	})
	if err != nil && !errors.Is(err, store.ErrGap) {
		return 0, err
	}
	return last, err
}

// lockCursor makes the holder's cursor when it is missing, then locks and reads
// it: two first batches of a holder must meet in one row.
func (t *tx) lockCursor(holder store.HolderID) (last uint64, err error) {
	var b pgx.Batch
	b.Queue(`INSERT INTO cursors (holder) VALUES ($1) ON CONFLICT DO NOTHING`, string(holder))
	b.Queue(`SELECT last_seq FROM cursors WHERE holder = $1 FOR UPDATE`, string(holder)).
		QueryRow(func(r pgx.Row) error { return r.Scan(&last) })
	return last, t.send(&b)
}

// commit writes records and moves their money.
func (t *tx) commit(holder store.HolderID, given []store.Record) error {
	records := make([]store.Record, len(given)) // a copy: the caller may send them again
	copy(records, given)
	for i := range records {
		records[i].Clean()
	}
	if err := t.writeRecords(holder, records); err != nil {
		return err
	}
	leases, err := t.leases(holder, store.Refs(records))
	if err != nil {
		return err
	}
	changes := make(map[int64]ledger.Delta)
	for i := range records {
		if err := records[i].Charge(leases, changes); err != nil {
			return err
		}
	}
	if err := t.saveLeases(holder, leases); err != nil {
		return err
	}
	if err := t.change(changes); err != nil {
		return err
	}
	if err := t.addDays(holder, records); err != nil {
		return err
	}
	return t.addSubjects(holder, records)
}

// writeRecords copies the records that can stand among the others; dead letters
// keep their order.
func (t *tx) writeRecords(holder store.HolderID, records []store.Record) error {
	for len(records) > 0 {
		n := 0
		for n < len(records) && records[n].Defect() == "" {
			n++
		}
		if err := t.copyRecords(holder, records[:n]); err != nil {
			return err
		}
		if n == len(records) {
			return nil
		}
		if err := t.bury(holder, &records[n], records[n].Defect()); err != nil {
			return err
		}
		records = records[n+1:]
	}
	return nil
}

// copyRecords copies records within a savepoint. When the database refuses a row
// the batch is halved until that row is alone: one bad row among thousands costs
// a few copies, not thousands of inserts.
func (t *tx) copyRecords(holder store.HolderID, records []store.Record) error {
	if len(records) == 0 {
		return nil
	}
	if err := t.exec(`SAVEPOINT records`); err != nil {
		return err
	}
	_, err := t.Conn().PgConn().CopyFrom(t.ctx, &copyReader{holder: string(holder), records: records}, copyQuery)
	if err == nil {
		return t.exec(`RELEASE SAVEPOINT records`)
	}
	if !refused(err) {
		return err
	}
	if err := t.exec(`ROLLBACK TO SAVEPOINT records; RELEASE SAVEPOINT records`); err != nil {
		return err
	}
	if len(records) == 1 {
		return t.bury(holder, &records[0], err.Error())
	}
	half := len(records) / 2
	if err := t.copyRecords(holder, records[:half]); err != nil {
		return err
	}
	return t.copyRecords(holder, records[half:])
}

// bury writes a dead letter.
func (t *tx) bury(holder store.HolderID, r *store.Record, reason string) error {
	return t.writeLetter(holder, r, reason, r.Payload())
}

func (t *tx) writeLetter(holder store.HolderID, r *store.Record, reason, payload string) error {
	booked, err := json.Marshal(r.Booked())
	if err != nil {
		return err
	}
	return t.exec(`INSERT INTO dead_letters (holder, seq, request_id, reason, payload, booked) VALUES ($1, $2, $3, $4, $5, $6::text::jsonb)`,
		string(holder), int64(r.Seq), r.RequestID, store.CleanText(reason), payload, string(booked))
}

// addDays adds records to the daily sums, in an order that is the same in every
// transaction.
func (t *tx) addDays(holder store.HolderID, records []store.Record) error {
	keys, sums := store.DaySums(records)
	var day, key, user, team, org, model []string
	var n [7][]int64
	for _, k := range keys {
		day, key, user = append(day, k.Day), append(key, k.KeyID), append(user, k.UserID)
		team, org, model = append(team, k.TeamID), append(org, k.OrgID), append(model, k.Model)
		d := sums[k]
		for i, v := range []int64{d.Requests, d.Usage.Input, d.Usage.Output, d.Usage.Cached, d.Usage.CacheWrite, d.Usage.Reasoning, d.Cost} {
			n[i] = append(n[i], v)
		}
	}
	return t.exec(`INSERT INTO spend_daily AS s (day, key_id, user_id, team_id, organization_id, model, shard,
			requests, input, output, cached, cache_write, reasoning, cost)
		SELECT u.day::date, u.k, u.u, u.t, u.o, u.m, $1::int, n1, n2, n3, n4, n5, n6, n7
		FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
			$8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[])
			u (day, k, u, t, o, m, n1, n2, n3, n4, n5, n6, n7)
		ON CONFLICT (key_id, day, user_id, team_id, organization_id, model, shard) DO UPDATE SET
			requests = s.requests + excluded.requests, input = s.input + excluded.input, output = s.output + excluded.output,
			cached = s.cached + excluded.cached, cache_write = s.cache_write + excluded.cache_write,
			reasoning = s.reasoning + excluded.reasoning, cost = s.cost + excluded.cost`,
		shard(holder), day, key, user, team, org, model, n[0], n[1], n[2], n[3], n[4], n[5], n[6])
}

// shard is the holder's row of each daily sum: its commits follow each other
// anyway, so they never wait for themselves.
func shard(holder store.HolderID) int32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(holder)) // never fails
	return int32(h.Sum32() % shards)
}
