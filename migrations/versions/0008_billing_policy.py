"""The billing policy as rows: which outcomes a tenant pays for, under each version of the table.

Gateways judge by the same table in their code; `weir check` compares the two. Every usage record
names the version it was judged by, so what is written here is never changed.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# version, outcome, paid for with output, paid for without
ROWS = (
    (1, "completed", True, True),
    (1, "client_cancelled", True, False),
    (1, "worker_failed", False, False),
    (1, "timed_out", False, False),
    (1, "refused", False, False),
    (1, "gateway_lost", False, False),
    (1, "taken_back", False, False),
)

NEVER_CHANGED = """
CREATE FUNCTION billing_policy_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the billing policy is append-only' USING ERRCODE = 'restrict_violation';
END $$
"""

TRIGGER = """
CREATE TRIGGER billing_policy_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON billing_policy
FOR EACH STATEMENT EXECUTE FUNCTION billing_policy_append_only()
"""


def upgrade() -> None:
    """Create the table with every version so far."""
    table = op.create_table(
        "billing_policy",
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("with_output", sa.Boolean(), nullable=False),
        sa.Column("without_output", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("version", "outcome", name="billing_policy_pkey"),
        sa.CheckConstraint("version >= 1", name="billing_policy_version_check"),
    )
    names = [column.name for column in table.columns]
    op.bulk_insert(table, [dict(zip(names, row, strict=True)) for row in ROWS])
    op.execute(NEVER_CHANGED)
    op.execute(TRIGGER)


def downgrade() -> None:
    """Drop it; its trigger goes with it."""
    op.drop_table("billing_policy")
    op.execute("DROP FUNCTION billing_policy_append_only()")
