package sqlite

import "github.com/penstock-gateway/penstock/internal/store"

// addSubjects adds records to the sums by customer and by tag.
func (t *tx) addSubjects(records []store.Record) error {
	keys, sums := store.SubjectSums(records)
	for _, k := range keys {
		d := sums[k]
		if err := t.exec(`INSERT INTO spend_subjects AS s (subject, day, requests, input, output, cost) VALUES (?,?,?,?,?,?)
			ON CONFLICT DO UPDATE SET requests = s.requests + excluded.requests, input = s.input + excluded.input,
			output = s.output + excluded.output, cost = s.cost + excluded.cost`,
			k.Subject, k.Day, d.Requests, d.Usage.Input, d.Usage.Output, d.Cost); err != nil {
			return err
		}
	}
	return nil
}
