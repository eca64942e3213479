"""The scopes of a request, and what they are called."""

import pytest
from tenant_examples import a_key, a_tenant

from gateway.domain.scopes import scopes_of
from gateway.domain.tenant import Limits, ModelLimits

TENANT = Limits(
    max_sequences=1,
    tpm=2,
    rpm=3,
    monthly_budget="4.00",
    models={"m": ModelLimits(tpm=5, monthly_budget="0.01"), "n": ModelLimits(tpm=6)},
)
KEY = Limits(tpm=7, models={"m": ModelLimits(rpm=8)})


def test_each_scope_has_its_own_limits() -> None:
    """The widest first; another model's are nobody's here. Budgets are whole pico-units."""
    scopes = scopes_of(a_tenant(TENANT, limits_version=3), a_key(KEY, limits_version=4), "m")
    found = [(s.scope, s.version, s.max_sequences, s.tpm, s.rpm, s.budget_pico) for s in scopes]
    assert found == [
        ("tenant", 3, 1, 2, 3, 4 * 10**12),
        ("key:key-1", 4, None, 7, None, None),
        ("model:m", 3, None, 5, None, 10**10),
        ("key:key-1/model:m", 4, None, None, 8, None),
    ]


@pytest.mark.parametrize("model", ["m", "org/name", "name:7b", "a/model:b"])
def test_a_scope_is_told_by_its_names(model: str) -> None:
    """A model's id stays as it is, whatever is in it."""
    scopes = scopes_of(a_tenant(), a_key(), model)
    assert [scope.shown for scope in scopes] == [
        "tenant",
        "key key-1",
        f"model {model}",
        f"key key-1 and model {model}",
    ]
