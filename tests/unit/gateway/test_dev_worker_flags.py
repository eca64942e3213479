"""`weir dev --worker-flags`: what its workers are started with."""

import click
import pytest

from gateway.dev_engines import check_worker_flags


def test_flags_of_the_engine_are_taken() -> None:
    """As words, in their order."""
    text = "--speed 4 --radix-eviction-policy slru"
    assert check_worker_flags("simulated", text) == (
        *("--speed", "4", "--radix-eviction-policy", "slru"),
    )
    assert check_worker_flags("local", "--threads 2") == ("--threads", "2")
    assert check_worker_flags("local", "") == ()


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
