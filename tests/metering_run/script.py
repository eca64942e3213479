"""What happens in a run of metering, drawn whole before it begins: pure, the same seed gives the
same script."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

WORDS = ("river", "ford", "mill", "bank", "reed", "heron", "otter", "sluice", "eddy", "delta")
LEAVE_S = (0.005, 0.6)
QUIET_S = 1.0
"""Nothing happens to the system so near to the beginning."""
SHIP_KILLED_S = (0.5, 2.5)
AGAIN_S = 1.5
"""A process that came back is left alone for so long."""
WORKER_FAULTS: tuple[Mapping[str, Any], ...] = (
    {"kind": "drop_usage"},
    {"kind": "drop_finish", "after_tokens": 3},
    {"kind": "die_midstream", "after_tokens": 2},
    {"kind": "reset", "after_tokens": 4},
    {"kind": "error_event", "after_tokens": 1},
    {"kind": "error_500"},
    {"kind": "queue_full"},
)


@dataclass(frozen=True)
class Size:
    """How much of everything. Times in seconds."""

    requests: int
    seconds: float
    """In which the requests arrive."""
    partition_s: float
    pause_s: float
    disk_full_s: float
    gateways: int = 3
    workers: int = 3
    kills: Mapping[str, int] = field(default_factory=dict)
    """By `gateway`, `worker`, `redis`, `postgres`: how often one of them is killed."""
    stops: int = 1
    """SIGTERMs of a gateway, which is started again."""
    ships: int = 1
    """A gateway is killed, and so is the `weir journal ship` that works on its journal."""
    partitions: tuple[str, ...] = ("redis", "postgres", "worker")
    """Cut off one after the other; `redis-one` and `postgres-one` are cut off from one gateway."""
    pauses: int = 1
    """SIGSTOPs of a gateway."""
    faults: int = 6
    """Of single streams, on command, at a worker."""
    leaves_one: bool = True
    """The last gateway is killed near the end and never started again."""
    sampled_s: float = 11.0
    """At the end: in which each worker's counters are read once more, whoever's turn it is."""
    admitted_share_min: float = 0.4
    """A run that admits fewer of its clients' requests proves too little, and fails."""
    outcomes: tuple[str, ...] = ("completed", "client_cancelled", "worker_failed", "gateway_lost")
    """And one in which no row says so."""


FULL = Size(
    requests=11_500,
    seconds=230.0,
    partition_s=20.0,
    pause_s=20.0,
    disk_full_s=10.0,
    kills={"gateway": 8, "worker": 6, "redis": 4, "postgres": 4},
    stops=2,
    ships=2,
    partitions=("redis", "postgres", "worker", "redis-one", "postgres-one", "worker"),
    pauses=2,
    faults=24,
)
SHORT = Size(
    requests=300,
    seconds=12.0,
    partition_s=3.0,
    pause_s=2.0,
    disk_full_s=2.0,
    gateways=2,
    workers=2,
    kills={"gateway": 1, "worker": 1, "redis": 1, "postgres": 1},
    ships=0,
    leaves_one=False,
    sampled_s=0.0,
    # On a busy machine what is killed is away for most of so short a time.
    admitted_share_min=0.25,
    outcomes=("completed",),
)


@dataclass(frozen=True)
class Shot:
    """One request."""

    at_s: float
    gateway: int
    batch: bool
    path: str
    body: Mapping[str, Any]
    """Without the model."""
    choices: int
    leave_after_s: float | None


@dataclass(frozen=True)
class Blow:
    """Something is done to a process, or to the way to it."""

    at_s: float
    kind: str
    """`kill`, `stop`, `ship`, `pause`, `cut`, `disk`, `fault`, `leave`."""
    target: str
    """`gateway-0`, `worker-1`, `redis`, `postgres`; of a cut also `redis-2`: of that gateway."""
    for_s: float
    """How long it lasts."""
    how: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Script:
    """All of it, in the order of time."""

    seed: int
    size: Size
    shots: tuple[Shot, ...]
    blows: tuple[Blow, ...]


def plan(seed: int, size: Size) -> Script:
    """The script of a seed."""
    shots = sorted(_shots(random.Random(f"{seed} shots"), size), key=lambda each: each.at_s)  # noqa: S311 - a script
    blows = sorted(_Blows(random.Random(f"{seed} blows"), size).all(), key=lambda each: each.at_s)  # noqa: S311 - a script
    return Script(seed, size, tuple(shots), tuple(blows))


