-- What `penstock ledger verify` needs to tell a difference from an explanation.
-- Columns without a default are NULL in rows from before: what they would tell is not known there.
SET LOCAL lock_timeout = '5s'; -- commits queue behind this migration's locks: rather fail and be run again

ALTER TABLE budgets
    ADD COLUMN opening_spent   bigint, -- what the row began with: spend from before there was a budget, or set by an administrator
    ADD COLUMN opening_overrun bigint,
    ADD COLUMN lowered_from    bigint, -- the highest limit that was lowered: up to it the law's sum may stand
    ADD COLUMN late_overrun    bigint NOT NULL DEFAULT 0; -- the part of overrun that came after the money was charged or returned

-- A trigger, because the previous release makes budget rows on this schema too. Grants and
-- commits do not fire it: they never set limit_n.
CREATE FUNCTION budgets_remember() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        NEW.opening_spent := NEW.spent;
        NEW.opening_overrun := NEW.overrun;
    ELSIF NEW.limit_n < OLD.limit_n THEN
        NEW.lowered_from := greatest(OLD.lowered_from, OLD.limit_n);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER budgets_remember BEFORE INSERT OR UPDATE OF limit_n ON budgets
    FOR EACH ROW EXECUTE FUNCTION budgets_remember();

-- When a lease and a holder began says whether all of their records are still kept.
ALTER TABLE leases ADD COLUMN created timestamptz;
ALTER TABLE leases ALTER COLUMN created SET DEFAULT clock_timestamp();
ALTER TABLE cursors ADD COLUMN created timestamptz;
ALTER TABLE cursors ALTER COLUMN created SET DEFAULT clock_timestamp();

-- What a dead letter moved, in the sums' own words: its payload may be beyond what they can read.
ALTER TABLE dead_letters ADD COLUMN booked jsonb;

-- The cost before an administrator corrected it.
ALTER TABLE spend_records ADD COLUMN corrected_from bigint;

-- Records that began earlier are gone, dropped by their age. One row, or none.
CREATE TABLE retention (
    one       boolean PRIMARY KEY DEFAULT true CHECK (one),
    kept_from timestamptz NOT NULL
);
