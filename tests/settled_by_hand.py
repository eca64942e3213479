"""Statements with which somebody settles an invoice by hand, asking none of the rules."""

PAID = "UPDATE invoice SET status = 'paid', paid_at = now() WHERE status = 'issued'"
_NEXT = "UPDATE invoice_number SET last = last + 1 WHERE series LIKE 'CN-%'"
_LAST = "(SELECT series || lpad(last::text, 6, '0') FROM invoice_number WHERE series LIKE 'CN-%')"


def credit_by_hand(
    minor: int, *, number: str = _LAST, tenant: str = "tenant_id", currency: str = "currency"
) -> tuple[str, str]:
    """A credit note of so much of line 1 of every invoice that has one, without tax: the next
    number is taken, and it is written with that or with `number`."""
    return _NEXT, (
        "WITH made AS (INSERT INTO credit_note (invoice_id, tenant_id, currency, number, reason,"
        " net_minor, tax_minor, total_minor, document, content_hash, issued_at, issued_by)"
        f" SELECT invoice_id, {tenant}, {currency}, {number}, 'x', {minor}, 0, {minor},"
        " document, content_hash, now(), 'x' FROM credit_note LIMIT 1 RETURNING id, invoice_id)"
        f" INSERT INTO credit_note_line SELECT id, 1, invoice_id, 1, {minor} FROM made"
    )


def pay_by_hand(minor: int, reference: str = "by hand", *, overpays: bool = False) -> str:
    """A payment of every invoice that is not a draft."""
    return (
        "INSERT INTO payment (invoice_id, amount_minor, received_on, reference, noted_by, overpays)"
        f" SELECT id, {minor}, now()::date, '{reference}', 'x', {overpays} FROM invoice"
        " WHERE status <> 'draft'"
    )
