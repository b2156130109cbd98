-- What budgets belong to beside keys. The name is the one that stands in budgets.entity: "team:<id>". A template
-- (kind "budget") holds no money: others take its limit.
CREATE TABLE entities (
    name            TEXT PRIMARY KEY,
    kind            TEXT NOT NULL CHECK (kind IN ('global', 'org', 'team', 'member', 'user', 'customer', 'tag', 'budget')),
    id              TEXT NOT NULL,
    team_id         TEXT NOT NULL DEFAULT '', -- of a member, whose id is the user's
    organization_id TEXT NOT NULL DEFAULT '', -- of a team
    alias           TEXT NOT NULL DEFAULT '',
    email           TEXT NOT NULL DEFAULT '',
    role            TEXT NOT NULL DEFAULT '',
    models          TEXT NOT NULL DEFAULT '[]',
    blocked         INTEGER NOT NULL DEFAULT 0,
    max_budget      INTEGER CHECK (max_budget >= 0),
    budget_duration TEXT NOT NULL DEFAULT '',
    spend_offset    INTEGER NOT NULL DEFAULT 0,
    metadata        TEXT NOT NULL DEFAULT '{}',
    settings        TEXT NOT NULL DEFAULT '{}',
    created_by      TEXT NOT NULL DEFAULT '',
    created_at      INTEGER NOT NULL,
    updated_by      TEXT NOT NULL DEFAULT '',
    updated_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX entities_created ON entities (kind, created_at, name);
CREATE UNIQUE INDEX entities_alias ON entities (kind, alias) WHERE alias <> '' AND kind IN ('org', 'team');
CREATE UNIQUE INDEX entities_email ON entities (lower(email)) WHERE email <> '' AND kind = 'user';
CREATE INDEX entities_members ON entities (team_id) WHERE kind = 'member';
CREATE INDEX entities_memberships ON entities (id) WHERE kind = 'member';
CREATE INDEX entities_organization ON entities (organization_id) WHERE organization_id <> '';
CREATE INDEX entities_template ON entities (json_extract(settings, '$.budget_id'));
CREATE INDEX keys_template ON keys (json_extract(settings, '$.budget_id'));
CREATE INDEX keys_organization ON keys (organization_id) WHERE organization_id <> '';
CREATE INDEX keys_user ON keys (user_id) WHERE user_id <> '';
CREATE INDEX keys_team ON keys (team_id) WHERE team_id <> '';

-- Secrets that open a key beside the one whose SHA-256 is the key's id.
CREATE TABLE key_secrets (
    hash   TEXT PRIMARY KEY,
    key_id TEXT NOT NULL,
    until  INTEGER -- null: as long as the key
) STRICT;
CREATE INDEX key_secrets_key ON key_secrets (key_id);
-- Until when the first secret, whose SHA-256 is the id, opens the key. Null: as long as the key.
ALTER TABLE keys ADD COLUMN secret_until INTEGER;

-- Sums by customer and by tag.
CREATE TABLE spend_subjects (
    subject  TEXT NOT NULL, -- "customer:<id>" or "tag:<name>"
    day      TEXT NOT NULL,
    requests INTEGER NOT NULL,
    input    INTEGER NOT NULL,
    output   INTEGER NOT NULL,
    cost     INTEGER NOT NULL CHECK (cost >= 0),
    PRIMARY KEY (subject, day)
) STRICT, WITHOUT ROWID;

CREATE INDEX spend_daily_user ON spend_daily (user_id) WHERE user_id <> '';
CREATE INDEX spend_daily_team ON spend_daily (team_id, user_id) WHERE team_id <> '';
CREATE INDEX spend_daily_organization ON spend_daily (organization_id) WHERE organization_id <> '';
