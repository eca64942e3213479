"""Alerts about budgets of a month: each threshold of each limit once, whoever sees it first.

The key holds the limit too: a budget that is changed within its month is another one, and says for
itself how much of it is spent.
"""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

LOCK_TIMEOUT = "SET LOCAL lock_timeout = '5s'"

ALERT = """
CREATE TABLE budget_alert (
    id bigint GENERATED ALWAYS AS IDENTITY,
    tenant_id text NOT NULL,
    api_key_id text,
    model text,
    month text NOT NULL,
    period_start timestamptz NOT NULL,
    period_end timestamptz NOT NULL,
    currency text NOT NULL,
    threshold_percent integer NOT NULL,
    limit_pico numeric NOT NULL,
    spent_pico numeric NOT NULL,
    unpriced_requests bigint NOT NULL,
    noticed_at timestamptz NOT NULL DEFAULT now(),
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    delivered_at timestamptz,
    CONSTRAINT budget_alert_pkey PRIMARY KEY (id),
    CONSTRAINT budget_alert_once_key UNIQUE NULLS NOT DISTINCT (
        tenant_id, api_key_id, model, period_start, period_end, currency, threshold_percent,
        limit_pico),
    CONSTRAINT budget_alert_period_check CHECK (period_start < period_end),
    CONSTRAINT budget_alert_threshold_check CHECK (threshold_percent IN (80, 100)),
    CONSTRAINT budget_alert_amounts_check CHECK (
        limit_pico >= 0 AND spent_pico > 0 AND spent_pico * 100 >= limit_pico * threshold_percent),
    CONSTRAINT budget_alert_attempts_check CHECK (attempts >= 0 AND unpriced_requests >= 0)
)
"""
OF_TENANT = "CREATE INDEX budget_alert_tenant_id_idx ON budget_alert (tenant_id, id)"
TO_SEND = """
CREATE INDEX budget_alert_to_send_idx ON budget_alert (next_attempt_at) WHERE delivered_at IS NULL
"""


def upgrade() -> None:
    """Add the table. The release before knows nothing of it."""
    op.execute(LOCK_TIMEOUT)
    for statement in (ALERT, OF_TENANT, TO_SEND):
        op.execute(statement)


def downgrade() -> None:
    """Drop it, with every alert."""
    op.execute(LOCK_TIMEOUT)
    op.execute("DROP TABLE budget_alert")
