-- Times are microseconds since 1970 UTC; money is nano-dollars.
CREATE TABLE holders (
    id         TEXT PRIMARY KEY,
    expires    INTEGER NOT NULL,
    grant_seq  INTEGER NOT NULL DEFAULT 0,
    reaps      INTEGER NOT NULL DEFAULT 0,
    closed     INTEGER NOT NULL DEFAULT 0,
    closed_at  INTEGER
) STRICT;

CREATE TABLE cursors (
    holder   TEXT PRIMARY KEY,
    last_seq INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE budgets (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    entity    TEXT NOT NULL,
    win       TEXT NOT NULL DEFAULT '',
    duration  TEXT NOT NULL DEFAULT '',
    anchor_ts INTEGER NOT NULL,
    from_ts   INTEGER NOT NULL,
    until_ts  INTEGER,
    limit_n   INTEGER NOT NULL CHECK (limit_n >= 0),
    spent     INTEGER NOT NULL DEFAULT 0,
    overrun   INTEGER NOT NULL DEFAULT 0,
    leased    INTEGER NOT NULL DEFAULT 0 CHECK (leased >= 0),
    lost      INTEGER NOT NULL DEFAULT 0 CHECK (lost >= 0),
    current   INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE UNIQUE INDEX budgets_current ON budgets (entity, win) WHERE current;

CREATE TABLE leases (
    holder  TEXT NOT NULL,
    seq     INTEGER NOT NULL,
    budget  INTEGER NOT NULL,
    state   TEXT NOT NULL CHECK (state IN ('open', 'lost', 'closed')),
    granted INTEGER NOT NULL CHECK (granted >= 0),
    spent   INTEGER NOT NULL DEFAULT 0,
    overrun INTEGER NOT NULL DEFAULT 0,
    lost    INTEGER NOT NULL DEFAULT 0,
    late    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (holder, seq, budget)
) STRICT, WITHOUT ROWID;
CREATE INDEX leases_open ON leases (budget) WHERE state = 'open';

CREATE TABLE keys (
    id              TEXT PRIMARY KEY,
    name            TEXT NOT NULL DEFAULT '',
    alias           TEXT NOT NULL DEFAULT '',
    user_id         TEXT NOT NULL DEFAULT '',
    team_id         TEXT NOT NULL DEFAULT '',
    organization_id TEXT NOT NULL DEFAULT '',
    models          TEXT NOT NULL DEFAULT '[]',
    aliases         TEXT NOT NULL DEFAULT '{}',
    blocked         INTEGER NOT NULL DEFAULT 0,
    expires         INTEGER,
    max_budget      INTEGER CHECK (max_budget >= 0),
    budget_duration TEXT NOT NULL DEFAULT '',
    spend_offset    INTEGER NOT NULL DEFAULT 0,
    tags            TEXT NOT NULL DEFAULT '[]',
    metadata        TEXT NOT NULL DEFAULT '{}',
    settings        TEXT NOT NULL DEFAULT '{}',
    created_by      TEXT NOT NULL DEFAULT '',
    created_at      INTEGER NOT NULL,
    updated_by      TEXT NOT NULL DEFAULT '',
    updated_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE UNIQUE INDEX keys_alias ON keys (alias) WHERE alias <> '';
CREATE INDEX keys_created ON keys (created_at, id);

CREATE TABLE changes (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    key_id   TEXT NOT NULL,
    at       INTEGER NOT NULL
) STRICT;

CREATE TABLE spend_records (
    start_ts        INTEGER NOT NULL,
    request_id      TEXT NOT NULL,
    holder          TEXT NOT NULL,
    seq             INTEGER NOT NULL,
    key_id          TEXT NOT NULL,
    key_alias       TEXT NOT NULL,
    user_id         TEXT NOT NULL,
    team_id         TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    end_user        TEXT NOT NULL,
    tags            TEXT NOT NULL,
    call_type       TEXT NOT NULL,
    requested_model TEXT NOT NULL,
    model           TEXT NOT NULL,
    model_id        TEXT NOT NULL,
    provider        TEXT NOT NULL,
    api_base        TEXT NOT NULL,
    end_ts          INTEGER NOT NULL,
    first_token_ts  INTEGER,
    stream          INTEGER NOT NULL,
    status          TEXT NOT NULL,
    http_status     INTEGER NOT NULL,
    error_code      TEXT NOT NULL,
    input           INTEGER NOT NULL CHECK (input >= 0),
    output          INTEGER NOT NULL CHECK (output >= 0),
    cached          INTEGER NOT NULL CHECK (cached >= 0),
    cache_write     INTEGER NOT NULL CHECK (cache_write >= 0),
    reasoning       INTEGER NOT NULL CHECK (reasoning >= 0),
    cost            INTEGER NOT NULL CHECK (cost >= 0),
    hold            INTEGER NOT NULL,
    charges         TEXT NOT NULL,
    attempts        INTEGER NOT NULL,
    estimated       INTEGER NOT NULL,
    price_version   TEXT NOT NULL,
    upstream_id     TEXT NOT NULL,
    client_ip       TEXT NOT NULL,
    output_cap      INTEGER NOT NULL,
    UNIQUE (holder, seq)
) STRICT;
CREATE INDEX spend_records_start ON spend_records (start_ts, request_id);
CREATE INDEX spend_records_request ON spend_records (request_id);
CREATE INDEX spend_records_key ON spend_records (key_id, start_ts);
CREATE INDEX spend_records_user ON spend_records (user_id, start_ts);

CREATE TABLE spend_daily (
    day             TEXT NOT NULL,
    key_id          TEXT NOT NULL,
    user_id         TEXT NOT NULL,
    team_id         TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    model           TEXT NOT NULL,
    requests        INTEGER NOT NULL,
    input           INTEGER NOT NULL,
    output          INTEGER NOT NULL,
    cached          INTEGER NOT NULL,
    cache_write     INTEGER NOT NULL,
    reasoning       INTEGER NOT NULL,
    cost            INTEGER NOT NULL CHECK (cost >= 0),
    PRIMARY KEY (day, key_id, user_id, team_id, organization_id, model)
) STRICT, WITHOUT ROWID;
CREATE INDEX spend_daily_key ON spend_daily (key_id, cost);

CREATE TABLE dead_letters (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    holder     TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    reason     TEXT NOT NULL,
    payload    TEXT NOT NULL,
    at         INTEGER NOT NULL
) STRICT;

CREATE TABLE audit (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    action  TEXT NOT NULL,
    subject TEXT NOT NULL,
    before  TEXT,
    after   TEXT
) STRICT;
