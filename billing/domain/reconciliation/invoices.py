"""REC-5: an issued invoice is the records that it covers, and what was printed is still that."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from billing.domain.reconciliation.findings import Check, Finding, Verdict, skipped, terms


@dataclass(frozen=True)
class Line:
    """A quantity of an issued invoice: what it says, and what the records say."""

    invoice: str
    line: str
    billed: int
    recorded: int
    unit: str
    """`tokens`, `requests`, pico-units, or a currency's minor unit."""


@dataclass(frozen=True)
class StrayRow:
    """A request on an invoice whose record is not what is billed there."""

    invoice: str
    request_id: UUID
    what: str


@dataclass(frozen=True)
class Unsealed:
    """A document that is not the one that was issued, or numbers that do not follow."""

    subject: str
    size: int
    what: str


@dataclass(frozen=True)
class Invoiced:
    """Issued invoices that have records of a period, or were issued in it."""

    invoices: int
    requests: int
    """On them, of the period."""
    late: int
    """Records of the period, of months with an invoice, that wait for their tenant's next one."""
    to_bill: int = 0
    """Records of the period within no invoice of their tenant and currency, as in a month that is
    not over."""
    unbilled: int = 0
    """Those of them that have waited for longer than a month's invoice should."""
    lines: Sequence[Line] = ()
    """Those that differ, the first of them."""
    rows: Sequence[StrayRow] = ()
    unsealed: Sequence[Unsealed] = ()


def check_invoices(invoiced: Invoiced | None) -> Verdict:
    """REC-5; None where there are no invoices."""
    if invoiced is None:
        return skipped(Check.INVOICES, "no invoices")
    differing = [line for line in invoiced.lines if line.billed != line.recorded]
    return Verdict(
        Check.INVOICES,
        terms(
            invoices=invoiced.invoices,
            requests=invoiced.requests,
            late=invoiced.late,
            to_bill=invoiced.to_bill,
            unbilled=invoiced.unbilled,
        ),
        (
            *(
                Finding(Check.INVOICES, each.subject, None, each.size, "documents", each.what)
                for each in invoiced.unsealed
            ),
            *(
                Finding(
                    Check.INVOICES,
                    f"invoice {row.invoice}",
                    row.request_id,
                    1,
                    "requests",
                    row.what,
                )
                for row in invoiced.rows
            ),
            *(
                Finding(
                    Check.INVOICES,
                    f"invoice {line.invoice}, {line.line}",
                    None,
                    abs(line.billed - line.recorded),
                    line.unit,
                    f"the invoice says {line.billed}, its records {line.recorded}",
                )
                for line in differing
            ),
        ),
    )