def _shots(draw: random.Random, size: Size) -> Iterator[Shot]:
    for _ in range(size.requests):
        body: dict[str, Any] = {"temperature": 0, "stream": draw.random() < 0.7}
        if body["stream"] and draw.random() < 0.6:
            body["stream_options"] = {"include_usage": True}
        long = draw.random() < 0.08
        body["max_tokens"] = draw.randint(60, 150) if long else draw.randint(1, 14)
        choices = draw.choice((1, 1, 1, 1, 1, 2))
        if choices > 1:
            body["n"] = choices
        if draw.random() < 0.75:
            path = "/v1/chat/completions"
            body["messages"] = [{"role": "user", "content": _text(draw)}]
        else:
            path = "/v1/completions"
            prompts = draw.choice((1, 1, 2))
            body["prompt"] = [_text(draw) for _ in range(prompts)] if prompts > 1 else _text(draw)
        leaves = draw.uniform(*LEAVE_S) if draw.random() < 0.1 else None
        yield Shot(
            at_s=draw.uniform(0, size.seconds),
            gateway=draw.randrange(size.gateways),
            batch=draw.random() < 0.15,
            path=path,
            body=body,
            choices=choices,
            leave_after_s=leaves,
        )


def _text(draw: random.Random) -> str:
    return " ".join(draw.choices(WORDS, k=draw.randint(3, 9)))


class _Blows:
    """Draws blows, none of which hits a process that is down."""

    def __init__(self, draw: random.Random, size: Size) -> None:
        self._draw, self._size = draw, size
        self._busy: dict[str, list[tuple[float, float]]] = {}

    def all(self) -> Iterator[Blow]:
        """Every one."""
        size = self._size
        if size.leaves_one:
            at_s = size.seconds * 0.9
            target = f"gateway-{size.gateways - 1}"
            self._busy[target] = [(at_s, size.seconds * 10)]
            yield Blow(at_s, "leave", target, 0.0)
        yield from self._cuts()
        self._busy.setdefault("gateway-0", []).append(self._disk_time())
        for kind, count, for_s in (("pause", size.pauses, size.pause_s),):
            yield from (self._one(kind, self._gateway, for_s) for _ in range(count))
        yield from self._disk()
        for what, count in size.kills.items():
            for _ in range(count):
                yield self._one("kill", lambda what=what: self._any(what), self._down_s())
        for _ in range(size.ships):
            how = {"killed_after_s": self._draw.uniform(*SHIP_KILLED_S)}
            yield replace(self._one("ship", self._gateway, self._down_s() + 3), how=how)
        yield from (self._one("stop", self._gateway, self._down_s()) for _ in range(size.stops))
        for _ in range(size.faults):
            fault = {**self._draw.choice(WORKER_FAULTS), "count": self._draw.randint(1, 3)}
            at_s = self._draw.uniform(0, size.seconds)
            yield Blow(at_s, "fault", self._any("worker"), 0.0, fault)

    def _cuts(self) -> Iterator[Blow]:
        """One after the other, each as long as a partition is, over the whole time."""
        size = self._size
        partitions = list(size.partitions)
        self._draw.shuffle(partitions)
        slot_s = (size.seconds - QUIET_S) / max(1, len(partitions))
        for number, each in enumerate(partitions):
            name, _, one = each.partition("-")
            if one:
                name = f"{name}-{self._draw.randrange(size.gateways)}"
            elif name == "worker":
                name = self._any(name)
            free_s = max(0.0, slot_s - size.partition_s)
            at_s = QUIET_S + slot_s * number + self._draw.uniform(0, free_s)
            how = {"hangs": self._draw.random() < 0.5}
            yield Blow(at_s, "cut", name, size.partition_s, how)

    def _disk_time(self) -> tuple[float, float]:
        size = self._size
        self._disk_s = self._draw.uniform(QUIET_S, size.seconds * 0.8 - size.disk_full_s)
        return self._disk_s, self._disk_s + size.disk_full_s

    def _disk(self) -> Iterator[Blow]:
        call = self._draw.choice(("ENOSPC write", "ENOSPC reserve"))
        yield Blow(self._disk_s, "disk", "gateway-0", self._size.disk_full_s, {"fault": call})

    def _one(self, kind: str, target: "Any", for_s: float) -> Blow:
        """At a time when its target is up, and stays so without it."""
        while True:
            name = target()
            at_s = self._draw.uniform(QUIET_S, max(QUIET_S, self._size.seconds - for_s / 2))
            busy = self._busy.setdefault(name, [])
            if all(
                to_s + AGAIN_S <= at_s or at_s + for_s + AGAIN_S <= from_s for from_s, to_s in busy
            ):
                busy.append((at_s, at_s + for_s))
                return Blow(at_s, kind, name, for_s)

    def _down_s(self) -> float:
        return self._draw.uniform(0.1, 2.0)

    def _gateway(self) -> str:
        return self._any("gateway")

    def _any(self, what: str) -> str:
        counts = {"gateway": self._size.gateways, "worker": self._size.workers}
        return f"{what}-{self._draw.randrange(counts[what])}" if what in counts else what
