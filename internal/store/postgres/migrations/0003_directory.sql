SET LOCAL lock_timeout = '5s'; -- commits queue behind this migration's locks: rather fail and be run again

-- What budgets belong to beside keys. The name is the one that stands in budgets.entity: "team:<id>". A template
-- (kind "budget") holds no money: others take its limit.
CREATE TABLE entities (
    name            text PRIMARY KEY,
    kind            text NOT NULL CHECK (kind IN ('global', 'org', 'team', 'member', 'user', 'customer', 'tag', 'budget')),
    id              text NOT NULL,
    team_id         text NOT NULL DEFAULT '', -- of a member, whose id is the user's
    organization_id text NOT NULL DEFAULT '', -- of a team
    alias           text NOT NULL DEFAULT '',
    email           text NOT NULL DEFAULT '',
    role            text NOT NULL DEFAULT '',
    models          text[] NOT NULL DEFAULT '{}',
    blocked         boolean NOT NULL DEFAULT false,
    max_budget      bigint CHECK (max_budget >= 0),
    budget_duration text NOT NULL DEFAULT '',
    spend_offset    bigint NOT NULL DEFAULT 0,
    metadata        jsonb NOT NULL DEFAULT '{}',
    settings        jsonb NOT NULL DEFAULT '{}',
    created_by      text NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL,
    updated_by      text NOT NULL DEFAULT '',
    updated_at      timestamptz NOT NULL,
    version         bigint NOT NULL DEFAULT 1
);
CREATE INDEX entities_created ON entities (kind, created_at, name);
CREATE UNIQUE INDEX entities_alias ON entities (kind, alias) WHERE alias <> '' AND kind IN ('org', 'team');
CREATE UNIQUE INDEX entities_email ON entities (lower(email)) WHERE email <> '' AND kind = 'user';
CREATE INDEX entities_members ON entities (team_id) WHERE kind = 'member';
CREATE INDEX entities_memberships ON entities (id) WHERE kind = 'member';
CREATE INDEX entities_organization ON entities (organization_id) WHERE organization_id <> '';
CREATE INDEX entities_template ON entities ((settings ->> 'budget_id')) WHERE settings ? 'budget_id';
CREATE INDEX keys_template ON keys ((settings ->> 'budget_id')) WHERE settings ? 'budget_id';
CREATE INDEX keys_organization ON keys (organization_id) WHERE organization_id <> '';

-- Secrets that open a key beside the one whose SHA-256 is the key's id.
CREATE TABLE key_secrets (
    hash   text PRIMARY KEY,
    key_id text NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    until  timestamptz -- null: as long as the key
);
CREATE INDEX key_secrets_key ON key_secrets (key_id);
-- Until when the first secret, whose SHA-256 is the id, opens the key. Null: as long as the key.
ALTER TABLE keys ADD COLUMN secret_until timestamptz;

-- Sums by customer and by tag, in shards as spend_daily.
CREATE TABLE spend_subjects (
    subject  text NOT NULL, -- "customer:<id>" or "tag:<name>"
    day      date NOT NULL,
    shard    smallint NOT NULL,
    requests bigint NOT NULL,
    input    bigint NOT NULL,
    output   bigint NOT NULL,
    cost     bigint NOT NULL CHECK (cost >= 0),
    PRIMARY KEY (subject, day, shard)
) WITH (fillfactor = 50);

CREATE INDEX spend_daily_user ON spend_daily (user_id) WHERE user_id <> '';
CREATE INDEX spend_daily_team ON spend_daily (team_id, user_id) WHERE team_id <> '';
CREATE INDEX spend_daily_organization ON spend_daily (organization_id) WHERE organization_id <> '';
