"""`weir hosted` on a real database."""

import pytest
from weir_command import Weir

from gateway.commands.limit import SETTABLE

MODEL = ("model", "add", "m", "--context-tokens", "2048", "--max-output-tokens", "512")
ADD = ("hosted", "add", "acme-ai", "--url", "https://ai.example", "--model", "m=org/big:m=1")


@pytest.fixture(autouse=True)
def _model(weir: Weir) -> None:
    weir.ok(*MODEL)


def test_a_providers_life(weir: Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Added with its key from the environment, replaced without, shown, listed, removed."""
    monkeypatch.setenv("ACME_KEY", "provider-secret")
    added = weir.json(
        *ADD, "--price", "m=0.4,1.60,0.1", "--rank", "2", "--extension", "top_k",
        "--api-key-env", "ACME_KEY",
    )  # fmt: skip
    assert added["models"] == {
        "m": {
            "name": "org/big:m=1",
            "price": {"input": "0.40", "output": "1.60", "cached_input": "0.10"},
        }
    }
    assert (added["url"], added["rank"]) == ("https://ai.example/v1", 2)
    assert (added["has_api_key"], added["enabled"]) == (True, True)
    assert added == weir.json("hosted", "show", "acme-ai")
    assert weir.json("hosted", "list")["items"] == [added]
    changed = weir.json(
        *ADD, "--price", "m=1,2", "--disabled", "--connect-timeout-ms", "100",
        "--first-event-timeout-ms", "200", "--stall-timeout-ms", "300",
        "--output-limit-field", "max_completion_tokens",
    )  # fmt: skip
    assert changed == {
        **added,
        "models": {
            "m": {
                "name": "org/big:m=1",
                "price": {"input": "1.00", "output": "2.00", "cached_input": None},
            }
        },
        "rank": 0,
        "enabled": False,
        "connect_timeout_ms": 100,
        "first_event_timeout_ms": 200,
        "stall_timeout_ms": 300,
        "output_limit_field": "max_completion_tokens",
        "extensions": [],
    }
    table = weir.ok("hosted", "list").splitlines()
    assert table[0].split() == ["NAME", "URL", "MODELS", "RANK", "ENABLED", "HAS_API_KEY"]
    assert table[1].split() == ["acme-ai", "https://ai.example/v1", "m", "0", "no", "yes"]
    assert weir.json(*ADD, "--no-api-key")["has_api_key"] is False
    assert "provider-secret" not in weir.ok("audit", "list", "--json")
    assert weir.json("hosted", "remove", "acme-ai") == {"name": "acme-ai", "removed": True}
    assert "no hosted provider acme-ai" in weir.refused("hosted", "show", "acme-ai")
    assert "no hosted provider acme-ai" in weir.refused("hosted", "remove", "acme-ai")


def test_no_variable_is_read_unless_it_is_named(
    weir: Weir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is still exported for a provider goes to no other, and not to a new address."""
    for variable in ("WEIR_HOSTED_API_KEY", "WEIR_WORKER_API_KEY", "API_KEY"):
        monkeypatch.setenv(variable, "key-of-another")
    assert weir.json(*ADD)["has_api_key"] is False
    assert weir.json(*ADD, "--api-key", "its-own")["has_api_key"] is True
    elsewhere = (*ADD[:4], "https://elsewhere.example", *ADD[5:])
    assert "api_key" in weir.refused(*elsewhere)
    assert weir.json(*elsewhere, "--api-key-env", "API_KEY")["has_api_key"] is True
    worker = ("worker", "add", "w", "--model", "m", "--url", "http://10.0.0.1:1")
    assert weir.json(*worker)["has_api_key"] is False
    assert weir.json(*worker, "--api-key-env", "API_KEY")["has_api_key"] is True
    for command in (ADD, worker):
        assert "not both" in weir.refused(*command, "--api-key", "x", "--api-key-env", "API_KEY")
        line = weir.refused(*command, "--api-key-env", "sk-hunter2")
        assert "not set" in line
        assert "hunter2" not in line
    assert "not both" in weir.refused(*ADD, "--api-key", "x", "--no-api-key")


def test_a_server_is_a_workers_or_a_providers(weir: Weir) -> None:
    """One line that names the other."""
    worker = ("worker", "add", "w", "--model", "m", "--url")
    weir.ok(*ADD)
    assert "acme-ai" in weir.refused(*worker, "http://ai.example:443")
    weir.ok(*worker, "https://elsewhere.example")
    assert "worker w" in weir.refused(*ADD, "--url", "https://elsewhere.example/v1")


REFUSED: list[tuple[tuple[str, ...], str]] = [
    (("--model", "m=x"), "names m twice"),
    (("--model", "m"), "--model"),
    (("--model", "=x"), "--model"),
    (("--model", "x=x"), "models.x"),
    (("--price", "m"), "--price"),
    (("--price", "m=1"), "INPUT,OUTPUT"),
    (("--price", "m=1,2,3,4"), "INPUT,OUTPUT"),
    (("--price", "m=1,2e3"), "--price m, output"),
    (("--price", "m=1,9007199254.740992"), "at most 2147.483647 USD"),
    (("--price", "m=1,2,-3"), "--price m, cached_input"),
    (("--price", "x=1,2"), "--price names x"),
    (("--rank", "first"), "--rank"),
    (("--stall-timeout-ms", "0"), "stall_timeout_ms"),
    (("--output-limit-field", "max"), "--output-limit-field"),
    (("--extension", "cache_salt"), "extensions"),
    (("--url", "https://u:hunter2@h"), "url"),
]


def test_bad_input_is_one_line_and_status_2(weir: Weir) -> None:
    """It says what is wrong, without the secret; nothing is stored."""
    for options, said in REFUSED:
        line = weir.refused(*ADD, *options)
        assert said in line, options
        assert "hunter2" not in line
    assert "--model" in weir.refused("hosted", "add", "x", "--url", "https://h")
    assert weir.json("hosted", "list")["items"] == []


def test_the_data_policy_is_a_limit(weir: Weir) -> None:
    """A tenant's is always said; `none` leaves a key to its tenant's."""
    assert "data_policy" in SETTABLE
    weir.ok("tenant", "create", "acme")
    key = weir.json("key", "create", "acme", "--name", "k")["id"]
    assert weir.json("limit", "show", "acme")["data_policy"] == "self_hosted_only"
    assert weir.json("limit", "set", "acme", "--tpm", "5")["data_policy"] == "self_hosted_only"
    allowed = weir.json("limit", "set", "acme", "--data-policy", "hosted_allowed")
    assert allowed["data_policy"] == "hosted_allowed"
    assert weir.json("limit", "show", "--key", key)["data_policy"] is None
    weir.ok("limit", "set", "--key", key, "--data-policy", "self_hosted_only")
    assert weir.json("limit", "show", "--key", key)["data_policy"] == "self_hosted_only"
    weir.ok("limit", "set", "--key", key, "--data-policy", "none")
    assert weir.json("limit", "show", "--key", key)["data_policy"] is None
    assert weir.json("limit", "set", "acme", "--data-policy", "none")["data_policy"] == (
        "self_hosted_only"
    )
