"""What finance may say of invoices, checked before anything is looked up or written."""

import re
from uuid import UUID

from msgspec.structs import replace

from billing.domain.invoicing.lifecycle import Status
from billing.domain.invoicing.party import Seller
from billing.domain.invoicing.periods import InvalidPeriod, Month, month
from billing.domain.invoicing.rounding import pico_per_minor
from billing.domain.money import InvalidAmount, parse_amount
from gateway.administration.billing_profiles import (
    LINE_CHARACTERS_MAX,
    checked_country,
    checked_lines,
    checked_text,
)
from gateway.administration.checks import check_email, check_name, check_time_zone
from gateway.administration.pages import position_of
from gateway.errors import Unprocessable

SELLER_LINES_MAX = 6
REASON_CHARACTERS_MAX = 500
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAME = re.compile(r"[A-Z0-9]{1,10}-[0-9]{4}-[0-9]{1,12}|[a-z0-9_-]{1,63}/[0-9]{4}-[0-9]{2}")
_PREFIX = re.compile(r"[A-Z][A-Z0-9]{0,9}")


def check_month(name: str, time_zone: str, *, field: str = "period") -> Month:
    """A month by its name. Raises Unprocessable."""
    try:
        return month(name, time_zone)
    except InvalidPeriod as error:
        raise _wrong(field, "a month such as '2026-11'") from error


def as_id(text: str) -> UUID | None:
    """An id as the lists show it, None for any other text."""
    return UUID(text) if _ID.fullmatch(text) else None


def is_name(text: str) -> bool:
    """Whether it has the form of a number or of a tenant's month."""
    return _NAME.fullmatch(text) is not None


def check_status(text: str | None) -> Status | None:
    """An invoice's status. Raises Unprocessable."""
    try:
        return None if text is None else Status(text)
    except ValueError as error:
        raise _wrong("status", "one of " + ", ".join(Status)) from error


def id_of_cursor(cursor: str | None) -> UUID | None:
    """After which one a page goes on. Raises Unprocessable."""
    if cursor is None:
        return None
    found = as_id(position_of(cursor))
    if found is None:
        raise Unprocessable("cursor: must be one that an earlier page gave", param="cursor")
    return found


def check_minor(text: object, currency: str, *, field: str) -> int:
    """Minor units of an amount that is more than nothing. Raises Unprocessable."""
    try:
        pico = parse_amount(text, currency)
    except InvalidAmount as error:
        raise Unprocessable(f"{field}: {error}", param=field) from error
    if pico == 0:
        raise _wrong(field, "more than nothing")
    return pico // pico_per_minor(currency)


def check_reason(text: str, *, field: str = "reason") -> str:
    """Why something is done, for the record. Raises Unprocessable."""
    found = checked_text(text, field=field, most=REASON_CHARACTERS_MAX)
    if found is None:
        raise _wrong(field, "what others will understand later")
    return found


def check_reference(text: str, *, field: str = "reference") -> str:
    """What names a payment or a credit note elsewhere. Raises Unprocessable."""
    found = checked_text(text, field=field, most=LINE_CHARACTERS_MAX)
    if found is None:
        raise _wrong(field, "what names it elsewhere, such as the bank's own number")
    return found


def check_seller(seller: Seller) -> Seller:
    """A seller that can be printed, and whose documents have numbers of their own. Raises
    Unprocessable naming the field."""
    for field in ("invoice_prefix", "credit_note_prefix"):
        if not _PREFIX.fullmatch(getattr(seller, field)):
            raise _wrong(field, "1 to 10 of A-Z and 0-9, beginning with a letter")
    if seller.invoice_prefix == seller.credit_note_prefix:
        raise _wrong("credit_note_prefix", "another than that of invoices")
    return replace(
        seller,
        name=check_name(seller.name),
        address=checked_lines(seller.address, field="address", lines_max=SELLER_LINES_MAX),
        country=checked_country(seller.country, field="country") or seller.country,
        tax_id=checked_text(seller.tax_id, field="tax_id", most=LINE_CHARACTERS_MAX),
        email=check_email(seller.email) if seller.email and seller.email.strip() else None,
        bank=checked_lines(seller.bank, field="bank", lines_max=SELLER_LINES_MAX),
        time_zone=check_time_zone(seller.time_zone),
    )


def _wrong(field: str, wanted: str) -> Unprocessable:
    return Unprocessable(f"{field}: must be {wanted}", param=field)
