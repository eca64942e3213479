"""What the audit log and the answers show: everything but secrets."""

import msgspec

from gateway.administration.images import key_image, tenant_image, worker_image
from gateway.administration.views import key_view, tenant_view, worker_view
from gateway.domain.tenant import ApiKey, BillingProfile, Limits, RequestClass, Tenant, Worker

KEY = ApiKey(
    id="key_1",
    tenant_id="acme",
    name="ci",
    digest=b"\x01" * 32,
    request_class=RequestClass.BATCH,
    models=("m",),
    expires_at_ms=1000,
    secret_hint="zzzz",
    created_at_ms=500,
    limits=Limits(tpm=5),
    limits_version=7,
)
WORKER = Worker(id="w", model="m", url="http://h:1", api_key="engine-secret")


def test_every_field_of_a_key_is_audited_or_hidden_on_purpose() -> None:
    """A field that is added later is shown, unless somebody decides otherwise here."""
    hidden = {"digest", "secret_hint", "limits_version"}
    assert set(key_image(KEY)) == set(ApiKey.__struct_fields__) - hidden
    assert set(tenant_image(_tenant())) == set(Tenant.__struct_fields__) - {"limits_version"}


def test_no_secret_is_in_an_image_or_a_view() -> None:
    """Neither the digest, nor the engine's key; the hint only where its owner looks."""
    shown = msgspec.json.encode([key_image(KEY), worker_image(WORKER), worker_view(WORKER)])
    for private in (b"zzzz", b"engine-secret", b"AQEB", b"0101"):
        assert private not in shown
    assert "digest" not in key_view(KEY)
    assert key_view(KEY)["secret_hint"] == "zzzz"
    assert "secret" not in key_view(KEY)
    assert key_view(KEY, secret="s")["secret"] == "s"


def test_views_are_the_contracts_words() -> None:
    """`class`, RFC 3339 times, limits as PUT takes them."""
    view = key_view(KEY)
    assert view["class"] == "batch"
    assert view["expires_at"] == "1970-01-01T00:00:01.000Z"
    assert view["limits"] == msgspec.to_builtins(Limits(tpm=5))
    tenant = tenant_view(_tenant())
    assert tenant["billing_profile"] == {"legal_name": "Acme GmbH"}
    assert (tenant["suspended"], tenant["currency"]) == (False, "EUR")


def _tenant() -> Tenant:
    return Tenant(
        id="acme",
        name="Acme",
        currency="EUR",
        billing_profile=BillingProfile(legal_name="Acme GmbH"),
        limits=Limits(),
        limits_version=1,
    )
