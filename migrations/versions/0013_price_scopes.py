"""Prices of a tenant, of a plan and of a class, of reasoning and of a request; which plan a tenant
is on.

The table gets another name. `price` is from now on what gateways of before can read of it, and
write to it: list prices of both classes that have nothing new. So a tenant's price is to them no
list price, and no price is to them less than it is.
"""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

LOCK_TIMEOUT = "SET LOCAL lock_timeout = '5s'"

PRICE_PICO_MAX = 10**12
REQUEST_PICO_MAX = 10**17

CHECKS_BEFORE = {
    "price_pico_check": f"""input_pico BETWEEN 0 AND {PRICE_PICO_MAX}
        AND cached_input_pico BETWEEN 0 AND {PRICE_PICO_MAX}
        AND output_pico BETWEEN 0 AND {PRICE_PICO_MAX}""",
}
CHECKS = {
    "price_pico_check": f"""input_pico BETWEEN 0 AND {PRICE_PICO_MAX}
        AND cached_input_pico BETWEEN 0 AND {PRICE_PICO_MAX}
        AND output_pico BETWEEN 0 AND {PRICE_PICO_MAX}
        AND reasoning_pico BETWEEN 0 AND {PRICE_PICO_MAX}
        AND request_pico BETWEEN 0 AND {REQUEST_PICO_MAX}""",
    "price_scope_check": "tenant_id IS NULL OR plan IS NULL",
    "price_class_check": "class IN ('interactive', 'batch')",
    # What ends a line lets the next one hold. Behind the list's own there is none: a model would
    # have no price, which nobody means.
    "price_withdrawn_check": """CASE WHEN withdrawn
        THEN num_nonnulls(input_pico, cached_input_pico, output_pico, reasoning_pico) = 0
            AND request_pico = 0 AND num_nonnulls(tenant_id, plan, class) > 0
        ELSE num_nonnulls(input_pico, output_pico) = 2 END""",
}
KEY_BEFORE = "UNIQUE (model, provider, currency, effective_from)"
KEY = """UNIQUE NULLS NOT DISTINCT
    (model, provider, currency, tenant_id, plan, class, effective_from)"""

AS_BEFORE = """
CREATE VIEW price AS
SELECT id, model, provider, currency, input_pico, cached_input_pico, output_pico, effective_from,
    changed, created_at
FROM price_entry
WHERE tenant_id IS NULL AND plan IS NULL AND class IS NULL AND reasoning_pico IS NULL
    AND request_pico = 0
"""

MEMBER = """
CREATE TABLE plan_member (
    id bigint GENERATED ALWAYS AS IDENTITY,
    tenant_id text NOT NULL,
    plan text,
    effective_from timestamptz NOT NULL,
    changed bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT plan_member_pkey PRIMARY KEY (id),
    CONSTRAINT plan_member_tenant_id_key UNIQUE (tenant_id, effective_from),
    CONSTRAINT plan_member_effective_from_check
        CHECK (effective_from = date_trunc('milliseconds', effective_from))
)
"""
MEMBER_INDEX = "CREATE INDEX plan_member_changed_idx ON plan_member (changed)"
MEMBER_TRIGGERS = (
    ("lock", "INSERT", "STATEMENT", "directory_lock"),
    ("number_change", "INSERT", "ROW", "directory_number_change"),
    ("refuse_past", "INSERT", "ROW", "plan_member_refuse_past"),
    ("append_only", "UPDATE OR DELETE OR TRUNCATE", "STATEMENT", "price_append_only"),
)

REFUSE_PAST_BEFORE = """
BEGIN
    IF NEW.effective_from < clock_timestamp() - interval '5 seconds' THEN
        RAISE EXCEPTION 'a price cannot begin in the past' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END"""

# A price may begin in the past where no price was held, so that nobody was charged another. Until
# the next of its own line it must have no earlier one, and nothing behind it: that is the price of
# both classes behind one of a class, and the list's and the tenant's plans' behind a tenant's.
REFUSE_PAST = """
DECLARE
    until timestamptz;
BEGIN
    IF NEW.effective_from >= clock_timestamp() - interval '5 seconds' THEN
        RETURN NEW;
    END IF;
    SELECT least(clock_timestamp() + interval '2 seconds', min(effective_from)) INTO until
    FROM price_entry
    WHERE (model, provider, currency) = (NEW.model, NEW.provider, NEW.currency)
        AND tenant_id IS NOT DISTINCT FROM NEW.tenant_id
        AND plan IS NOT DISTINCT FROM NEW.plan AND class IS NOT DISTINCT FROM NEW.class
        AND effective_from > NEW.effective_from;
    IF NEW.withdrawn OR EXISTS (
        SELECT FROM price_entry AS held
        WHERE (held.model, held.provider, held.currency)
                = (NEW.model, NEW.provider, NEW.currency)
            AND held.effective_from < until
            AND (held.class IS NULL OR NEW.class IS NULL OR held.class = NEW.class)
            AND CASE
                WHEN held.tenant_id IS NOT DISTINCT FROM NEW.tenant_id
                    AND held.plan IS NOT DISTINCT FROM NEW.plan THEN CASE
                        WHEN held.class IS NOT DISTINCT FROM NEW.class
                        THEN held.effective_from <= NEW.effective_from
                        ELSE held.class IS NULL END
                WHEN held.tenant_id IS NULL AND held.plan IS NULL THEN true
                WHEN NEW.tenant_id IS NOT NULL AND held.plan IS NOT NULL THEN held.plan IN (
                    SELECT plan FROM plan_member WHERE tenant_id = NEW.tenant_id)
                ELSE false END
    ) THEN
        RAISE EXCEPTION 'a price cannot begin in the past where another one held'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END"""

