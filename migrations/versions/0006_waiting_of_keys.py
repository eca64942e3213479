"""Keys whose waiting nobody limited leave it to their tenants.

A key had the defaults of a tenant, 64 requests and 10 s, and the narrower of the two holds: who
raised a tenant's limits raised nothing until each of its keys was raised too. Now a key that says
neither has none of its own. Keys that were stored before say both, whoever limited anything else of
them; those two numbers together are taken for nobody's choice.
"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


NOT_CHOSEN = """'{"max_queued": 64, "max_wait_ms": 10000}'"""


def upgrade() -> None:
    """Take both away where they are what nobody chose. Gateways hear of it as of any change."""
    op.execute(
        "UPDATE api_key SET limits = limits - 'max_queued' - 'max_wait_ms'"  # noqa: S608 - our own text
        f" WHERE limits @> {NOT_CHOSEN}"
    )


def downgrade() -> None:
    """Say both again, as the release before did, which takes no null there."""
    op.execute(
        f"UPDATE api_key SET limits = {NOT_CHOSEN} || jsonb_strip_nulls(limits)"  # noqa: S608
        " WHERE limits ->> 'max_queued' IS NULL OR limits ->> 'max_wait_ms' IS NULL"
    )
