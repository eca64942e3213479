"""What the audit log and the answers show: everything but secrets."""

import msgspec
from hosted_examples import a_provider

from gateway.administration.images import hosted_image, key_image, tenant_image, worker_image
from gateway.administration.views import hosted_view, key_view, tenant_view, worker_view
from gateway.domain.hosted import HostedModel, HostedProvider
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


def test_a_hosted_provider_is_shown_but_for_its_key() -> None:
    """Every field, prices as people write them."""
    provider = a_provider(api_key="provider-secret")
    shown = hosted_view(provider)
    assert hosted_image(provider) == shown
    assert set(shown) == set(HostedProvider.__struct_fields__) - {"api_key"} | {"has_api_key"}
    assert "provider-secret" not in str(shown)
    assert shown["extensions"] == []
    assert shown["models"] == {
        "m": {
            "name": "big-m",
            "price": {"input": "0.40", "cached_input": "0.10", "output": "1.60"},
        }
    }
    unpriced = hosted_view(a_provider(models={"m": HostedModel(name="x")}))
    assert unpriced["models"] == {"m": {"name": "x", "price": None}}
    assert unpriced["has_api_key"] is False


def test_a_tenants_policy_is_always_said_a_keys_only_where_it_has_one() -> None:
    """None is the strict policy for a tenant, and its tenant's for a key."""
    assert tenant_view(_tenant())["limits"]["data_policy"] == "self_hosted_only"
    audited = tenant_image(_tenant())["limits"]
    assert isinstance(audited, dict)
    assert audited["data_policy"] == "self_hosted_only"
    assert key_view(KEY)["limits"]["data_policy"] is None


def _tenant() -> Tenant:
    return Tenant(
        id="acme",
        name="Acme",
        currency="EUR",
        billing_profile=BillingProfile(legal_name="Acme GmbH"),
        limits=Limits(),
        limits_version=1,
    )
