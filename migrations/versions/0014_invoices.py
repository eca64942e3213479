"""Invoices, the rows that each has, credit notes, payments, numbers and the seller.

What is issued never changes, whoever tries: triggers refuse each statement that would, TRUNCATE
too. `invoice_row` says which invoice has which request, and no request is on two; `invoice_quarter`
is what an invoice takes from each quarter of an hour, so that what came late is found by comparing
counts with the roll-ups'. Both are filled in the transaction that issues the invoice.
"""

from alembic import op

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
    "CREATE INDEX invoice_row_invoice_id_idx ON invoice_row (invoice_id)",
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

FUNCTIONS = {
    "invoice_refuse": """
BEGIN
    RAISE EXCEPTION 'rows of % are never changed or removed', TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END""",
    "invoice_begins_as_draft": """
BEGIN
    IF NEW.status <> 'draft' THEN
        RAISE EXCEPTION 'an invoice begins as a draft' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END""",
    "invoice_is_frozen": """
DECLARE
    lines numeric;
    counted numeric;
    settled numeric;
BEGIN
    IF OLD.id <> NEW.id OR OLD.tenant_id <> NEW.tenant_id OR OLD.currency <> NEW.currency
        OR OLD.month <> NEW.month THEN
        RAISE EXCEPTION 'an invoice stays what it is for' USING ERRCODE = 'restrict_violation';
    END IF;
    IF OLD.status = 'draft' THEN
        IF NEW.status NOT IN ('draft', 'issued') THEN
            RAISE EXCEPTION 'a draft is issued or drafted again'
                USING ERRCODE = 'restrict_violation';
        END IF;
        IF NEW.status = 'issued' THEN
            SELECT coalesce(sum(amount_minor), 0) INTO lines
                FROM invoice_line WHERE invoice_id = NEW.id;
            SELECT coalesce(sum(requests), 0) INTO counted
                FROM invoice_quarter WHERE invoice_id = NEW.id;
            IF lines <> NEW.subtotal_minor OR counted <> NEW.row_count THEN
                RAISE EXCEPTION 'the lines of an invoice are its total and its rows'
                    USING ERRCODE = 'restrict_violation';
            END IF;
        END IF;
        RETURN NEW;
    END IF;
    IF OLD.status = 'void' OR NEW.status NOT IN ('paid', 'void') OR OLD.status = NEW.status
        OR to_jsonb(NEW) - '{status,paid_at,voided_at,voided_by,void_reason}'::text[]
            <> to_jsonb(OLD) - '{status,paid_at,voided_at,voided_by,void_reason}'::text[] THEN
        RAISE EXCEPTION 'an issued invoice never changes' USING ERRCODE = 'restrict_violation';
    END IF;
    SELECT coalesce((SELECT sum(amount_minor) FROM payment WHERE invoice_id = NEW.id), 0)
        + coalesce((SELECT sum(total_minor) FROM credit_note WHERE invoice_id = NEW.id), 0)
        INTO settled;
    IF NEW.status = 'paid' AND settled < NEW.total_minor THEN
        RAISE EXCEPTION 'an invoice is paid once its total is'
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW.status = 'void' AND settled > 0 THEN
        RAISE EXCEPTION 'what was paid or credited cannot be made void'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END""",
    # FOR SHARE: whoever issues it meanwhile is waited for.
    "invoice_of_draft_only": """
BEGIN
    PERFORM FROM invoice WHERE id IN (SELECT DISTINCT invoice_id FROM changed) FOR SHARE;
    IF EXISTS (
        SELECT FROM (SELECT DISTINCT invoice_id FROM changed) AS named
        LEFT JOIN invoice ON invoice.id = named.invoice_id
        WHERE invoice.status IS DISTINCT FROM 'draft') THEN
        RAISE EXCEPTION 'an issued invoice never changes' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END""",
    "invoice_row_only_void": """
BEGIN
    IF EXISTS (SELECT FROM changed WHERE NOT void) OR EXISTS (
        SELECT FROM (SELECT DISTINCT invoice_id FROM changed) AS named
        LEFT JOIN invoice ON invoice.id = named.invoice_id
        WHERE invoice.status IS DISTINCT FROM 'void') THEN
        RAISE EXCEPTION 'an invoice keeps its rows until it is void'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END""",
    # The row's lock puts all that settles an invoice in one order.
    "invoice_is_open": """
BEGIN
    IF (SELECT status FROM invoice WHERE id = NEW.invoice_id FOR UPDATE)
        NOT IN ('issued', 'paid') OR (TG_TABLE_NAME = 'payment' AND (
            SELECT status FROM invoice WHERE id = NEW.invoice_id) <> 'issued') THEN
        RAISE EXCEPTION 'only an issued invoice is paid or credited'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END""",
    "credit_note_line_within": """
BEGIN
    IF (SELECT invoice_id FROM credit_note WHERE id = NEW.credit_note_id) <> NEW.invoice_id
        OR (SELECT sum(amount_minor) FROM credit_note_line
            WHERE invoice_id = NEW.invoice_id AND invoice_position = NEW.invoice_position)
        > (SELECT amount_minor FROM invoice_line
            WHERE invoice_id = NEW.invoice_id AND position = NEW.invoice_position) THEN
        RAISE EXCEPTION 'credit notes never exceed the line they cite'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END""",
    # At commit, once all its lines are there. Amounts are above 0: no line can be added later.
    "credit_note_adds_up": """
BEGIN
    IF (SELECT net_minor FROM credit_note WHERE id = NEW.id) IS DISTINCT FROM
        (SELECT sum(amount_minor) FROM credit_note_line WHERE credit_note_id = NEW.id)
        OR (SELECT sum(total_minor) FROM credit_note WHERE invoice_id = NEW.invoice_id)
        > (SELECT total_minor FROM invoice WHERE id = NEW.invoice_id) THEN
        RAISE EXCEPTION 'a credit note is its lines, and never more than its invoice'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END""",
    "credit_note_line_adds_up": """
BEGIN
    IF (SELECT net_minor FROM credit_note WHERE id = NEW.credit_note_id) IS DISTINCT FROM
        (SELECT sum(amount_minor) FROM credit_note_line
            WHERE credit_note_id = NEW.credit_note_id) THEN
        RAISE EXCEPTION 'a credit note is its lines' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END""",
    "invoice_number_follows": """
BEGIN
    IF (TG_OP = 'INSERT' AND NEW.last <> 1)
        OR (TG_OP = 'UPDATE' AND (NEW.series <> OLD.series OR NEW.last <> OLD.last + 1)) THEN
        RAISE EXCEPTION 'numbers follow each other' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END""",
    # At commit: a number that was taken is on something.
    "invoice_number_is_used": """
DECLARE
    shown text := NEW.series || lpad(NEW.last::text, greatest(6, length(NEW.last::text)), '0');
BEGIN
    IF NOT EXISTS (SELECT FROM invoice WHERE number = shown)
        AND NOT EXISTS (SELECT FROM credit_note WHERE number = shown) THEN
        RAISE EXCEPTION 'a number is on an invoice or a credit note'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END""",
}

