-- Money is bigint nano-dollars. Lock order everywhere: holders, cursors, leases, budgets, each by id.

-- One row per process life of a worker.
CREATE TABLE holders (
    id        text PRIMARY KEY,
    expires   timestamptz NOT NULL,
    grant_seq bigint NOT NULL DEFAULT 0,
    reaps     integer NOT NULL DEFAULT 0,
    closed    boolean NOT NULL DEFAULT false,
    closed_at timestamptz
) WITH (fillfactor = 50);
CREATE INDEX holders_closed ON holders (closed_at) WHERE closed;

-- The last record that is in, per holder: what makes records exactly-once.
CREATE TABLE cursors (
    holder   text PRIMARY KEY,
    last_seq bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- One row per entity and period. No foreign keys point here: they would lock the row that every grant needs.
CREATE TABLE budgets (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    entity    text NOT NULL,
    win       text NOT NULL DEFAULT '',
    duration  text NOT NULL DEFAULT '',
    anchor_ts timestamptz NOT NULL,
    from_ts   timestamptz NOT NULL,
    until_ts  timestamptz,
    limit_n   bigint NOT NULL CHECK (limit_n >= 0),
    spent     bigint NOT NULL DEFAULT 0,
    overrun   bigint NOT NULL DEFAULT 0,
    leased    bigint NOT NULL DEFAULT 0 CHECK (leased >= 0),
    lost      bigint NOT NULL DEFAULT 0 CHECK (lost >= 0),
    current   boolean NOT NULL DEFAULT true
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX budgets_current ON budgets (entity, win) WHERE current;

CREATE TABLE leases (
    holder  text NOT NULL,
    seq     bigint NOT NULL,
    budget  bigint NOT NULL,
    state   text NOT NULL CHECK (state IN ('open', 'lost', 'closed')),
    granted bigint NOT NULL CHECK (granted >= 0),
    spent   bigint NOT NULL DEFAULT 0,
    overrun bigint NOT NULL DEFAULT 0,
    lost    bigint NOT NULL DEFAULT 0 CHECK (lost >= 0),
    late    bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (holder, seq, budget)
) WITH (fillfactor = 70);
CREATE INDEX leases_open ON leases (budget) WHERE state = 'open';
CREATE INDEX leases_live ON leases (holder) WHERE state <> 'closed';

CREATE TABLE keys (
    id              text PRIMARY KEY,
    name            text NOT NULL DEFAULT '',
    alias           text NOT NULL DEFAULT '',
    user_id         text NOT NULL DEFAULT '',
    team_id         text NOT NULL DEFAULT '',
    organization_id text NOT NULL DEFAULT '',
    models          text[] NOT NULL DEFAULT '{}',
    aliases         jsonb NOT NULL DEFAULT '{}',
    blocked         boolean NOT NULL DEFAULT false,
    expires         timestamptz,
    max_budget      bigint CHECK (max_budget >= 0),
    budget_duration text NOT NULL DEFAULT '',
    spend_offset    bigint NOT NULL DEFAULT 0,
    tags            text[] NOT NULL DEFAULT '{}',
    metadata        jsonb NOT NULL DEFAULT '{}',
    settings        jsonb NOT NULL DEFAULT '{}',
    created_by      text NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL,
    updated_by      text NOT NULL DEFAULT '',
    updated_at      timestamptz NOT NULL,
    version         bigint NOT NULL DEFAULT 1
);
CREATE UNIQUE INDEX keys_alias ON keys (alias) WHERE alias <> '';
CREATE INDEX keys_created ON keys (created_at, id);
CREATE INDEX keys_user ON keys (user_id, created_at) WHERE user_id <> '';
CREATE INDEX keys_team ON keys (team_id, created_at) WHERE team_id <> '';

-- Polled in the order of txid, below the snapshot's xmin: a transaction that commits late has an older txid than
-- the poll's horizon and so was never passed by.
CREATE TABLE changes (
    position bigserial PRIMARY KEY,
    txid     xid8 NOT NULL DEFAULT pg_current_xact_id(),
    key_id   text NOT NULL,
    at       timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX changes_txid ON changes (txid, position);

CREATE TABLE spend_records (
    start_ts        timestamptz NOT NULL,
    request_id      text NOT NULL,
    holder          text NOT NULL,
    seq             bigint NOT NULL,
    key_id          text NOT NULL,
    key_alias       text NOT NULL,
    user_id         text NOT NULL,
    team_id         text NOT NULL,
    organization_id text NOT NULL,
    end_user        text NOT NULL,
    tags            text[] NOT NULL,
    call_type       text NOT NULL,
    requested_model text NOT NULL,
    model           text NOT NULL,
    model_id        text NOT NULL,
    provider        text NOT NULL,
    api_base        text NOT NULL,
    end_ts          timestamptz NOT NULL,
    first_token_ts  timestamptz,
    stream          boolean NOT NULL,
    status          text NOT NULL,
    http_status     integer NOT NULL,
    error_code      text NOT NULL,
    input           bigint NOT NULL CHECK (input >= 0),
    output          bigint NOT NULL CHECK (output >= 0),
    cached          bigint NOT NULL CHECK (cached >= 0),
    cache_write     bigint NOT NULL CHECK (cache_write >= 0),
    reasoning       bigint NOT NULL CHECK (reasoning >= 0),
    cost            bigint NOT NULL CHECK (cost >= 0),
    hold            bigint NOT NULL,
    charges         jsonb NOT NULL,
    attempts        integer NOT NULL,
    estimated       boolean NOT NULL,
    price_version   text NOT NULL,
    upstream_id     text NOT NULL,
    client_ip       text NOT NULL,
    output_cap      bigint NOT NULL
) PARTITION BY RANGE (start_ts);
CREATE INDEX spend_records_start ON spend_records (start_ts, request_id);
CREATE INDEX spend_records_request ON spend_records (request_id);
CREATE INDEX spend_records_key ON spend_records (key_id, start_ts);
CREATE INDEX spend_records_user ON spend_records (user_id, start_ts);
-- Takes what no day's partition takes, so that a clock that is wrong loses nothing.
CREATE TABLE spend_records_default PARTITION OF spend_records DEFAULT;

-- Sums per day. The shard spreads commits of many holders over several rows, so that none is hot.
CREATE TABLE spend_daily (
    day             date NOT NULL,
    key_id          text NOT NULL,
    user_id         text NOT NULL,
    team_id         text NOT NULL,
    organization_id text NOT NULL,
    model           text NOT NULL,
    shard           smallint NOT NULL,
    requests        bigint NOT NULL,
    input           bigint NOT NULL,
    output          bigint NOT NULL,
    cached          bigint NOT NULL,
    cache_write     bigint NOT NULL,
    reasoning       bigint NOT NULL,
    cost            bigint NOT NULL CHECK (cost >= 0),
    PRIMARY KEY (key_id, day, user_id, team_id, organization_id, model, shard)
) WITH (fillfactor = 50);
CREATE INDEX spend_daily_day ON spend_daily (day);

-- Records that cannot stand in spend_records. They moved their money all the same.
CREATE TABLE dead_letters (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    holder     text NOT NULL,
    seq        bigint NOT NULL,
    request_id text NOT NULL,
    reason     text NOT NULL,
    payload    text NOT NULL,
    at         timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE audit (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor   text NOT NULL,
    action  text NOT NULL,
    subject text NOT NULL,
    before  jsonb,
    after   jsonb
);
CREATE INDEX audit_at ON audit (at);
