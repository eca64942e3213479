"""Invoices, the rows that each has, credit notes, payments, numbers and the seller.

What is issued never changes, whoever tries: triggers refuse each statement that would, TRUNCATE
too. `invoice_row` says which invoice has which request, and no request is on two; `invoice_quarter`
is what an invoice takes from each quarter of an hour, so that what came late is found by comparing
counts with the roll-ups'. Both are filled in the transaction that issues the invoice.
"""

from alembic import op

from migrations.invoice_guards import guard, unguard

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

LOCK_TIMEOUT = "SET LOCAL lock_timeout = '5s'"

INVOICE = (
    """
CREATE TABLE invoice (
    id uuid NOT NULL DEFAULT uuidv7(),
    tenant_id text NOT NULL,
    currency text NOT NULL,
    month text NOT NULL,
    time_zone text NOT NULL,
    period_start timestamptz NOT NULL,
    period_end timestamptz NOT NULL,
    status text NOT NULL DEFAULT 'draft',
    number text,
    subtotal_minor bigint NOT NULL,
    tax_minor bigint NOT NULL,
    total_minor bigint NOT NULL,
    row_count bigint NOT NULL,
    cost_pico numeric NOT NULL,
    cut_off timestamptz NOT NULL,
    document bytea NOT NULL,
    content_hash text NOT NULL,
    drafted_at timestamptz NOT NULL DEFAULT now(),
    drafted_by text NOT NULL,
    issued_at timestamptz,
    issued_by text,
    due_on date,
    override jsonb,
    paid_at timestamptz,
    voided_at timestamptz,
    voided_by text,
    void_reason text,
    CONSTRAINT invoice_pkey PRIMARY KEY (id),
    CONSTRAINT invoice_number_key UNIQUE (number),
    CONSTRAINT invoice_currency_check CHECK (currency ~ '^[A-Z]{3}$'),
    CONSTRAINT invoice_month_check CHECK (month ~ '^[0-9]{4}-(0[1-9]|1[0-2])$'),
    CONSTRAINT invoice_period_check CHECK (period_start < period_end),
    CONSTRAINT invoice_status_check CHECK (status IN ('draft', 'issued', 'paid', 'void')),
    CONSTRAINT invoice_amounts_check CHECK (
        subtotal_minor >= 0 AND tax_minor >= 0 AND total_minor = subtotal_minor + tax_minor),
    CONSTRAINT invoice_rows_check CHECK (row_count >= 0 AND cost_pico >= 0),
    CONSTRAINT invoice_content_hash_check CHECK (content_hash ~ '^[0-9a-f]{64}$'),
    CONSTRAINT invoice_issued_check CHECK (
        (status = 'draft') = (number IS NULL) AND (number IS NULL) = (issued_at IS NULL)
        AND (number IS NULL) = (issued_by IS NULL) AND (number IS NULL) = (due_on IS NULL)),
    CONSTRAINT invoice_ended_check CHECK (
        (status = 'paid') = (paid_at IS NOT NULL) AND (status = 'void') = (voided_at IS NOT NULL)
        AND (voided_at IS NULL) = (voided_by IS NULL)
        AND (voided_at IS NULL) = (void_reason IS NULL))
)
""",
    # One of each: who drafts a month twice has one invoice, however many do it at once.
    """
CREATE UNIQUE INDEX invoice_tenant_id_currency_month_key
ON invoice (tenant_id, currency, month) WHERE status <> 'void'
""",
    "CREATE INDEX invoice_issued_at_idx ON invoice (issued_at)",
)

LINE = """
CREATE TABLE invoice_line (
    invoice_id uuid NOT NULL,
    position integer NOT NULL,
    kind text NOT NULL,
    month text NOT NULL,
    model text NOT NULL,
    provider text NOT NULL,
    class text NOT NULL,
    unit text NOT NULL,
    quantity bigint NOT NULL,
    price_id bigint NOT NULL,
    unit_price_pico bigint NOT NULL,
    amount_pico numeric NOT NULL,
    amount_minor bigint NOT NULL,
    tax_rate_milli_percent integer NOT NULL,
    CONSTRAINT invoice_line_pkey PRIMARY KEY (invoice_id, position),
    CONSTRAINT invoice_line_invoice_id_fkey FOREIGN KEY (invoice_id) REFERENCES invoice (id),
    CONSTRAINT invoice_line_position_check CHECK (position >= 1),
    CONSTRAINT invoice_line_kind_check CHECK (kind IN ('usage', 'adjustment')),
    CONSTRAINT invoice_line_unit_check CHECK (unit IN (
        'input_tokens', 'cached_input_tokens', 'output_tokens', 'reasoning_tokens', 'requests')),
    CONSTRAINT invoice_line_amounts_check CHECK (
        quantity > 0 AND unit_price_pico >= 0 AND amount_minor >= 0
        AND tax_rate_milli_percent >= 0
        AND amount_pico = CAST(quantity AS numeric) * unit_price_pico)
)
"""

ROW = (
    """
CREATE TABLE invoice_row (
    request_id uuid NOT NULL,
    invoice_id uuid NOT NULL,
    admitted_at timestamptz NOT NULL,
    void boolean NOT NULL DEFAULT false
)
""",
    """
CREATE UNIQUE INDEX invoice_row_request_id_key ON invoice_row (request_id) WHERE NOT void
""",
)

