"""REC-5: the lines of an invoice are the records that it covers."""

from collections.abc import Sequence
from dataclasses import dataclass

from billing.domain.reconciliation.findings import Check, Finding, Verdict, skipped, terms


@dataclass(frozen=True)
class Line:
    """A line of an issued invoice: what it says of each quantity, and what the records say."""

    invoice: str
    line: str
    billed: int
    recorded: int
    unit: str
    """`tokens`, or a currency's minor unit."""


def check_invoices(lines: Sequence[Line] | None) -> Verdict:
    """REC-5; None where there are no invoices."""
    if lines is None:
        return skipped(Check.INVOICES, "no invoices")
    return Verdict(
        Check.INVOICES,
        terms(lines=len(lines)),
        tuple(
            Finding(
                Check.INVOICES,
                f"invoice {line.invoice}, {line.line}",
                None,
                abs(line.billed - line.recorded),
                line.unit,
                f"the line says {line.billed}, its records {line.recorded}",
            )
            for line in lines
            if line.billed != line.recorded
        ),
    )
