"""What an invoice may become: draft, then issued, then paid or void; back from paid only where a
payment is taken back."""

from datetime import date, datetime, timedelta
from enum import StrEnum

import msgspec
from msgspec.structs import replace

EASTMOST = timedelta(hours=14)
"""By how much the first place on Earth to begin a day is ahead of UTC."""


class Status(StrEnum):
    """Of an invoice."""

    DRAFT = "draft"
    """Made anew from the records at each look; it has no number and nobody owes it."""
    ISSUED = "issued"
    PAID = "paid"
    """Payments and credit notes together are its total or more."""
    VOID = "void"
    """It keeps its number, and its records are free for another."""


class RefusedChange(ValueError):
    """A change that the invoice's status does not allow; the message says why."""


class WrongDay(ValueError):
    """A day on which no payment of the invoice can have come; the message says why."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where an invoice stands, in minor units of its currency."""

    status: Status = Status.DRAFT
    total_minor: int
    """With tax."""
    paid_minor: int = 0
    credited_minor: int = 0
    """With tax."""

    @property
    def outstanding_minor(self) -> int:
        """What is still to be paid; never negative."""
        if self.status in {Status.DRAFT, Status.VOID}:
            return 0
        return max(0, self.total_minor - self.paid_minor - self.credited_minor)

    @property
    def overpaid_minor(self) -> int:
        """What is to be paid back: payments and credit notes beyond the total; never negative."""
        if self.status in {Status.DRAFT, Status.VOID}:
            return 0
        return max(0, self.paid_minor + self.credited_minor - self.total_minor)


def issued(standing: Standing) -> Standing:
    """After issuing, which a second time changes nothing. An invoice of nothing is paid at once.
    Raises RefusedChange for a void one."""
    if standing.status is Status.VOID:
        raise RefusedChange("a void invoice is not issued again: draft a new one")
    if standing.status is not Status.DRAFT:
        return standing
    return _settled(replace(standing, status=Status.ISSUED))


def voided(standing: Standing) -> Standing:
    """After voiding, which a second time changes nothing. Raises RefusedChange for a draft, and
    where a payment or a credit note was noted."""
    if standing.status is Status.VOID:
        return standing
    if standing.status is Status.DRAFT:
        raise RefusedChange("a draft is not void: it binds nobody, and is made anew")
    if standing.paid_minor or standing.credited_minor:
        raise RefusedChange("payments or credit notes stand against it: credit what is left of it")
    return replace(standing, status=Status.VOID)


def paid(standing: Standing, amount_minor: int, *, may_overpay: bool = False) -> Standing:
    """After a payment. Raises RefusedChange unless it is issued, and for an amount that is not
    positive or, unless it `may_overpay`, more than what is outstanding."""
    _must_be_issued(standing, "a payment")
    if amount_minor <= 0:
        raise RefusedChange("a payment is more than nothing")
    if not standing.outstanding_minor and not may_overpay:
        raise RefusedChange("it is paid: nothing of it is outstanding")
    if amount_minor > standing.outstanding_minor and not may_overpay:
        raise RefusedChange(
            f"only {standing.outstanding_minor} minor units of it are outstanding, "
            f"not {amount_minor}"
        )
    return _settled(replace(standing, paid_minor=standing.paid_minor + amount_minor))


def check_received(received_on: date, month_name: str, now: datetime) -> None:
    """Raises WrongDay for a day before the invoice's month, which nobody can owe yet, and for one
    that has begun nowhere by `now`."""
    first, last = date.fromisoformat(f"{month_name}-01"), (now + EASTMOST).date()
    if received_on < first:
        raise WrongDay(f"must not be before its month, {month_name}")
    if received_on > last:
        raise WrongDay("must not be a day to come")


def taken_back(standing: Standing, amount_minor: int) -> Standing:
    """After a payment of that amount was taken back: issued again, where that leaves something
    outstanding. Raises RefusedChange unless it is issued or paid."""
    _must_be_issued(standing, "a payment that is taken back")
    return _settled(replace(standing, paid_minor=standing.paid_minor - amount_minor))


def credited(standing: Standing, amount_minor: int) -> Standing:
    """After a credit note, tax included; on a paid invoice it is money to be paid back. Raises
    RefusedChange unless it is issued or paid, and for more than the invoice's total together."""
    _must_be_issued(standing, "a credit note")
    together = standing.credited_minor + amount_minor
    if amount_minor < 0 or together > standing.total_minor:
        raise RefusedChange("credit notes together are never more than the invoice's total")
    return _settled(replace(standing, credited_minor=together))


def _must_be_issued(standing: Standing, what: str) -> None:
    if standing.status not in {Status.ISSUED, Status.PAID}:
        raise RefusedChange(
            f"{what} needs an invoice that is issued, this one is {standing.status}"
        )


def _settled(standing: Standing) -> Standing:
    settled = standing.paid_minor + standing.credited_minor >= standing.total_minor
    return replace(standing, status=Status.PAID if settled else Status.ISSUED)
