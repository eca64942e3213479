"""More of billing guarded in the database itself; payments that are taken back or too much, dearer
prices, prefixes that number one kind of document, and budget alerts once a month by its name.

A payment that is taken back is an entry of its own with the amount below nothing, so that the
release before has the right sums too. It goes on writing: what is new has defaults that are true of
all that it writes.
"""

from alembic import op

from migrations.billing_guards import guard, unguard

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

LOCK_TIMEOUT = "SET LOCAL lock_timeout = '5s'"
# What prefixes are read from stays as it is meanwhile, and can be read.
HOLD_STILL = "LOCK TABLE invoice, credit_note IN SHARE ROW EXCLUSIVE MODE"

INVOICE = "ALTER TABLE invoice ADD COLUMN changes bigint NOT NULL DEFAULT 0"
PAYMENT = """
ALTER TABLE payment
    ADD COLUMN overpays boolean NOT NULL DEFAULT false,
    ADD COLUMN reverses uuid,
    ADD COLUMN reason text,
    ADD CONSTRAINT payment_reverses_fkey FOREIGN KEY (reverses) REFERENCES payment (id),
    ADD CONSTRAINT payment_reverses_key UNIQUE (reverses),
    DROP CONSTRAINT payment_amount_check,
    ADD CONSTRAINT payment_amount_check CHECK (CASE WHEN reverses IS NULL
        THEN amount_minor > 0 AND reason IS NULL
        ELSE amount_minor < 0 AND reason IS NOT NULL AND NOT overpays END)
"""
PAYMENT_BEFORE = """
ALTER TABLE payment
    DROP CONSTRAINT payment_amount_check,
    DROP COLUMN overpays, DROP COLUMN reverses, DROP COLUMN reason,
    ADD CONSTRAINT payment_amount_check CHECK (amount_minor > 0)
"""

# Of a token: what a request of 2^20 tokens costs at most is within a bigint.
PRICE_PICO_MAX_BEFORE = 10**12
PRICE_PICO_MAX = 8 * 10**12
REQUEST_PICO_MAX = 10**17
PRICE = """
ALTER TABLE price_entry
    DROP CONSTRAINT price_pico_check,
    ADD CONSTRAINT price_pico_check CHECK (input_pico BETWEEN 0 AND {most}
        AND cached_input_pico BETWEEN 0 AND {most}
        AND output_pico BETWEEN 0 AND {most}
        AND reasoning_pico BETWEEN 0 AND {most}
        AND request_pico BETWEEN 0 AND {request})
"""

# A prefix is of invoices or of credit notes. One that numbers both by now, where the seller's were
# exchanged, may go on. Credit notes of an invoice have the prefix of its own seller.
PREFIX = (
    """
CREATE TABLE number_prefix (
    prefix text NOT NULL,
    invoices boolean NOT NULL,
    credit_notes boolean NOT NULL,
    CONSTRAINT number_prefix_pkey PRIMARY KEY (prefix),
    CONSTRAINT number_prefix_kind_check CHECK (invoices OR credit_notes)
)
""",
    """
INSERT INTO number_prefix (prefix, invoices, credit_notes)
SELECT prefix, bool_or(is_of_invoices), bool_or(NOT is_of_invoices) FROM (
    SELECT split_part(number, '-', 1), true FROM invoice WHERE number IS NOT NULL
    UNION SELECT split_part(number, '-', 1), false FROM credit_note
    UNION SELECT convert_from(document, 'UTF8')::jsonb #>> '{seller,credit_note_prefix}', false
    FROM invoice WHERE status IN ('issued', 'paid')
) AS used (prefix, is_of_invoices) WHERE prefix IS NOT NULL GROUP BY prefix
""",
)

# One that was told again after its tenant's time zone was changed goes: the first stays.
ALERT_TWICE = """
DELETE FROM budget_alert AS again USING budget_alert AS first
WHERE first.id < again.id AND first.tenant_id = again.tenant_id
    AND first.api_key_id IS NOT DISTINCT FROM again.api_key_id
    AND first.model IS NOT DISTINCT FROM again.model
    AND first.month = again.month AND first.currency = again.currency
    AND first.threshold_percent = again.threshold_percent AND first.limit_pico = again.limit_pico
"""
ALERT = """
ALTER TABLE budget_alert DROP CONSTRAINT budget_alert_once_key,
    ADD CONSTRAINT budget_alert_once_key UNIQUE NULLS NOT DISTINCT (
        tenant_id, api_key_id, model, {of}, currency, threshold_percent, limit_pico)
"""

REFUSE_LOSS = """
DO $$ BEGIN
    IF EXISTS (SELECT FROM payment WHERE reverses IS NOT NULL OR overpays) THEN
        RAISE EXCEPTION 'there are payments that the release before cannot tell';
    END IF;
    IF EXISTS (
        SELECT FROM price_entry
        WHERE greatest(input_pico, cached_input_pico, output_pico, reasoning_pico)
            > 1000000000000) THEN
        RAISE EXCEPTION 'there are prices that the release before does not allow';
    END IF;
END $$
"""


def upgrade() -> None:
    """Add them. Whoever ships, or asks for prices, waits a moment for the locks: what takes long,
    each issued document is read, comes before any that a reader waits for, and prices last."""
    op.execute(LOCK_TIMEOUT)
    op.execute(HOLD_STILL)
    for statement in PREFIX:
        op.execute(statement)
    op.execute(ALERT_TWICE)
    op.execute(ALERT.format(of="month"))
    op.execute(INVOICE)
    op.execute(PAYMENT)
    guard()
    op.execute(PRICE.format(most=PRICE_PICO_MAX, request=REQUEST_PICO_MAX))


def downgrade() -> None:
    """As it was before. Refused where a payment that was taken back or too much, or a price, would
    be lost."""
    op.execute(LOCK_TIMEOUT)
    op.execute(REFUSE_LOSS)
    unguard()
    op.execute(ALERT.format(of="period_start, period_end"))
    op.execute(PAYMENT_BEFORE)
    op.execute("ALTER TABLE invoice DROP COLUMN changes")
    op.execute("DROP TABLE number_prefix")
    op.execute(PRICE.format(most=PRICE_PICO_MAX_BEFORE, request=REQUEST_PICO_MAX))
