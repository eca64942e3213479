"""What keeps what settles an invoice, numbers and invoiced records right. A part of revision 0018:
like it, never changed later."""

from alembic import op

from migrations.invoice_guards import FUNCTIONS as BEFORE

# Whoever settles an invoice counts it in `changes`. A lock alone would do under READ COMMITTED;
# under REPEATABLE READ the second would sum up what was there before the first, and only a row that
# was changed makes it fail.
REPLACED = {
    "invoice_is_frozen": """
DECLARE
    lines numeric;
    counted numeric;
    settled numeric;
    credit_notes text;
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
            IF NOT invoice_number_is_last(NEW.number)
                OR EXISTS (SELECT FROM credit_note WHERE number = NEW.number) THEN
                RAISE EXCEPTION 'an invoice has the next number of its series'
                    USING ERRCODE = 'restrict_violation';
            END IF;
            credit_notes := convert_from(NEW.document, 'UTF8')::jsonb
                #>> '{seller,credit_note_prefix}';
            IF NOT number_prefix_is_of(split_part(NEW.number, '-', 1), true)
                OR (credit_notes IS NOT NULL AND NOT number_prefix_is_of(credit_notes, false)) THEN
                RAISE EXCEPTION 'a prefix numbers invoices or credit notes, and never both'
                    USING ERRCODE = 'restrict_violation';
            END IF;
        END IF;
        RETURN NEW;
    END IF;
    IF to_jsonb(NEW) - '{status,paid_at,voided_at,voided_by,void_reason,changes}'::text[]
        <> to_jsonb(OLD) - '{status,paid_at,voided_at,voided_by,void_reason,changes}'::text[] THEN
        RAISE EXCEPTION 'an issued invoice never changes' USING ERRCODE = 'restrict_violation';
    END IF;
    IF OLD.status = NEW.status THEN
        IF pg_trigger_depth() < 2 OR NEW.changes <> OLD.changes + 1
            OR to_jsonb(NEW) - 'changes' <> to_jsonb(OLD) - 'changes' THEN
            RAISE EXCEPTION 'an issued invoice never changes' USING ERRCODE = 'restrict_violation';
        END IF;
        RETURN NEW;
    END IF;
    IF NEW.changes <> OLD.changes OR OLD.status = 'void' OR NEW.status = 'draft'
        OR (NEW.status = 'issued' AND OLD.status <> 'paid') THEN
        RAISE EXCEPTION 'an issued invoice never changes' USING ERRCODE = 'restrict_violation';
    END IF;
    settled := invoice_settled(NEW.id);
    IF NEW.status = 'paid' AND settled < NEW.total_minor THEN
        RAISE EXCEPTION 'an invoice is paid once its total is'
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW.status = 'issued' AND settled >= NEW.total_minor THEN
        RAISE EXCEPTION 'an invoice whose total is paid stays so'
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW.status = 'void' AND settled > 0 THEN
        RAISE EXCEPTION 'what was paid or credited cannot be made void'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END""",
    "invoice_of_draft_only": """
BEGIN
    UPDATE invoice SET changes = changes + 1
        WHERE id IN (SELECT DISTINCT invoice_id FROM changed) AND status = 'draft';
    IF EXISTS (
        SELECT FROM (SELECT DISTINCT invoice_id FROM changed) AS named
        LEFT JOIN invoice ON invoice.id = named.invoice_id
        WHERE invoice.status IS DISTINCT FROM 'draft') THEN
        RAISE EXCEPTION 'an issued invoice never changes' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END""",
    "invoice_is_open": """
BEGIN
    UPDATE invoice SET changes = changes + 1
        WHERE id = NEW.invoice_id AND status IN ('issued', 'paid');
    IF NOT FOUND THEN
        RAISE EXCEPTION 'only an issued invoice is paid or credited'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END""",
}

