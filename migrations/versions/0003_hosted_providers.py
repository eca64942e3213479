"""Hosted providers: where a model may be served when the fleet cannot."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# The directory's own, as revision 0001 made them for its tables.
TRIGGERS = (
    ("lock", "INSERT OR UPDATE", "STATEMENT", "directory_lock"),
    ("number_change", "INSERT OR UPDATE", "ROW", "directory_number_change"),
    ("refuse_delete", "DELETE OR TRUNCATE", "STATEMENT", "directory_refuse_delete"),
)


def upgrade() -> None:
    """Create the table, numbered and guarded as the directory's other tables."""
    op.create_table(
        "hosted_provider",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("api_key", sa.Text(), nullable=True),
        sa.Column("models", JSONB(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("connect_timeout_ms", sa.Integer(), nullable=False),
        sa.Column("first_event_timeout_ms", sa.Integer(), nullable=False),
        sa.Column("stall_timeout_ms", sa.Integer(), nullable=False),
        sa.Column("output_limit_field", sa.Text(), nullable=False),
        sa.Column("extensions", ARRAY(sa.Text()), nullable=False),
        sa.Column("removed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            nullable=False,
            server_default=sa.func.now(),
        ),
        sa.PrimaryKeyConstraint("name", name="hosted_provider_pkey"),
        # Usage records name a provider for good: what is removed keeps its row, not its secret.
        sa.CheckConstraint(
            "removed_at IS NULL OR api_key IS NULL", name="hosted_provider_removed_check"
        ),
    )
    op.create_index("hosted_provider_changed_idx", "hosted_provider", ["changed"])
    for name, event, scope, function in TRIGGERS:
        op.execute(
            f"CREATE TRIGGER hosted_provider_{name} BEFORE {event} ON hosted_provider "
            f"FOR EACH {scope} EXECUTE FUNCTION {function}()"
        )


def downgrade() -> None:
    """Drop it; its triggers go with it."""
    op.drop_table("hosted_provider")
