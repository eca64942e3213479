"""Subtotal, taxes and total of the lines as they are shown."""

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from billing.domain.invoicing.tax import Tax, tax_minor


class TaxedAmount(Protocol):
    """What a subtotal adds up."""

    @property
    def amount_minor(self) -> int:
        """Net, in minor units."""

    @property
    def tax_rate_milli_percent(self) -> int:
        """The rate that it is taxed at."""


class TaxLine(msgspec.Struct, frozen=True, kw_only=True):
    """The tax of one rate on the subtotal of that rate, in minor units."""

    rate_milli_percent: int
    name: str
    note: str = ""
    base_minor: int
    tax_minor: int


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """In minor units: `subtotal_minor` plus each tax is `total_minor`."""

    subtotal_minor: int
    taxes: tuple[TaxLine, ...]
    total_minor: int


class NegativeTotal(ValueError):
    """An invoice is never negative: what is owed to a customer is a credit note."""


def totals_of(lines: Iterable[TaxedAmount], taxes: Sequence[Tax]) -> Totals:
    """Totals of these lines, each tax in the order given, also one that nothing is taxed at.

    Tax is rounded once per rate. Raises NegativeTotal, and ValueError where a line's rate is none
    of the taxes' or two taxes have one rate.
    """
    bases = {tax.rate_milli_percent: 0 for tax in taxes}
    if len(bases) < len(taxes):
        raise ValueError("two taxes have the same rate")
    for line in lines:
        if line.tax_rate_milli_percent not in bases:
            raise ValueError(f"no tax has the rate {line.tax_rate_milli_percent}")
        bases[line.tax_rate_milli_percent] += line.amount_minor
    taxed = tuple(
        TaxLine(
            rate_milli_percent=tax.rate_milli_percent,
            name=tax.name,
            note=tax.note,
            base_minor=bases[tax.rate_milli_percent],
            tax_minor=tax_minor(bases[tax.rate_milli_percent], tax.rate_milli_percent),
        )
        for tax in taxes
    )
    subtotal = sum(bases.values())
    total = subtotal + sum(tax.tax_minor for tax in taxed)
    if total < 0:
        raise NegativeTotal(f"the total would be {total} minor units")
    return Totals(subtotal_minor=subtotal, taxes=taxed, total_minor=total)
