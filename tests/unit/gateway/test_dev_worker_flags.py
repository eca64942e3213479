"""`weir dev --worker-flags`: what its workers are started with."""

from pathlib import Path

import click
import pytest

from backend.embedded import DataDir
from backend.simulated.startup import realistic_start_up_ms
from gateway.dev_engines import check_worker_flags, started_engines


def test_flags_of_the_engine_are_taken() -> None:
    """As words, in their order."""
    text = "--speed 4 --radix-eviction-policy slru"
    assert check_worker_flags("simulated", text) == (
        *("--speed", "4", "--radix-eviction-policy", "slru"),
    )
    assert check_worker_flags("local", "--threads 2") == ("--threads", "2")
    assert check_worker_flags("local", "") == ()


def test_a_worker_is_waited_for_as_long_as_it_was_told_to_take(tmp_path: Path) -> None:
    """Its start-up at its speed, over the time that any worker is given."""

    def waited_s(name: str, *flags: str) -> float:
        folder = DataDir(tmp_path, launcher_fd=-1, servers_fd=-1)
        engines = started_engines(name, 1, folder, avoid=frozenset(), flags=flags)
        assert engines[0].service is not None
        return engines[0].service.ready_timeout_s

    plain_s = waited_s("simulated")
    assert waited_s("local", "--threads", "2") == plain_s
    assert waited_s("simulated", "--start-up", "600000", "--speed", "2") == plain_s + 300
    drawn_s = realistic_start_up_ms(7) / 1000
    assert waited_s("simulated", "--start-up", "realistic", "--seed", "7") == plain_s + drawn_s


@pytest.mark.parametrize(
    ("engine", "text", "said"),
    [
        ("simulated", "--threads 2", "No such option"),
        ("local", "--speed 4", "No such option"),
        ("simulated", "--speed 0", "not in the range"),
        ("simulated", "--speed nan", "not a finite number"),
        ("simulated", "--port 3000", "--port is weir dev's to set"),
        ("simulated", "--port=3000", "--port is weir dev's to set"),
        ("simulated", "--model other", "--model is weir dev's to set"),
        ("simulated", "--replicas 2", "--replicas is weir dev's to set"),
        ("simulated", "'", "No closing quotation"),
        ("http://127.0.0.1:1", "--speed 4", "an engine at a URL has its own"),
    ],
)
def test_others_are_refused_before_anything_starts(engine: str, text: str, said: str) -> None:
    """In one line that names the option."""
    with pytest.raises(click.BadParameter) as raised:
        check_worker_flags(engine, text)
    message = raised.value.format_message()
    assert said in message
    assert "--worker-flags" in message
    assert "\n" not in message