REFUSED = {
    "invoice": "TRUNCATE",
    "invoice_line": "UPDATE OR TRUNCATE",
    "invoice_quarter": "UPDATE OR TRUNCATE",
    "invoice_row": "UPDATE OF request_id, invoice_id, admitted_at OR DELETE OR TRUNCATE",
    "credit_note": "UPDATE OR DELETE OR TRUNCATE",
    "credit_note_line": "UPDATE OR DELETE OR TRUNCATE",
    "payment": "UPDATE OR DELETE OR TRUNCATE",
    "invoice_number": "DELETE OR TRUNCATE",
    "seller": "DELETE OR TRUNCATE",
}
ROW_TRIGGERS = (
    ("invoice", "begins_as_draft", "BEFORE INSERT", "invoice_begins_as_draft"),
    ("invoice", "is_frozen", "BEFORE UPDATE", "invoice_is_frozen"),
    ("payment", "is_open", "BEFORE INSERT", "invoice_is_open"),
    ("credit_note", "is_open", "BEFORE INSERT", "invoice_is_open"),
    ("credit_note_line", "within", "AFTER INSERT", "credit_note_line_within"),
    ("invoice_number", "follows", "BEFORE INSERT OR UPDATE", "invoice_number_follows"),
)
AT_COMMIT = (
    ("credit_note", "adds_up", "INSERT", "credit_note_adds_up"),
    ("credit_note_line", "adds_up", "INSERT", "credit_note_line_adds_up"),
    ("invoice_number", "is_used", "INSERT OR UPDATE", "invoice_number_is_used"),
)
STATEMENT_TRIGGERS = (
    ("invoice_line", "insert", "NEW", "invoice_of_draft_only"),
    ("invoice_line", "delete", "OLD", "invoice_of_draft_only"),
    ("invoice_quarter", "insert", "NEW", "invoice_of_draft_only"),
    ("invoice_quarter", "delete", "OLD", "invoice_of_draft_only"),
    ("invoice_row", "insert", "NEW", "invoice_of_draft_only"),
    ("invoice_row", "update", "NEW", "invoice_row_only_void"),
)
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
    for name, body in FUNCTIONS.items():
        op.execute(f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $${body} $$")
    for table, events in REFUSED.items():
        op.execute(
            f"CREATE TRIGGER {table}_refuse BEFORE {events} ON {table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION invoice_refuse()"
        )
    # A draft may be thrown away; `is_frozen` says no to all else.
    op.execute(
        "CREATE TRIGGER invoice_refuse_delete BEFORE DELETE ON invoice FOR EACH ROW"
        " WHEN (OLD.status <> 'draft') EXECUTE FUNCTION invoice_refuse()"
    )
    for table, name, when, function in ROW_TRIGGERS:
        op.execute(
            f"CREATE TRIGGER {table}_{name} {when} ON {table}"
            f" FOR EACH ROW EXECUTE FUNCTION {function}()"
        )
    for table, name, event, function in AT_COMMIT:
        op.execute(
            f"CREATE CONSTRAINT TRIGGER {table}_{name} AFTER {event} ON {table}"
            f" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {function}()"
        )
    for table, event, side, function in STATEMENT_TRIGGERS:
        op.execute(
            f"CREATE TRIGGER {table}_{event}_guard AFTER {event.upper()} ON {table}"
            f" REFERENCING {side} TABLE AS changed"
            f" FOR EACH STATEMENT EXECUTE FUNCTION {function}()"
        )


def downgrade() -> None:
    """Drop them: every invoice is lost."""
    op.execute(LOCK_TIMEOUT)
    op.execute(f"DROP TABLE {', '.join(TABLES)}")
    for name in FUNCTIONS:
        op.execute(f"DROP FUNCTION {name}()")
    op.execute("DROP INDEX usage_rollup_tenant_id_bucket_idx")
    op.execute("ALTER TABLE tenant DROP COLUMN billing_terms")
