import msgspec
import pytest
from hosted_examples import PRICE, a_provider
from hypothesis import given
from hypothesis import strategies as st
from tenant_examples import a_key, a_tenant, a_worker

from gateway.domain.hosted import PRICE_PICO_MAX, HostedPrice, in_order, target_of
from gateway.domain.tenant import DataPolicy, EngineKind, Limits, data_policy

TOKENS = st.integers(0, 2**31 - 1)


def test_a_cost_by_hand() -> None:
    """B18's shape: 1,000 prompt tokens of which 900 cached, at USD 0.40, 0.10 and 1.60 a million:
    100 x 0.4 + 900 x 0.1 + 50 x 1.6 = 210 micro-USD."""
    cost = PRICE.cost_pico(prompt_tokens=1_000, cached_tokens=900, output_tokens=50)
    assert cost == 210_000_000


def test_cached_costs_as_input_unless_said_otherwise() -> None:
    """And more cached than prompt tokens (S10) is never a negative charge."""
    plain = HostedPrice(input=3, output=5)
    assert plain.cost_pico(prompt_tokens=10, cached_tokens=4, output_tokens=1) == 35
    assert PRICE.cost_pico(prompt_tokens=10, cached_tokens=99, output_tokens=0) == 1_000_000


@given(TOKENS, TOKENS, TOKENS)
def test_a_cost_is_never_negative(prompt: int, cached: int, output: int) -> None:
    """For any counts."""
    assert PRICE.cost_pico(prompt_tokens=prompt, cached_tokens=cached, output_tokens=output) >= 0


def test_a_target_is_addressed_as_sdks_do() -> None:
    """The version is part of the base address, wherever the provider has it."""
    target = target_of(a_provider(url="https://ai.example/openai/v1/"), "m")
    assert target is not None
    assert (
        target.endpoint("/v1/chat/completions") == "https://ai.example/openai/v1/chat/completions"
    )
    assert (target.provider, target.id, target.served_name) == (
        "hosted:acme-ai", "hosted:acme-ai", "big-m",
    )  # fmt: skip
    assert target.kind is EngineKind.OPENAI


def test_no_key_in_what_is_printed() -> None:
    """Of a provider, its target, or a worker."""
    provider = a_provider(api_key="provider-secret")
    target = target_of(provider, "m")
    worker = a_worker(api_key="worker-secret")
    assert "secret" not in f"{provider!r} {target!r} {worker!r} {[provider, target, worker]}"


def test_only_named_models_of_enabled_providers() -> None:
    """Anything else never goes there."""
    assert target_of(a_provider(), "other") is None
    assert target_of(a_provider(enabled=False), "m") is None


def test_the_lowest_rank_is_asked_first() -> None:
    """Ties by name."""
    providers = [a_provider("b"), a_provider("z", rank=-1), a_provider("a")]
    assert [provider.name for provider in in_order(providers)] == ["z", "a", "b"]


def test_a_key_can_only_tighten_its_tenants_policy() -> None:
    """Q18, Q19: allowed where the tenant says so and the key does not say no."""
    allowed, only, unset = DataPolicy.HOSTED_ALLOWED, DataPolicy.SELF_HOSTED_ONLY, None
    for tenant, key, expected in (
        (unset, unset, only), (unset, allowed, only), (only, unset, only), (only, allowed, only),
        (allowed, unset, allowed), (allowed, allowed, allowed), (allowed, only, only),
    ):  # fmt: skip
        found = data_policy(a_tenant(Limits(data_policy=tenant)), a_key(Limits(data_policy=key)))
        assert found is expected, (tenant, key)


def test_no_price_costs_more_than_can_be_kept() -> None:
    """2**32 tokens at the highest price are below 2**63 pico-USD; a higher price is none."""
    dearest = HostedPrice(input=PRICE_PICO_MAX, output=PRICE_PICO_MAX)
    whole = 2**32
    assert dearest.cost_pico(prompt_tokens=whole - 1, cached_tokens=0, output_tokens=1) < 2**63
    fields = {"input": PRICE_PICO_MAX + 1, "output": 0}
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(fields, HostedPrice)
