from tenant_examples import a_key, a_tenant

from gateway.domain.scopes import scopes_of
from gateway.domain.spend import Cost, scope_names, spent_by_scope


def test_scopes_are_named_as_admission_names_them() -> None:
    """Else money would be handed to scopes that nobody looks at."""
    scopes = scopes_of(a_tenant(), a_key(), "m")
    assert scope_names(a_key().id, "m") == tuple(scope.scope for scope in scopes)


def test_a_cost_counts_in_all_four_scopes() -> None:
    """Each key and model apart, and together; whatever the size."""
    huge = 10**30
    spent = spent_by_scope([Cost("a", "m", 5), Cost("b", "m", 7), Cost("b", "n", huge)], [])
    assert spent == {
        "tenant": 12 + huge,
        "key:a": 5,
        "key:b": 7 + huge,
        "model:m": 12,
        "model:n": huge,
        "key:a/model:m": 5,
        "key:b/model:m": 7,
        "key:b/model:n": huge,
    }


def test_what_the_store_accounts_for_is_left_out() -> None:
    """And a scope that has nothing else is not named."""
    spent = spent_by_scope([Cost("a", "m", 5), Cost("b", "n", 7)], [Cost("b", "n", 7)])
    assert spent == {"tenant": 5, "key:a": 5, "model:m": 5, "key:a/model:m": 5}
