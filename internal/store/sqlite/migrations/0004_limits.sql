-- The state of one rate limit: what counts against it, until when (see internal/ledger, Meter).
CREATE TABLE limit_meters (
    subject TEXT NOT NULL,
    kind    INTEGER NOT NULL, -- 1 requests, 2 tokens, 3 parallel
    state   TEXT NOT NULL,
    touched INTEGER NOT NULL,
    PRIMARY KEY (subject, kind)
) WITHOUT ROWID;

-- The last number of each holder's calls about limits: a call that arrives twice counts once.
CREATE TABLE limit_holders (
    holder  TEXT PRIMARY KEY,
    seq     INTEGER NOT NULL,
    touched INTEGER NOT NULL
) WITHOUT ROWID;
