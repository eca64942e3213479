"""A worker that misses its target when too many run on it (simulated, over HTTP, in real time): the
ceilings of both gateways are seen to come down."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weir_dev import WeirDev, weir_dev

RUNNING_MAX = 12
FLAGS = f"--max-running-requests {RUNNING_MAX} --speed 0.5"
"""Half as fast as four H100 are thought to be. The prompts of others hold up whatever runs, so a
token takes the longer the more run: here far over 40 ms at 12, and under them at one."""
PROMPT_WORDS = 1_500
OUTPUT_TOKENS = range(20, 32)
BATCH_CLIENTS, INTERACTIVE_CLIENTS = 11, 2
WITHIN_S = 50.0


def metric(system: WeirDev, gateway: int, name: str) -> float:
    """The value of a metric, whatever its labels; 0 where it is not there yet."""
    text = system.request("GET", system.gateway(gateway) + "/metrics").raw.decode()
    lines = [line for line in text.splitlines() if line.startswith(name)]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


@contextmanager
def load(system: WeirDev) -> Iterator[None]:
    """Clients that each ask again as soon as they are answered, at both gateways in turn."""
    stopped = threading.Event()

    def client(number: int) -> None:
        chance = random.Random(number)  # noqa: S311 - prompts, no secrets
        band = "batch" if number < BATCH_CLIENTS else "interactive"
        while not stopped.is_set():
            words = (f"{chance.randrange(10**4)}" for _ in range(PROMPT_WORDS))
            system.chat(
                " ".join(words),
                gateway=number,
                token=system.key(request_class=band),
                max_tokens=chance.choice(OUTPUT_TOKENS),
            )

    clients = [
        threading.Thread(target=client, args=[number])
        for number in range(BATCH_CLIENTS + INTERACTIVE_CLIENTS)
    ]
    for each in clients:
        each.start()
    try:
        yield
    finally:
        stopped.set()
        for each in clients:
            each.join()


def test_too_many_run_and_the_ceiling_comes_down(tmp_path: Path) -> None:
    options = ("--engine", "simulated", "--gateways", "2", "--worker-flags", FLAGS)
    with weir_dev(tmp_path, *options) as system:
        system.set_limits(max_queued=100, max_wait_ms=30_000)
        for gateway in (0, 1):
            assert metric(system, gateway, "weir_queue_ceiling_batch_sequences{") == RUNNING_MAX
        began = time.monotonic()
        with load(system):
            while metric(system, 0, "weir_queue_ceiling_batch_sequences{") == RUNNING_MAX:
                assert time.monotonic() < began + WITHIN_S, "nothing was learned"
                time.sleep(0.5)
            time.sleep(1.5)
        ceilings = [metric(system, each, "weir_queue_ceiling_batch_sequences{") for each in (0, 1)]
        assert ceilings[0] == ceilings[1] < RUNNING_MAX
        decided = 'weir_queue_ceiling_decisions_total{direction="cut"}'
        assert sum(metric(system, each, decided) for each in (0, 1)) >= 1
        over = 'weir_queue_ceiling_samples_total{result="over"}'
        assert sum(metric(system, each, over) for each in (0, 1)) >= 8
