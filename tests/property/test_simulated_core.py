"""Whatever is submitted and aborted in whatever order, the simulated replica keeps its books."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.simulated.flags import SchedulerFlags
from backend.simulated.profiles import StepTimes
from backend.simulated.radix_cache import Node
from backend.simulated.replica import Replica
from backend.simulated.request import TOKEN_BYTES, EndReason, SimulatedRequest

TIMES = StepTimes(10.0, 0.1, 0.001, 5.0, 0.01, 0.0001)

REQUESTS = st.fixed_dictionaries(
    {
        "prompt": st.lists(st.integers(0, 2), min_size=1, max_size=40),
        "max_new_tokens": st.integers(0, 24),
        "ends_after": st.integers(1, 30),
        "ignore_eos": st.booleans(),
        "salt": st.sampled_from([b"", b"a", b"ab"]),
        "priority": st.sampled_from([None, 0, 5, 20, 40]),
    }
)
ACTIONS = st.lists(
    st.one_of(
        REQUESTS,
        st.integers(0, 30),
        st.sampled_from(["begin", "end", "begin", "end", "step", "flush"]),
    ),
    max_size=60,
)
FLAGS = st.builds(
    SchedulerFlags,
    max_total_tokens=st.integers(70, 160),
    page_size=st.sampled_from([1, 1, 4]),
    max_running_requests=st.integers(1, 6),
    max_queued_requests=st.sampled_from([None, None, 3]),
    chunked_prefill_size=st.sampled_from([8, 16, 64, -1]),
    max_prefill_tokens=st.sampled_from([16, 64]),
    enable_mixed_chunk=st.booleans(),
    prefill_decode_interval=st.sampled_from([0, 2]),
    schedule_policy=st.sampled_from(["fcfs", "lpm"]),
    schedule_conservativeness=st.sampled_from([0.05, 1.0]),
    enable_priority_scheduling=st.booleans(),
    schedule_low_priority_values_first=st.booleans(),
    disable_priority_preemption=st.booleans(),
    retraction_policy=st.sampled_from(["length", "priority"]),
    disable_radix_cache=st.booleans(),
    load_snapshot_publish_interval=st.sampled_from([1, 15]),
)


def ids(tokens: list[int]) -> bytes:
    return b"".join(token.to_bytes(TOKEN_BYTES, "little") for token in tokens)


@dataclass
class Run:
    """A replica, everything that happened to it, and the checks that hold at every moment."""

    flags: SchedulerFlags
    log: list[object] = field(default_factory=list)
    requests: list[SimulatedRequest] = field(default_factory=list)
    gone: dict[str, str] = field(default_factory=dict)
    now_ms: float = 0.0
    in_flight: bool = False

    def __post_init__(self) -> None:
        self.replica = Replica(TIMES, self.flags)

    def leaves(self, request: SimulatedRequest, why: str) -> None:
        assert request.rid not in self.gone
        self.gone[request.rid] = why
        self.log.append((self.now_ms, request.rid, why, request.generated))

    def submit(self, fields: dict[str, object]) -> None:
        fields = dict(fields)
        prompt = fields.pop("prompt")
        assert isinstance(prompt, list)
        request = SimulatedRequest(
            rid=str(len(self.requests)),
            prompt=ids(prompt),
            output_ids=lambda count: ids([count_ % 3 for count_ in range(count)]),
            **fields,  # type: ignore[arg-type]
        )
        self.requests.append(request)
        refused = self.replica.submit(request, self.now_ms)
        if refused is not None:
            self.leaves(refused, "refused")

    def abort(self, number: int) -> None:
        if number < len(self.requests):
            request = self.requests[number]
            known = request.rid not in self.gone
            left = self.replica.abort(request, self.now_ms)
            if known and left:
                self.leaves(request, "aborted")
            assert left or self.in_flight

    def begin(self) -> bool:
        if not self.in_flight:
            step = self.replica.begin_step(self.now_ms)
            self.log.append(step)
            if step is not None:
                assert self.replica.load().running <= self.flags.max_running_requests
                self.now_ms += step.duration_ms
                self.in_flight = True
        return self.in_flight

    def end(self) -> None:
        if self.in_flight:
            self.in_flight = False
            end = self.replica.end_step(self.now_ms)
            self.log.append([(r.rid, r.generated) for r in end.generated])
            for request, reason in end.ended:
                self.leaves(request, reason.value)
                if reason is EndReason.LENGTH:
                    assert request.generated == request.max_new_tokens
                if reason is EndReason.STOP:
                    assert request.generated == request.ends_after < request.max_new_tokens

    def act(self, action: object) -> None:
        if isinstance(action, dict):
            self.submit(action)
        elif isinstance(action, int):
            self.abort(action)
        elif action == "flush":
            self.replica.flush_cache()
        else:
            if action != "end":
                self.begin()
            if action != "begin":
                self.end()
        self.check()

    def finish(self) -> None:
        """Nothing waits for ever: each round of steps brings the replica nearer to its end."""
        for _ in range(3000):
            if not self.replica.has_work:
                break
            assert self.begin()
            self.check()
            self.end()
            self.check()

    def check(self) -> None:
        pool, load = self.replica._pool, self.replica.load()
        cache = pool.cache
        tree = list(nodes(cache._root))
        assert cache.tokens == sum(node.tokens for node in tree)
        assert cache.locked_tokens == sum(node.tokens for node in tree if node.locks)
        assert pool.free_tokens >= 0
        assert pool.private_tokens >= 0
        assert load.used_tokens + load.evictable_tokens + pool.free_tokens == pool.size_tokens
        assert pool.size_tokens <= self.flags.max_total_tokens
        held = [p for p in self.replica._places.values() if not p.waiting]
        locks = sum(node.locks for node in tree if node.parent is cache._root)
        assert locks == sum(1 for place in held if place.protected_tokens)
        assert self.replica._batch.context_tokens == sum(
            place.text_tokens for place in self.replica._batch.places
        )
        waiting = self.replica._waiting
        assert waiting.text_tokens == sum(place.text_tokens for place in waiting.places)
        assert load.waiting == sum(1 for p in self.replica._places.values() if p.waiting)
        assert load.retracted == sum(place.lost_place for place in waiting.places)
        if not self.in_flight:
            owed = sum(pool.paged(place.kv_tokens) - place.protected_tokens for place in held)
            assert pool.private_tokens == owed


def nodes(node: Node) -> Iterator[Node]:
    for child in node.children.values():
        yield child
        yield from nodes(child)


def run(flags: SchedulerFlags, actions: list[object]) -> Run:
    played = Run(flags)
    for action in actions:
        played.act(action)
    played.finish()
    return played


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FLAGS, st.lists(REQUESTS, min_size=2, max_size=8), ACTIONS)
def test_books_are_kept_and_everyone_leaves_once(
    flags: SchedulerFlags, burst: list[dict[str, object]], actions: list[object]
) -> None:
    """Every slot is free, evictable, locked or private at every moment; every request ends
    exactly once; when all have, nothing is held; and it all happens again the same way."""
    actions = [*burst, *actions]
    played = run(flags, actions)
    assert not played.replica.has_work
    assert set(played.gone) == {request.rid for request in played.requests}
    assert played.replica.load().used_tokens == 0
    assert run(flags, actions).log == played.log


@settings(max_examples=100, deadline=None)
@given(st.lists(REQUESTS, min_size=2, max_size=15), st.integers(1, 5))
def test_no_one_overtakes_under_fcfs(requests: list[dict[str, object]], slots: int) -> None:
    """With memory for all, requests start in the order of arrival."""
    flags = SchedulerFlags(max_total_tokens=4000, max_running_requests=slots)
    played = run(flags, list(requests))
    started = [request.started_ms for request in played.requests]
    assert None not in started
    assert started == sorted(start for start in started if start is not None)
