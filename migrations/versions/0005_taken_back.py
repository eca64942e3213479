"""An attempt that gave its place to an interactive request has an outcome of its own."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

OUTCOMES = (
    "'completed', 'client_cancelled', 'worker_failed', 'timed_out', 'refused', 'gateway_lost'"
)


def upgrade() -> None:
    """Let attempts end so; requests do not. Postgres reads the table for it, and the journals of
    gateways that ship meanwhile wait."""
    _take(f"{OUTCOMES}, 'taken_back'")


def downgrade() -> None:
    """Write such attempts as the release before did."""
    op.execute("UPDATE usage_attempt SET outcome = 'refused' WHERE outcome = 'taken_back'")
    _take(OUTCOMES)


def _take(outcomes: str) -> None:
    op.execute(
        "ALTER TABLE usage_attempt DROP CONSTRAINT usage_attempt_outcome_check,"
        f" ADD CONSTRAINT usage_attempt_outcome_check CHECK (outcome IN ({outcomes}))"
    )
