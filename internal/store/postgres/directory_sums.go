package postgres

import "github.com/penstock-gateway/penstock/internal/store"

// addSubjects adds records to the sums by customer and by tag.
func (t *tx) addSubjects(holder store.HolderID, records []store.Record) error {
	keys, sums := store.SubjectSums(records)
	if len(keys) == 0 {
		return nil
	}
	var subject, day []string
	var n [4][]int64
	for _, k := range keys {
		subject, day = append(subject, k.Subject), append(day, k.Day)
		d := sums[k]
		for i, v := range []int64{d.Requests, d.Usage.Input, d.Usage.Output, d.Cost} {
			n[i] = append(n[i], v)
		}
	}
	return t.exec(`INSERT INTO spend_subjects AS s (subject, day, shard, requests, input, output, cost)
		SELECT u.s, u.d::date, $1::int, n1, n2, n3, n4
		FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[]) u (s, d, n1, n2, n3, n4)
		ON CONFLICT (subject, day, shard) DO UPDATE SET requests = s.requests + excluded.requests,
			input = s.input + excluded.input, output = s.output + excluded.output, cost = s.cost + excluded.cost`,
		shard(holder), subject, day, n[0], n[1], n[2], n[3])
}
