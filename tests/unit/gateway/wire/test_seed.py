import json

import pytest

from gateway.wire.request import read_request
from gateway.wire.seed import SEED_MAX, seed_of


@pytest.mark.parametrize(
    ("seed", "sample", "expected"),
    [
        (7, 0, {}),
        (7, 1, {"seed": 8}),
        (7, 3, {"seed": 10}),
        (-1, 1, {"seed": 0}),
        (SEED_MAX, 1, {"seed": -SEED_MAX - 1}),
        (None, 2, {}),
    ],
)
def test_each_choice_has_a_seed_of_its_own(
    seed: int | None, sample: int, expected: dict[str, int]
) -> None:
    """The first keeps the tenant's; none is made where the tenant gave none."""
    body = {"model": "m", "messages": [{"role": "user", "content": "a"}], "n": 4, "seed": seed}
    request = read_request("chat", json.dumps(body).encode(), {})
    found = seed_of(request, sample)
    assert {name: json.loads(bytes(raw)) for name, raw in found.items()} == expected


def test_no_seed_is_no_seed() -> None:
    """Chance stays the engine's."""
    request = read_request("completions", b'{"model": "m", "prompt": "a", "n": 2}', {})
    assert seed_of(request, 1) == {}
