"""What a target says it is, and the one line where it is not ready."""

import json

import pytest

from backend.loadtest.load_samples import read_sample
from backend.loadtest.target_facts import (
    TargetNotReady,
    of_owner,
    read_facts,
    require_model,
    shown_url,
)

MODELS = json.dumps({"object": "list", "data": [{"id": "tiny"}, {"id": "big"}]}).encode()


def test_a_simulated_worker_says_so() -> None:
    """With its profile and the speed of its clock."""
    facts = read_facts(
        "http://w",
        b'{"version":"0.5.23","weir_engine":"simulated","weir_profile":"h100x4-70b-fp8",'
        b'"weir_clock_speed":20.0,"weir_engine_description":"simulated worker"}',
    )
    assert (facts.simulated, facts.clock_speed) == (True, 20.0)
    assert facts.step_times == "h100x4-70b-fp8"
    assert facts.description == "simulated worker at http://w"


def test_real_engines_are_not_simulated() -> None:
    """SGLang itself, and a model on a CPU."""
    assert read_facts("http://w", b'{"version":"0.5.23"}').simulated is False
    assert read_facts("http://w", b'{"weir_engine":"local"}').simulated is False


@pytest.mark.parametrize(
    ("server_info", "takes"),
    [
        (b'{"version":"0.5.23"}', True),
        (b'{"version":"0.5.23","weir_engine":"simulated"}', True),
        (b'{"version":"0.5.23","weir_engine":"local"}', False),
        (b"{}", False),
    ],
)
def test_min_tokens_are_sent_to_engines_that_take_them(server_info: bytes, takes: bool) -> None:
    """The local one refuses the whole request."""
    assert read_facts("http://w", server_info).takes_min_tokens is takes


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"<html>", b'{"weir_clock_speed":"fast"}'])
def test_others_do_not_say(body: bytes) -> None:
    """A gateway or a foreign server."""
    facts = read_facts("http://w", body)
    assert (facts.simulated, facts.clock_speed, facts.step_times) == (None, 1.0, None)


@pytest.mark.parametrize(
    ("status", "body", "line"),
    [
        (401, b"", "http://w refuses the API key (401)"),
        (500, b"", "http://w answers 500 to GET /v1/models"),
        (200, b"<html>", "http://w is no OpenAI-compatible server"),
        (200, MODELS, "http://w does not serve 'small', but tiny, big"),
        (200, b'{"data":[]}', "http://w does not serve 'small', but no model"),
    ],
)
def test_what_is_not_ready(status: int, body: bytes, line: str) -> None:
    """One line each."""
    with pytest.raises(TargetNotReady) as raised:
        require_model("http://w", "small", status, body)
    assert str(raised.value) == line


def test_a_model_that_is_served() -> None:
    """Nothing to say."""
    require_model("http://w", "big", 200, MODELS)


@pytest.mark.parametrize(("owner", "simulated"), [("weir", False), ("weir-simulated", True)])
def test_a_gateway_says_whether_its_workers_are_simulated(owner: str, simulated: bool) -> None:
    """By the owner of its model."""
    body = json.dumps({"data": [{"id": "m", "owned_by": owner}]}).encode()
    found = of_owner(read_facts("http://g", b""), "http://g", require_model("g", "m", 200, body))
    assert (found.simulated, found.kind, found.takes_min_tokens) == (simulated, "weir", True)
    assert found.description == "Weir at http://g"


@pytest.mark.parametrize("owner", [None, 7, ["weir"], "sglang", "weirs"])
def test_another_owner_says_nothing(owner: object) -> None:
    """Of whatever kind it is."""
    body = json.dumps({"data": [{"id": "m", "owned_by": owner}]}).encode()
    found = of_owner(read_facts("http://g", b""), "http://g", require_model("g", "m", 200, body))
    assert (found.simulated, found.kind) == (None, "unknown")


def test_what_a_worker_says_itself_counts() -> None:
    """Not who is said to own its model."""
    said = read_facts("http://w", b'{"weir_engine":"local"}')
    assert of_owner(said, "http://w", "weir-simulated") == said
    assert said.kind == "engine"


def test_no_secret_of_a_url_is_shown() -> None:
    """Neither password nor query."""
    assert shown_url("http://user:pw@host:1/v1/?key=sk") == "http://host:1/v1"


def test_ranks_of_a_worker_are_added_up() -> None:
    """A worker with two of them."""
    rank = {
        "num_running_reqs": 3, "num_waiting_reqs": 2, "num_waiting_uncached_tokens": 70,
        "num_used_tokens": 500, "max_total_num_tokens": 1000, "other": None,
    }  # fmt: skip
    sample = read_sample("w", 5.0, json.dumps({"loads": [rank, rank], "version": "x"}).encode())
    assert (sample.at_ms, sample.worker, sample.running, sample.waiting) == (5.0, "w", 6, 4)
    assert (sample.waiting_tokens, sample.kv_used_tokens) == (140, 1000)
    assert sample.kv_total_tokens == 2000
