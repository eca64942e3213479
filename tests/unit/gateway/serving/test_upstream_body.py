import json

from tenant_examples import a_tenant, a_worker

from gateway.domain.tenant import CacheIsolation, EngineKind, Limits
from gateway.serving.upstream_body import PATHS, cache_salt, upstream_body
from gateway.wire.bodies import Endpoint
from gateway.wire.request import read_request


def sent(
    body: dict[str, object],
    *,
    endpoint: Endpoint = "chat",
    kind: EngineKind = EngineKind.SGLANG,
    priority: int | None = None,
) -> dict[str, object]:
    request = read_request(endpoint, json.dumps(body).encode(), {})
    raw = upstream_body(
        request,
        worker=a_worker(kind=kind),
        prompt=len(request.prompts) - 1,
        upstream_id="u" * 36,
        max_tokens=50,
        salt="s",
        priority=priority,
    )
    decoded: dict[str, object] = json.loads(raw)
    return decoded


CHAT: dict[str, object] = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


def test_one_choice_is_one_stream() -> None:
    """DESIGN 6: always a stream with usage, whatever the client asked; S04: also where it did not
    ask for usage."""
    body = sent({**CHAT, "n": 4, "stream": False, "user": "u", "max_completion_tokens": 9})
    assert body == {
        **CHAT,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "max_tokens": 50,
        "rid": "u" * 36,
        "cache_salt": "s",
    }


def test_the_clients_options_do_not_reach_the_engine() -> None:
    """R03: one maximum, ours; its own usage options are about what it sees."""
    asked = {**CHAT, "stream": True, "stream_options": {"include_usage": False}, "max_tokens": 7}
    body = sent(asked)
    assert body["max_tokens"] == 50
    assert body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}


def test_an_openai_server_gets_no_sglang_field() -> None:
    """It might refuse what it does not know."""
    body = sent(CHAT, kind=EngineKind.OPENAI)
    assert set(body) == {"model", "messages", "stream", "stream_options", "max_tokens"}
    assert body["stream_options"] == {"include_usage": True}


def test_a_priority_is_sent_where_the_engine_goes_by_it() -> None:
    """Zero too; none where there is none, and none to a server that is not SGLang."""
    assert sent(CHAT, priority=0)["priority"] == 0
    assert "priority" not in sent(CHAT)
    assert "priority" not in sent(CHAT, priority=1, kind=EngineKind.OPENAI)


def test_each_prompt_of_a_list_is_sent_alone() -> None:
    """A prompt a stream."""
    body = sent({"model": "m", "prompt": ["a", "b"], "top_k": 3}, endpoint="completions")
    assert (body["prompt"], body["top_k"]) == ("b", 3)


def test_a_salt_keeps_tenants_apart() -> None:
    """INV-12: the same for a tenant everywhere, another for every other one, none where it chose
    to share; its name cannot be guessed without the secret."""
    acme, globex = a_tenant(), a_tenant(id="globex")
    assert cache_salt("secret", acme) == cache_salt("secret", acme)
    assert cache_salt("secret", acme) != cache_salt("secret", globex)
    assert cache_salt("secret", acme) != cache_salt("other", acme)
    shared = a_tenant(Limits(cache_isolation=CacheIsolation.SHARED))
    assert cache_salt("secret", shared) is None


def test_paths_are_openais() -> None:
    """Appended to a worker's base URL."""
    assert PATHS == {"chat": "/v1/chat/completions", "completions": "/v1/completions"}
