"""`weir tenant billing`: whom invoices are made out to."""

import pytest
from weir_command import Weir


@pytest.fixture
def with_tenant(weir: Weir) -> Weir:
    """The command, on a database that knows the tenant `acme`."""
    weir.ok("tenant", "create", "acme")
    return weir


def test_what_is_named_changes_and_an_empty_text_takes_away(with_tenant: Weir) -> None:
    weir = with_tenant
    address = ("--address", "Weg 1", "--address", "10115 Berlin")
    first = weir.json(
        *("tenant", "billing", "acme", "--legal-name", "Acme GmbH", *address, "--country", "DE"),
        *("--tax-rate", "19", "--tax-name", "VAT", "--payment-terms-days", "14"),
    )
    assert first["billing_profile"] == {
        "legal_name": "Acme GmbH",
        "address": ["Weg 1", "10115 Berlin"],
        "country": "DE",
        "tax_rate": "19",
        "tax_name": "VAT",
        "payment_terms_days": 14,
    }
    second = weir.json("tenant", "billing", "acme", "--tax-rate", "", "--reference", "PO-1")
    without = {name: at for name, at in first["billing_profile"].items() if name != "tax_rate"}
    assert second["billing_profile"] == {**without, "reference": "PO-1"}
    assert weir.json("tenant", "billing", "acme") == second
    entries = weir.json("audit", "list", "--subject-id", "acme", "--action", "tenant.update")
    assert len(entries["items"]) == 2


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--tax-rate", "19%"), "tax_rate"),
        (("--country", "Germany"), "country"),
        (("--payment-terms-days", "400"), "payment-terms-days"),
        (("--email", "nobody"), "email"),
    ],
)
def test_a_bad_profile_is_one_line(
    with_tenant: Weir, arguments: tuple[str, ...], named: str
) -> None:
    assert named in with_tenant.refused("tenant", "billing", "acme", *arguments)
    assert with_tenant.json("tenant", "show", "acme")["billing_profile"] == {}


def test_nobody_elses_profile(weir: Weir) -> None:
    assert "nobody" in weir.refused("tenant", "billing", "nobody", "--tax-rate", "19")
