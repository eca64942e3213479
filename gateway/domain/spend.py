"""What a month has cost, by scope, as usage records say it. Money is in pico-units."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """What a key's requests for a model cost: all of them, or one."""

    key_id: str
    model: str
    pico: int


def scope_names(key_id: str, model: str) -> tuple[str, str, str, str]:
    """The four scopes that such a request counts in, as `scopes_of` names them."""
    key, narrowed = f"key:{key_id}", f"model:{model}"
    return "tenant", key, narrowed, f"{key}/{narrowed}"


def spent_by_scope(recorded: Iterable[Cost], accounted: Iterable[Cost]) -> dict[str, int]:
    """What is to be added to each scope of a store that accounts for some requests itself: all
    that is recorded, less those. Scopes with nothing to add are left out."""
    spent: Counter[str] = Counter()
    for costs, sign in ((recorded, 1), (accounted, -1)):
        for cost in costs:
            for scope in scope_names(cost.key_id, cost.model):
                spent[scope] += sign * cost.pico
    return {scope: pico for scope, pico in spent.items() if pico}
