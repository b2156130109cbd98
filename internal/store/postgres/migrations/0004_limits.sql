-- The state of one rate limit: what counts against it, until when (see internal/ledger, Meter). One row, so that
-- whoever decides on it holds it.
CREATE TABLE limit_meters (
    subject text NOT NULL,
    kind    smallint NOT NULL, -- 1 requests, 2 tokens, 3 parallel
    state   text NOT NULL,
    touched timestamptz NOT NULL,
    PRIMARY KEY (subject, kind)
) WITH (fillfactor = 50);

-- The last number of each holder's calls about limits: a call that arrives twice counts once.
CREATE TABLE limit_holders (
    holder  text PRIMARY KEY,
    seq     bigint NOT NULL,
    touched timestamptz NOT NULL
) WITH (fillfactor = 50);
