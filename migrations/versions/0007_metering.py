"""What metering keeps for whoever checks it.

Attempts say where their counts come from, dead letters how often they were tried again, journals
which of their numbers the disk has lost. And the time in a request's id, which two checks of each
request ask for, is found at a fifth of the cost.

Old and new gateways ship side by side meanwhile: what is added may be left out.
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# A long report holds the parents; shipments would queue behind what waits for it.
LOCK_TIMEOUT = "SET LOCAL lock_timeout = '5s'"

JOURNAL_GAP = """
CREATE TABLE journal_gap (
    gateway_id text NOT NULL,
    boot bigint NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    reason text NOT NULL,
    found_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT journal_gap_pkey PRIMARY KEY (gateway_id, boot, first_seq),
    CONSTRAINT journal_gap_order_check CHECK (first_seq <= last_seq)
)
"""

# Postgres puts a function's body in the place of its call only where it is not STRICT, or is strict
# by itself, which no CASE is. Of NULL it says NULL either way.
UUID_V7_TIME = """
CREATE OR REPLACE FUNCTION uuid_v7_time(id uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN get_byte(uuid_send(id), 6) >> 4 = 7 THEN
    unix_ms_time(('x' || encode(substr(uuid_send(id), 1, 6), 'hex'))::bit(48)::bigint)
END
"""
UUID_V7_TIME_BEFORE = """
CREATE OR REPLACE FUNCTION uuid_v7_time(id uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN substr(id::text, 15, 1) = '7' THEN
    unix_ms_time(('x' || substr(id::text, 1, 8) || substr(id::text, 10, 4))::bit(48)::bigint)
END
"""


def upgrade() -> None:
    """Add them. No row is written anew, and no table is read."""
    op.execute(LOCK_TIMEOUT)
    op.execute(
        "ALTER TABLE usage_attempt ADD COLUMN usage_source text,"
        " ADD COLUMN cached_prompt_tokens integer"
    )
    op.execute("ALTER TABLE usage_dead_letter ADD COLUMN retries integer NOT NULL DEFAULT 0")
    op.execute(JOURNAL_GAP)
    op.execute(UUID_V7_TIME)


def downgrade() -> None:
    """Take them away, with what they say."""
    op.execute(LOCK_TIMEOUT)
    op.execute(UUID_V7_TIME_BEFORE)
    op.execute("DROP TABLE journal_gap")
    op.execute("ALTER TABLE usage_dead_letter DROP COLUMN retries")
    op.execute(
        "ALTER TABLE usage_attempt DROP COLUMN usage_source, DROP COLUMN cached_prompt_tokens"
    )
