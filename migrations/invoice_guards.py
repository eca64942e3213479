"""What keeps issued invoices as they are. A part of revision 0014: like it, never changed later."""

from alembic import op

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


def guard() -> None:
    """Make the functions, and the triggers on all tables of invoices."""
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


def unguard() -> None:
    """Drop the functions; the triggers went with their tables."""
    for name in FUNCTIONS:
        op.execute(f"DROP FUNCTION {name}()")
