"""What a billing profile may say, and in which columns it lies."""

import msgspec
import pytest

from gateway.administration.billing_profiles import check_billing_profile, profile_columns
from gateway.domain.tenant import BillingProfile
from gateway.errors import Unprocessable

WHOLE = BillingProfile(
    legal_name="Acme Spółka z o.o.",
    email="ap@acme.example",
    address=("ul. Długa 44/50", "00-241 Warszawa"),
    country="PL",
    tax_id="PL5260250995",
    tax_rate="8.875",
    tax_name="VAT",
    tax_note="Reverse charge",
    payment_terms_days=0,
    reference="PO-4711",
)


def test_a_profile_is_kept_as_it_was_written() -> None:
    assert check_billing_profile(WHOLE) == WHOLE
    assert check_billing_profile(BillingProfile()) == BillingProfile()


def test_blanks_are_nothing() -> None:
    """Around a text, and where a text is nothing else."""
    found = check_billing_profile(
        BillingProfile(legal_name="  Acme  ", tax_id=" ", email="", address=("a ", " ", "b"))
    )
    assert found == BillingProfile(legal_name="Acme", address=("a", "b"))


@pytest.mark.parametrize("rate", ["0", "19", "8.875", "100", "100.000", "0.5", "7.0"])
def test_tax_rates(rate: str) -> None:
    assert check_billing_profile(BillingProfile(tax_rate=rate)).tax_rate == rate


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tax_rate": "19%"}, "tax_rate"),
        ({"tax_rate": ""}, "tax_rate"),
        ({"tax_rate": "-1"}, "tax_rate"),
        ({"tax_rate": "100.001"}, "tax_rate"),
        ({"tax_rate": "1.2345"}, "tax_rate"),
        ({"tax_rate": "019"}, "tax_rate"),
        ({"tax_rate": "1e1"}, "tax_rate"),
        ({"country": "Germany"}, "country"),
        ({"country": "de"}, "country"),
        ({"email": "nobody"}, "email"),
        ({"tax_id": "a\x00b"}, "tax_id"),
        ({"tax_id": "x" * 101}, "tax_id"),
        ({"legal_name": "x" * 201}, "legal_name"),
        ({"address": ["a\nb"]}, "address"),
        ({"address": ["a"] * 7}, "address"),
        ({"tax_note": "x" * 501}, "tax_note"),
        ({"reference": "\u202e"}, "reference"),
    ],
)
def test_what_cannot_be_printed_is_refused_by_name(fields: dict[str, object], param: str) -> None:
    profile = msgspec.convert(fields, BillingProfile)
    with pytest.raises(Unprocessable) as refused:
        check_billing_profile(profile)
    assert refused.value.param == f"billing_profile.{param}"
    with pytest.raises(Unprocessable) as refused:
        check_billing_profile(profile, prefix="")
    assert refused.value.message.startswith(f"{param}: must be ")


def test_a_gateway_of_the_release_before_reads_the_profiles_own_column() -> None:
    """It refuses what it does not know, and knew these five."""
    columns = profile_columns(WHOLE)
    known = {"legal_name", "email", "address", "country", "tax_id"}
    assert set(columns["billing_profile"]) == known
    together = {**columns["billing_profile"], **columns["billing_terms"]}
    assert msgspec.convert(together, BillingProfile) == WHOLE