MEMBER_REFUSE_PAST = """
BEGIN
    IF NEW.effective_from < clock_timestamp() - interval '5 seconds' THEN
        RAISE EXCEPTION 'a plan cannot begin in the past' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END"""

# They hold up an invoice, and are looked for each minute.
UNPRICED = """
CREATE INDEX usage_record_unpriced_idx ON usage_record (admitted_at, request_id)
WHERE billable AND price_id IS NULL
"""
UNPRICED_ROLLUP = """
CREATE INDEX usage_rollup_unpriced_idx ON usage_rollup (bucket, tenant_id)
WHERE billable AND price_id IS NULL
"""

# Without what it cannot read the release before would charge the list price, or none.
REFUSE_LOSS = """
DO $$ BEGIN
    IF EXISTS (
        SELECT FROM price_entry WHERE num_nonnulls(tenant_id, plan, class, reasoning_pico) > 0
            OR request_pico > 0 OR withdrawn
    ) OR EXISTS (SELECT FROM plan_member) THEN
        RAISE EXCEPTION 'there are prices or plans that the release before cannot read';
    END IF;
END $$
"""


def upgrade() -> None:
    """Widen the table under its new name; whoever reads it meanwhile waits a moment. Shipments wait
    while the records are read for their index."""
    op.execute(LOCK_TIMEOUT)
    op.execute("ALTER TABLE price RENAME TO price_entry")
    op.execute(
        "ALTER TABLE price_entry ADD COLUMN tenant_id text, ADD COLUMN plan text,"
        " ADD COLUMN class text, ADD COLUMN reasoning_pico bigint,"
        " ADD COLUMN request_pico bigint NOT NULL DEFAULT 0,"
        " ADD COLUMN withdrawn boolean NOT NULL DEFAULT false,"
        " ALTER COLUMN input_pico DROP NOT NULL, ALTER COLUMN output_pico DROP NOT NULL"
    )
    op.execute("ALTER TABLE price_entry DROP CONSTRAINT price_model_key")
    op.execute(f"ALTER TABLE price_entry ADD CONSTRAINT price_model_key {KEY}")
    op.execute("ALTER TABLE price_entry DROP CONSTRAINT price_pico_check")
    for name, condition in CHECKS.items():
        op.execute(f"ALTER TABLE price_entry ADD CONSTRAINT {name} CHECK ({condition})")
    op.execute(AS_BEFORE)
    op.execute(MEMBER)
    op.execute(MEMBER_INDEX)
    _define("plan_member_refuse_past", MEMBER_REFUSE_PAST)
    for name, event, scope, function in MEMBER_TRIGGERS:
        op.execute(
            f"CREATE TRIGGER plan_member_{name} BEFORE {event} ON plan_member"
            f" FOR EACH {scope} EXECUTE FUNCTION {function}()"
        )
    _define("price_refuse_past", REFUSE_PAST)
    op.execute(UNPRICED)
    op.execute(UNPRICED_ROLLUP)


def downgrade() -> None:
    """Narrow it again. Refused where a price or a plan would be lost."""
    op.execute(LOCK_TIMEOUT)
    op.execute(REFUSE_LOSS)
    op.execute("DROP INDEX usage_record_unpriced_idx, usage_rollup_unpriced_idx")
    _define("price_refuse_past", REFUSE_PAST_BEFORE)
    op.execute("DROP TABLE plan_member")
    op.execute("DROP FUNCTION plan_member_refuse_past()")
    op.execute("DROP VIEW price")
    for name in (*CHECKS, "price_model_key"):
        op.execute(f"ALTER TABLE price_entry DROP CONSTRAINT {name}")
    op.execute("ALTER TABLE price_entry RENAME TO price")
    for column in ("tenant_id", "plan", "class", "reasoning_pico", "request_pico", "withdrawn"):
        op.execute(f"ALTER TABLE price DROP COLUMN {column}")
    op.execute(
        "ALTER TABLE price ALTER COLUMN input_pico SET NOT NULL,"
        " ALTER COLUMN output_pico SET NOT NULL"
    )
    op.execute(f"ALTER TABLE price ADD CONSTRAINT price_model_key {KEY_BEFORE}")
    for name, condition in CHECKS_BEFORE.items():
        op.execute(f"ALTER TABLE price ADD CONSTRAINT {name} CHECK ({condition})")


def _define(name: str, body: str) -> None:
    op.execute(
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $${body} $$"
    )
