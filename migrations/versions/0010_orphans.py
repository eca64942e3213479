"""What is known of gateways that are gone, and of requests whose end they never told.

`gateway_seen` keeps in Postgres how far each journal was on its disk, so that it can be said what
is missing when disk and Redis are lost. `usage_provisional` lists the rows that another gateway
wrote in the place of one that is gone, `usage_late` what its journal said after they had become
final.

A gateway of before knows none of them: what its journal says late is passed over, as it was.
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

LOCK_TIMEOUT = "SET LOCAL lock_timeout = '5s'"

GATEWAY_SEEN = """
CREATE TABLE gateway_seen (
    gateway_id text NOT NULL,
    boot bigint NOT NULL,
    durable_seq bigint NOT NULL,
    shipped_seq bigint NOT NULL,
    open_count bigint NOT NULL,
    seen_at timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT now(),
    closed_at timestamptz,
    CONSTRAINT gateway_seen_pkey PRIMARY KEY (gateway_id, boot)
)
"""

USAGE_PROVISIONAL = (
    """
CREATE TABLE usage_provisional (
    request_id uuid NOT NULL,
    admitted_at timestamptz NOT NULL,
    gateway_id text NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT usage_provisional_pkey PRIMARY KEY (request_id, admitted_at)
)
""",
    "CREATE INDEX usage_provisional_made_at_idx ON usage_provisional (made_at)",
    "CREATE INDEX usage_provisional_gateway_id_idx ON usage_provisional (gateway_id)",
)

USAGE_LATE = """
CREATE TABLE usage_late (
    request_id uuid NOT NULL,
    admitted_at timestamptz NOT NULL,
    tenant_id text NOT NULL,
    gateway_id text NOT NULL,
    boot bigint,
    seq bigint,
    outcome text NOT NULL,
    prompt_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost_pico bigint,
    currency text,
    payload bytea NOT NULL,
    came_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT usage_late_pkey PRIMARY KEY (request_id, admitted_at),
    CONSTRAINT usage_late_journal_check CHECK ((boot IS NULL) = (seq IS NULL))
)
"""


def upgrade() -> None:
    """Add them, empty."""
    op.execute(LOCK_TIMEOUT)
    op.execute(GATEWAY_SEEN)
    for statement in USAGE_PROVISIONAL:
        op.execute(statement)
    op.execute(USAGE_LATE)


def downgrade() -> None:
    """Take them away. Rows that are provisional then stay so until their journal's account."""
    op.execute(LOCK_TIMEOUT)
    op.execute("DROP TABLE usage_late")
    op.execute("DROP TABLE usage_provisional")
    op.execute("DROP TABLE gateway_seen")
