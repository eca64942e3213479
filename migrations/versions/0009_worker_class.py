"""Workers that are reserved for a class of requests.

A gateway of before reads no such column, and sends such a worker requests of either class until it
is replaced.
"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

LOCK_TIMEOUT = "SET LOCAL lock_timeout = '5s'"


def upgrade() -> None:
    """Add the column: null, which serves both, for every worker there is."""
    op.execute(LOCK_TIMEOUT)
    op.execute(
        "ALTER TABLE worker ADD COLUMN class text,"
        " ADD CONSTRAINT worker_class_check CHECK (class IN ('interactive', 'batch'))"
    )


def downgrade() -> None:
    """Take it away: every worker serves both again."""
    op.execute(LOCK_TIMEOUT)
    op.execute("ALTER TABLE worker DROP COLUMN class")
