"""A storm's requests, drawn whole before it begins: the same seed gives the same ones."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from storm.tenants import Mix

LEAVE_S = (0.01, 0.8)
WORDS = ("river", "ford", "mill", "bank", "reed", "heron", "otter", "sluice", "eddy", "delta")


@dataclass(frozen=True)
class Shot:
    """One request of an open loop."""

    at_s: float
    """After the storm's beginning."""
    mix: Mix
    key: int
    gateway: int
    path: str
    body: dict[str, Any]
    """Without the model."""
    prompts: int
    sequences: int
    leave_after_s: float | None


def schedule(tenants: Sequence[Mix], *, seed: int, seconds: float, gateways: int) -> list[Shot]:
    """Poisson arrivals of every tenant at its rate, over all gateways."""
    shots = []
    for mix in tenants:
        # Each tenant's requests stay the same whoever else is in the storm.
        draw = random.Random(f"{seed} {mix.name}")  # noqa: S311 - a schedule, not a secret
        rate = mix.a_second(seconds)
        at_s = draw.expovariate(rate)
        while at_s < seconds:
            shots.append(_shot(mix, at_s, draw.randrange(gateways), draw))
            at_s += draw.expovariate(rate)
    return sorted(shots, key=lambda shot: shot.at_s)


def _shot(mix: Mix, at_s: float, gateway: int, draw: random.Random) -> Shot:
    prompts, choices = draw.choice(mix.prompts), draw.choice(mix.choices)
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(4, 12))) for _ in range(prompts)]
    body: dict[str, Any] = {"temperature": 0, "stream": draw.random() < mix.streamed}
    if draw.random() >= mix.without_maximum:
        body["max_tokens"] = draw.randint(max(1, mix.output_tokens // 2), mix.output_tokens)
    if choices > 1:
        body["n"] = choices
    if mix.prompts == (1,):
        path = "/v1/chat/completions"
        body["messages"] = [{"role": "user", "content": texts[0]}]
    else:
        path = "/v1/completions"
        body["prompt"] = texts if prompts > 1 else texts[0]
    leaves = draw.uniform(*LEAVE_S) if draw.random() < mix.leaving else None
    return Shot(
        at_s=at_s,
        mix=mix,
        key=draw.randrange(len(mix.key_limits)),
        gateway=gateway,
        path=path,
        body=body,
        prompts=prompts,
        sequences=prompts * choices,
        leave_after_s=leaves,
    )
