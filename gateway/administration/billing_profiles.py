"""Billing profiles: what is accepted of one, and in which two columns it lies.

The terms have a column of their own, because a gateway of the release before refuses a profile with
fields that it does not know.
"""

import re
from typing import Any

import msgspec
from msgspec.structs import replace

from gateway.administration.checks import check_email
from gateway.domain.tenant import BillingProfile
from gateway.errors import Unprocessable

TERMS = ("tax_rate", "tax_name", "tax_note", "payment_terms_days", "reference")
"""The fields that lie in `billing_terms`."""

ADDRESS_LINES_MAX = 6
LINE_CHARACTERS_MAX = 100
NAME_CHARACTERS_MAX = 200
NOTE_CHARACTERS_MAX = 500

_TAX_RATE = re.compile(r"(100(\.0{1,3})?|(0|[1-9][0-9]?)(\.[0-9]{1,3})?)")
_COUNTRY = re.compile(r"[A-Z]{2}")


def check_billing_profile(
    profile: BillingProfile, *, prefix: str = "billing_profile."
) -> BillingProfile:
    """A profile that an invoice can be made out to, blanks around its texts taken away; a text of
    blanks is none. Raises Unprocessable naming the field."""
    texts: dict[str, Any] = {}
    for name, most in (
        ("legal_name", NAME_CHARACTERS_MAX),
        ("tax_id", LINE_CHARACTERS_MAX),
        ("tax_name", LINE_CHARACTERS_MAX),
        ("reference", LINE_CHARACTERS_MAX),
        ("tax_note", NOTE_CHARACTERS_MAX),
    ):
        texts[name] = checked_text(getattr(profile, name), field=prefix + name, most=most)
    texts["address"] = checked_lines(
        profile.address, field=prefix + "address", lines_max=ADDRESS_LINES_MAX
    )
    texts["country"] = checked_country(profile.country, field=prefix + "country")
    if profile.email is not None and profile.email.strip():
        try:
            texts["email"] = check_email(profile.email)
        except Unprocessable as error:
            raise _wrong(prefix + "email", "an address such as ap@example.com") from error
    else:
        texts["email"] = None
    if profile.tax_rate is not None and not _TAX_RATE.fullmatch(profile.tax_rate):
        raise _wrong(
            prefix + "tax_rate", "percent as a text such as '19', 0 to 100, at most three decimals"
        )
    return replace(profile, **texts)


def checked_text(text: str | None, *, field: str, most: int) -> str | None:
    """`text` without surrounding blanks, None where nothing is left. Raises Unprocessable."""
    if text is None or not text.strip():
        return None
    text = text.strip()
    if len(text) > most or not text.isprintable():
        raise _wrong(field, f"at most {most} printable characters")
    return text


def checked_lines(lines: tuple[str, ...], *, field: str, lines_max: int) -> tuple[str, ...]:
    """`lines` without those that are blank. Raises Unprocessable."""
    found = [checked_text(line, field=field, most=LINE_CHARACTERS_MAX) for line in lines]
    kept = tuple(line for line in found if line is not None)
    if len(kept) > lines_max:
        raise _wrong(field, f"at most {lines_max} lines")
    return kept


def checked_country(country: str | None, *, field: str) -> str | None:
    """A country's two letters. Raises Unprocessable."""
    if country is not None and not _COUNTRY.fullmatch(country):
        raise _wrong(field, "two letters of ISO 3166 such as DE")
    return country


def profile_columns(profile: BillingProfile) -> dict[str, dict[str, object]]:
    """What a profile is in the columns `billing_profile` and `billing_terms`."""
    fields: dict[str, object] = msgspec.to_builtins(profile)
    terms = {name: fields.pop(name) for name in TERMS if name in fields}
    return {"billing_profile": fields, "billing_terms": terms}


def _wrong(field: str, wanted: str) -> Unprocessable:
    return Unprocessable(f"{field}: must be {wanted}", param=field)