QUARTER = (
    """
CREATE TABLE invoice_quarter (
    invoice_id uuid NOT NULL,
    bucket timestamptz NOT NULL,
    kind text NOT NULL,
    month text NOT NULL,
    model text NOT NULL,
    provider text NOT NULL,
    class text NOT NULL,
    price_id bigint NOT NULL,
    requests bigint NOT NULL,
    uncached_prompt_tokens bigint NOT NULL,
    cached_prompt_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    cost_pico numeric NOT NULL,
    CONSTRAINT invoice_quarter_bucket_check CHECK (bucket = usage_bucket(bucket)),
    CONSTRAINT invoice_quarter_requests_check CHECK (requests > 0)
)
""",
    """
CREATE UNIQUE INDEX invoice_quarter_key ON invoice_quarter (
    invoice_id, bucket, kind, month, model, provider, class, price_id)
""",
)

CREDIT_NOTE = (
    """
CREATE TABLE credit_note (
    id uuid NOT NULL DEFAULT uuidv7(),
    invoice_id uuid NOT NULL,
    tenant_id text NOT NULL,
    currency text NOT NULL,
    number text NOT NULL,
    reason text NOT NULL,
    reference text,
    net_minor bigint NOT NULL,
    tax_minor bigint NOT NULL,
    total_minor bigint NOT NULL,
    document bytea NOT NULL,
    content_hash text NOT NULL,
    issued_at timestamptz NOT NULL,
    issued_by text NOT NULL,
    CONSTRAINT credit_note_pkey PRIMARY KEY (id),
    CONSTRAINT credit_note_invoice_id_fkey FOREIGN KEY (invoice_id) REFERENCES invoice (id),
    CONSTRAINT credit_note_number_key UNIQUE (number),
    CONSTRAINT credit_note_amounts_check CHECK (
        net_minor > 0 AND tax_minor >= 0 AND total_minor = net_minor + tax_minor),
    CONSTRAINT credit_note_content_hash_check CHECK (content_hash ~ '^[0-9a-f]{64}$')
)
""",
    # Who asks twice under one name gets one.
    """
CREATE UNIQUE INDEX credit_note_invoice_id_reference_key ON credit_note (invoice_id, reference)
""",
    """
CREATE TABLE credit_note_line (
    credit_note_id uuid NOT NULL,
    position integer NOT NULL,
    invoice_id uuid NOT NULL,
    invoice_position integer NOT NULL,
    amount_minor bigint NOT NULL,
    CONSTRAINT credit_note_line_pkey PRIMARY KEY (credit_note_id, position),
    CONSTRAINT credit_note_line_credit_note_id_fkey
        FOREIGN KEY (credit_note_id) REFERENCES credit_note (id),
    CONSTRAINT credit_note_line_invoice_id_fkey
        FOREIGN KEY (invoice_id, invoice_position) REFERENCES invoice_line (invoice_id, position),
    CONSTRAINT credit_note_line_amount_check CHECK (amount_minor > 0)
)
""",
    """
CREATE INDEX credit_note_line_invoice_id_idx ON credit_note_line (invoice_id, invoice_position)
""",
)

PAYMENT = (
    """
CREATE TABLE payment (
    id uuid NOT NULL DEFAULT uuidv7(),
    invoice_id uuid NOT NULL,
    amount_minor bigint NOT NULL,
    received_on date NOT NULL,
    reference text NOT NULL,
    noted_at timestamptz NOT NULL DEFAULT now(),
    noted_by text NOT NULL,
    CONSTRAINT payment_pkey PRIMARY KEY (id),
    CONSTRAINT payment_invoice_id_fkey FOREIGN KEY (invoice_id) REFERENCES invoice (id),
    CONSTRAINT payment_invoice_id_reference_key UNIQUE (invoice_id, reference),
    CONSTRAINT payment_amount_check CHECK (amount_minor > 0)
)
""",
)

NUMBER = """
CREATE TABLE invoice_number (
    series text NOT NULL,
    last bigint NOT NULL,
    CONSTRAINT invoice_number_pkey PRIMARY KEY (series),
    CONSTRAINT invoice_number_last_check CHECK (last >= 1)
)
"""

SELLER = """
CREATE TABLE seller (
    id boolean NOT NULL DEFAULT true,
    details jsonb NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT now(),
    changed_by text NOT NULL,
    CONSTRAINT seller_pkey PRIMARY KEY (id),
    CONSTRAINT seller_id_check CHECK (id)
)
"""

# A tax rate, what it is called and when an invoice is due. The release before refuses a billing
# profile that has a field which it does not know.
TERMS = "ALTER TABLE tenant ADD COLUMN billing_terms jsonb NOT NULL DEFAULT '{}'"

# Usage of one tenant is read often, and must not read all tenants'.
ROLLUP_INDEX = """
CREATE INDEX usage_rollup_tenant_id_bucket_idx ON usage_rollup (tenant_id, bucket)
"""

TABLES = (
    "seller", "invoice_number", "payment", "credit_note_line", "credit_note", "invoice_quarter",
    "invoice_row", "invoice_line", "invoice",
)  # fmt: skip


def upgrade() -> None:
    """Add them, empty. Of what was there tenants get a column and roll-ups an index."""
    op.execute(LOCK_TIMEOUT)
    op.execute(TERMS)
    op.execute(ROLLUP_INDEX)
    made = (*INVOICE, LINE, *ROW, *QUARTER, *CREDIT_NOTE, *PAYMENT, NUMBER, SELLER)
    for statement in made:
        op.execute(statement)
    guard()


def downgrade() -> None:
    """Drop them: every invoice is lost."""
    op.execute(LOCK_TIMEOUT)
    op.execute(f"DROP TABLE {', '.join(TABLES)}")
    unguard()
    op.execute("DROP INDEX usage_rollup_tenant_id_bucket_idx")
    op.execute("ALTER TABLE tenant DROP COLUMN billing_terms")
