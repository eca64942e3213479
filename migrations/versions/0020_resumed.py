"""Which suspensions of a tenant its row knows of: all up to when it was last resumed.

A backup that was restored lacks a suspension that came after it, whatever else is changed on the
tenant since. A trigger writes it down, so that a gateway of the release before does it too.
"""

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

LOCK_TIMEOUT = "SET LOCAL lock_timeout = '5s'"

# Whoever names another value resumes a tenant of which this database knows no suspension.
FUNCTION = """
CREATE FUNCTION tenant_note_resumed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.resumed_change <> OLD.resumed_change
        OR (OLD.suspended_at IS NOT NULL AND NEW.suspended_at IS NULL) THEN
        NEW.resumed_change := NEW.changed;
    END IF;
    RETURN NEW;
END $$
"""
# Triggers fire in the order of their names: the change has its number by then.
TRIGGER = """
CREATE TRIGGER tenant_resumed BEFORE UPDATE ON tenant
FOR EACH ROW EXECUTE FUNCTION tenant_note_resumed()
"""


def upgrade() -> None:
    """Add it. Whoever is not suspended now was resumed by now."""
    op.execute(LOCK_TIMEOUT)
    op.execute("ALTER TABLE tenant ADD COLUMN resumed_change bigint NOT NULL DEFAULT 0")
    op.execute("ALTER TABLE tenant DISABLE TRIGGER USER")
    op.execute("UPDATE tenant SET resumed_change = changed WHERE suspended_at IS NULL")
    op.execute("ALTER TABLE tenant ENABLE TRIGGER USER")
    op.execute(FUNCTION)
    op.execute(TRIGGER)


def downgrade() -> None:
    """Take it away."""
    op.execute(LOCK_TIMEOUT)
    op.execute("DROP TRIGGER tenant_resumed ON tenant")
    op.execute("DROP FUNCTION tenant_note_resumed()")
    op.execute("ALTER TABLE tenant DROP COLUMN resumed_change")