MADE = {
    # By their names after `is_open`, so that nobody else settles the invoice meanwhile.
    "payment_within": """
DECLARE
    outstanding numeric;
BEGIN
    IF NEW.reverses IS NOT NULL THEN
        IF NOT EXISTS (
            SELECT FROM payment WHERE id = NEW.reverses AND invoice_id = NEW.invoice_id
                AND reverses IS NULL AND amount_minor = -NEW.amount_minor) THEN
            RAISE EXCEPTION 'a payment is taken back whole, on its own invoice'
                USING ERRCODE = 'restrict_violation';
        END IF;
        RETURN NEW;
    END IF;
    SELECT greatest(0, total_minor - invoice_settled(id)) INTO outstanding
        FROM invoice WHERE id = NEW.invoice_id;
    IF NEW.overpays <> (NEW.amount_minor > outstanding) THEN
        RAISE EXCEPTION 'a payment of more than what is outstanding, and no other, says so'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END""",
    "credit_note_is_numbered": """
BEGIN
    IF NOT invoice_number_is_last(NEW.number)
        OR EXISTS (SELECT FROM invoice WHERE number = NEW.number) THEN
        RAISE EXCEPTION 'a credit note has the next number of its series'
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF NOT number_prefix_is_of(split_part(NEW.number, '-', 1), false) THEN
        RAISE EXCEPTION 'a prefix numbers invoices or credit notes, and never both'
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF NOT EXISTS (
        SELECT FROM invoice WHERE id = NEW.invoice_id AND tenant_id = NEW.tenant_id
            AND currency = NEW.currency) THEN
        RAISE EXCEPTION 'a credit note is of its invoice''s tenant and currency'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END""",
    # At commit: whoever settles the last of it says so, and whoever takes that back.
    "invoice_says_paid": """
BEGIN
    IF EXISTS (
        SELECT FROM invoice WHERE id = NEW.invoice_id AND status IN ('issued', 'paid')
            AND (status = 'paid') <> (invoice_settled(id) >= total_minor)) THEN
        RAISE EXCEPTION 'an invoice is paid while its total is, and no longer'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END""",
    # The lock is the one of drafts, issues and voids: who takes records meanwhile is waited for. An
    # older snapshot would not see what was taken since.
    "usage_record_is_invoiced": """
BEGIN
    IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        RAISE EXCEPTION 'a record with a price is changed under READ COMMITTED only'
            USING ERRCODE = 'restrict_violation';
    END IF;
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('invoice:' || OLD.tenant_id, 0));
    IF EXISTS (SELECT FROM invoice_row WHERE request_id = OLD.request_id AND NOT void) THEN
        RAISE EXCEPTION 'a record that is on an invoice is never changed or removed'
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    RETURN NEW;
END""",
    "usage_record_keeps_invoiced": """
BEGIN
    IF EXISTS (SELECT FROM invoice_row WHERE NOT void) THEN
        RAISE EXCEPTION 'a record that is on an invoice is never changed or removed'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END""",
}

QUERIES = (
    """
CREATE FUNCTION invoice_number_is_last(shown text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM invoice_number
        WHERE shown = series || lpad(last::text, greatest(6, length(last::text)), '0'))
$$
""",
    """
CREATE FUNCTION invoice_settled(settled uuid) RETURNS numeric LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT sum(amount_minor) FROM payment WHERE invoice_id = settled), 0)
        + coalesce((SELECT sum(total_minor) FROM credit_note WHERE invoice_id = settled), 0)
$$
""",
    # Who uses a prefix first says of what it is; whoever does so meanwhile waits for it, or fails.
    """
CREATE FUNCTION number_prefix_is_of(named text, is_of_invoices boolean) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO number_prefix (prefix, invoices, credit_notes)
        VALUES (named, is_of_invoices, NOT is_of_invoices) ON CONFLICT (prefix) DO NOTHING;
    RETURN (SELECT CASE WHEN is_of_invoices THEN invoices ELSE credit_notes END
        FROM number_prefix WHERE prefix = named);
END $$
""",
)

# What an invoice takes is final, billable and priced. Records that shippers, the reaper and rating
# change are not, and cost nothing more.
_TAKEN = "OLD.final AND OLD.billable AND OLD.price_id IS NOT NULL"
TRIGGERS = (
    ("payment", "within", "BEFORE INSERT", "FOR EACH ROW", "payment_within"),
    ("credit_note", "numbered", "BEFORE INSERT", "FOR EACH ROW", "credit_note_is_numbered"),
    (
        *("usage_record", "is_invoiced_update", "BEFORE UPDATE"),
        f"FOR EACH ROW WHEN ({_TAKEN} AND OLD.* IS DISTINCT FROM NEW.*)",
        "usage_record_is_invoiced",
    ),
    (
        *("usage_record", "is_invoiced_delete", "BEFORE DELETE"),
        f"FOR EACH ROW WHEN ({_TAKEN})",
        "usage_record_is_invoiced",
    ),
    (
        *("usage_record", "keeps_invoiced", "BEFORE TRUNCATE"),
        *("FOR EACH STATEMENT", "usage_record_keeps_invoiced"),
    ),
    (
        *("number_prefix", "refuse", "BEFORE UPDATE OR DELETE OR TRUNCATE"),
        *("FOR EACH STATEMENT", "invoice_refuse"),
    ),
)
AT_COMMIT = ("payment", "credit_note")


def guard() -> None:
    """Put these in the place of those of before, and add what is new."""
    for query in QUERIES:
        op.execute(query)
    _define(REPLACED | MADE)
    for table, name, when, scope, function in TRIGGERS:
        op.execute(
            f"CREATE TRIGGER {table}_{name} {when} ON {table} {scope} EXECUTE FUNCTION {function}()"
        )
    for table in AT_COMMIT:
        op.execute(
            f"CREATE CONSTRAINT TRIGGER {table}_says_paid AFTER INSERT ON {table}"
            " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION invoice_says_paid()"
        )


def unguard() -> None:
    """Put back what was there before."""
    for table in AT_COMMIT:
        op.execute(f"DROP TRIGGER {table}_says_paid ON {table}")
    for table, name, *_ in TRIGGERS:
        op.execute(f"DROP TRIGGER {table}_{name} ON {table}")
    _define({name: BEFORE[name] for name in REPLACED})
    for name in MADE:
        op.execute(f"DROP FUNCTION {name}()")
    op.execute(
        "DROP FUNCTION invoice_number_is_last(text), invoice_settled(uuid),"
        " number_prefix_is_of(text, boolean)"
    )


def _define(functions: dict[str, str]) -> None:
    for name, body in functions.items():
        op.execute(
            f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $${body} $$"
        )
