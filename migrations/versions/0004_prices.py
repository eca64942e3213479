"""The price book: list prices, each from an instant on, which nothing changes or takes back."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

PRICE_PICO_MAX = 10**12

FUNCTIONS = {
    "price_append_only": """
BEGIN
    RAISE EXCEPTION 'the price book is append-only' USING ERRCODE = 'restrict_violation';
END""",
    # Requests of the past have been rated. The few seconds are for a writer that has read the
    # clock and then waited for the directory's lock.
    "price_refuse_past": """
BEGIN
    IF NEW.effective_from < clock_timestamp() - interval '5 seconds' THEN
        RAISE EXCEPTION 'a price cannot begin in the past' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END""",
}

# The first two are the directory's own, as revision 0001 made them for its tables.
TRIGGERS = (
    ("lock", "INSERT", "STATEMENT", "directory_lock"),
    ("number_change", "INSERT", "ROW", "directory_number_change"),
    ("refuse_past", "INSERT", "ROW", "price_refuse_past"),
    ("append_only", "UPDATE OR DELETE OR TRUNCATE", "STATEMENT", "price_append_only"),
)


def upgrade() -> None:
    """Create the table, numbered as the directory's tables are, so that gateways follow it."""
    op.create_table(
        "price",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("input_pico", sa.BigInteger(), nullable=False),
        sa.Column("cached_input_pico", sa.BigInteger(), nullable=True),
        sa.Column("output_pico", sa.BigInteger(), nullable=False),
        sa.Column("effective_from", sa.DateTime(timezone=True), nullable=False),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            nullable=False,
            server_default=sa.func.now(),
        ),
        sa.PrimaryKeyConstraint("id", name="price_pkey"),
        sa.UniqueConstraint(
            "model", "provider", "currency", "effective_from", name="price_model_key"
        ),
        sa.CheckConstraint(
            "provider = 'self' OR provider LIKE 'hosted:_%'", name="price_provider_check"
        ),
        sa.CheckConstraint("currency ~ '^[A-Z]{3}$'", name="price_currency_check"),
        sa.CheckConstraint(
            f"input_pico BETWEEN 0 AND {PRICE_PICO_MAX}"
            f" AND cached_input_pico BETWEEN 0 AND {PRICE_PICO_MAX}"
            f" AND output_pico BETWEEN 0 AND {PRICE_PICO_MAX}",
            name="price_pico_check",
        ),
        # Gateways compare it with a request's milliseconds.
        sa.CheckConstraint(
            "effective_from = date_trunc('milliseconds', effective_from)",
            name="price_effective_from_check",
        ),
    )
    op.create_index("price_changed_idx", "price", ["changed"])
    for name, body in FUNCTIONS.items():
        op.execute(f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $${body} $$")
    for name, event, scope, function in TRIGGERS:
        op.execute(
            f"CREATE TRIGGER price_{name} BEFORE {event} ON price "
            f"FOR EACH {scope} EXECUTE FUNCTION {function}()"
        )


def downgrade() -> None:
    """Drop it; its triggers go with it."""
    op.drop_table("price")
    for name in FUNCTIONS:
        op.execute(f"DROP FUNCTION {name}()")
