"""Credit notes: they cite lines of an invoice and never exceed them."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from billing.domain.invoicing.lines import Line
from billing.domain.invoicing.tax import tax_minor
from billing.domain.invoicing.totals import TaxLine, Totals


class CreditLine(msgspec.Struct, frozen=True, kw_only=True):
    """So much of one line of the invoice, net, in minor units."""

    position: int
    amount_minor: int


class CreditNote(msgspec.Struct, frozen=True, kw_only=True):
    """What is given back of an invoice, in minor units of its currency."""

    lines: tuple[CreditLine, ...]
    """By position, each once."""
    subtotal_minor: int
    taxes: tuple[TaxLine, ...]
    total_minor: int
    reason: str


class RefusedCredit(ValueError):
    """A credit note that the invoice does not carry; the message says why."""


class CreditExceeds(RefusedCredit):
    """More than what is left of a line."""

    def __init__(self, position: int, wanted_minor: int, left_minor: int) -> None:
        self.position, self.wanted_minor, self.left_minor = position, wanted_minor, left_minor
        super().__init__(
            f"line {position} has {left_minor} minor units left to credit, not {wanted_minor}"
        )


def credit(
    lines: Sequence[Line],
    totals: Totals,
    earlier: Iterable[CreditNote],
    wanted: Iterable[CreditLine],
    reason: str,
) -> CreditNote:
    """The next credit note of an invoice with these lines and totals, after the earlier ones.

    Its tax of a rate is the tax on all that is credited at that rate by now, less what earlier
    notes gave: each note's is within one minor unit of its own share, and all together, when
    everything is credited, exactly the invoice's. Raises CreditExceeds, and RefusedCredit for a
    line that is not there or cited twice, an amount that is not positive, and for no line at all.
    """
    before = list(earlier)
    by_position = {line.position: line for line in lines}
    cited = sorted(wanted, key=lambda line: line.position)
    _check(cited, by_position, _credited(before))
    now = CreditNote(lines=tuple(cited), subtotal_minor=0, taxes=(), total_minor=0, reason=reason)
    earlier_bases = _bases(before, by_position)
    bases = _bases([now], by_position)
    taxes = tuple(
        TaxLine(
            rate_milli_percent=tax.rate_milli_percent,
            name=tax.name,
            note=tax.note,
            base_minor=bases[tax.rate_milli_percent],
            tax_minor=tax_minor(
                earlier_bases[tax.rate_milli_percent] + bases[tax.rate_milli_percent],
                tax.rate_milli_percent,
            )
            - tax_minor(earlier_bases[tax.rate_milli_percent], tax.rate_milli_percent),
        )
        for tax in totals.taxes
        if bases[tax.rate_milli_percent]
    )
    subtotal = sum(line.amount_minor for line in cited)
    return CreditNote(
        lines=tuple(cited),
        subtotal_minor=subtotal,
        taxes=taxes,
        total_minor=subtotal + sum(tax.tax_minor for tax in taxes),
        reason=reason,
    )


def left_to_credit(lines: Sequence[Line], earlier: Iterable[CreditNote]) -> tuple[CreditLine, ...]:
    """What a credit note for all the rest of an invoice cites; nothing where nothing is left."""
    given = _credited(earlier)
    left = ((line.position, line.amount_minor - given[line.position]) for line in lines)
    return tuple(
        CreditLine(position=position, amount_minor=amount)
        for position, amount in left
        if amount > 0
    )


def _check(cited: Sequence[CreditLine], by_position: dict[int, Line], given: Counter[int]) -> None:
    if not cited:
        raise RefusedCredit("a credit note cites at least one line")
    for line in cited:
        invoiced = by_position.get(line.position)
        if invoiced is None:
            raise RefusedCredit(f"the invoice has no line {line.position}")
        if line.amount_minor <= 0:
            raise RefusedCredit(f"line {line.position}: what is credited is more than nothing")
        left = invoiced.amount_minor - given[line.position]
        if line.amount_minor > left:
            raise CreditExceeds(line.position, line.amount_minor, left)
    if len({line.position for line in cited}) < len(cited):
        raise RefusedCredit("a credit note cites a line once")


def _credited(notes: Iterable[CreditNote]) -> Counter[int]:
    """What notes give of each line."""
    given: Counter[int] = Counter()
    for note in notes:
        for line in note.lines:
            given[line.position] += line.amount_minor
    return given


def _bases(notes: Iterable[CreditNote], by_position: dict[int, Line]) -> Counter[int]:
    """What notes give at each rate, net."""
    bases: Counter[int] = Counter()
    for position, amount in _credited(notes).items():
        bases[by_position[position].tax_rate_milli_percent] += amount
    return bases
