-- What `penstock ledger verify` needs to tell a difference from an explanation.
-- Columns without a default are NULL in rows from before: what they would tell is not known there.
ALTER TABLE budgets ADD COLUMN opening_spent INTEGER; -- what the row began with
ALTER TABLE budgets ADD COLUMN opening_overrun INTEGER;
ALTER TABLE budgets ADD COLUMN lowered_from INTEGER; -- the highest limit that was lowered: up to it the law's sum may stand
ALTER TABLE budgets ADD COLUMN late_overrun INTEGER NOT NULL DEFAULT 0; -- the part of overrun that came after the money was charged or returned

CREATE TRIGGER budgets_opening AFTER INSERT ON budgets BEGIN
    UPDATE budgets SET opening_spent = NEW.spent, opening_overrun = NEW.overrun WHERE id = NEW.id;
END;
CREATE TRIGGER budgets_lowered AFTER UPDATE OF limit_n ON budgets WHEN NEW.limit_n < OLD.limit_n BEGIN
    UPDATE budgets SET lowered_from = max(coalesce(OLD.lowered_from, 0), OLD.limit_n) WHERE id = NEW.id;
END;

-- When a lease and a holder began says whether all of their records are looked at.
ALTER TABLE leases ADD COLUMN created INTEGER;
ALTER TABLE cursors ADD COLUMN created INTEGER;

-- What a dead letter moved, in the sums' own words: its payload may be beyond what they can read.
ALTER TABLE dead_letters ADD COLUMN booked TEXT;

-- The cost before an administrator corrected it.
ALTER TABLE spend_records ADD COLUMN corrected_from INTEGER;
