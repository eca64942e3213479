"""Messages and the calls in them: what a client may send, and what of it goes upstream."""

import json
from typing import Any

import httpx2
import openai
import pytest
from pydantic import BaseModel

from gateway.errors import InvalidRequest
from gateway.wire.assembly import ChoiceAssembly
from gateway.wire.request import read_request

ASK = {"role": "user", "content": "hi"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def read(*messages: object) -> Any:
    """The messages as they go upstream."""
    body = {"model": "m", "messages": [ASK, *messages]}
    request = read_request("chat", json.dumps(body).encode(), {})
    assert request.prompts == (request.forward["messages"],)
    return json.loads(bytes(request.forward["messages"]))[1:]


@pytest.mark.parametrize(
    "name",
    ["rid", "cache_salt", "input_ids", "image_url", "tools", "prefix", "session_id", "phase"],
)
@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
def test_a_message_has_only_known_fields(role: str, name: str) -> None:
    """INV-12: an engine's control is no tenant's, wherever it stands; no value is quoted."""
    with pytest.raises(InvalidRequest) as caught:
        read({"role": role, "content": "a", name: "secret"})
    assert (caught.value.code, caught.value.param) == (
        "unsupported_parameter",
        f"messages[1].{name}",
    )
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    ("call", "param"),
    [
        ({**CALL, "rid": "secret"}, "messages[1].tool_calls[0].rid"),
        (
            {**CALL, "function": {"name": "f", "arguments": "{}", "rid": "secret"}},
            "messages[1].tool_calls[0].function.rid",
        ),
        ({**CALL, "type": "secret"}, "messages[1].tool_calls[0].type"),
        ({"id": "c"}, "messages[1].tool_calls[0]"),
    ],
)
def test_a_call_has_only_known_fields(call: object, param: str) -> None:
    """The same of the calls."""
    with pytest.raises(InvalidRequest) as caught:
        read({"role": "assistant", "content": None, "tool_calls": [call]})
    assert caught.value.param == param
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("name", ["secret\n", "x" * 65, "a`b", ""])
def test_what_is_no_name_is_not_repeated(name: str) -> None:
    """A key may be anything, a prompt too."""
    with pytest.raises(InvalidRequest) as caught:
        read({"role": "user", "content": "a", name: 1})
    assert caught.value.code == "unsupported_parameter"
    assert str(caught.value.param).startswith("messages[1]")
    assert "secret" not in caught.value.message
    assert len(caught.value.message) < 120


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "a", "name": "ann"},
        {"role": "tool", "content": "rain", "tool_call_id": "c"},
        {"role": "assistant", "content": "a", "reasoning_content": "b", "reasoning": "b"},
        {"role": "assistant", "content": None, "refusal": "No."},
        {"role": "assistant", "content": None, "tool_calls": [{**CALL, "index": 0}]},
        {
            "role": "assistant", "content": "a", "refusal": None, "audio": None,
            "function_call": None, "tool_calls": None, "reasoning_content": None, "name": None,
            "tool_call_id": None,
        },
        {
            "role": "assistant",
            "tool_calls": [{"function": {"name": "f", "arguments": {"place": "Oslo"}}}],
        },
    ],
)  # fmt: skip
def test_what_is_known_goes_upstream_as_it_came(message: dict[str, object]) -> None:
    """OpenAI's fields, SGLang's, and an answer with its nulls."""
    assert read(message) == [message]


def test_an_answer_of_weir_itself_is_taken_back() -> None:
    """Clients send the assistant's message back as it came, streamed or whole."""
    assembly = ChoiceAssembly(0, chat=True)
    for delta in (
        {"role": "assistant", "content": "a", "reasoning_content": "b"},
        {"tool_calls": [{"index": 0, **CALL}], "refusal": "no", "annotations": []},
    ):
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        assembly.add(json.dumps({"choices": [choice]}).encode())
    message = assembly.choice()["message"]
    assert isinstance(message, dict)
    sent = read(message)[0]
    assert sent == {name: value for name, value in message.items() if name != "annotations"}


def test_what_only_a_client_reads_is_not_passed_on() -> None:
    """OpenAI's SDKs add what they read out of an answer and send it back. It may be any JSON, an
    engine's controls among it."""
    function = {"name": "f", "arguments": "{}", "parsed_arguments": {"rid": 1}}
    call: dict[str, Any] = {**CALL, "function": function}
    message = {
        "role": "assistant", "content": "{}", "tool_calls": [call], "parsed": {"rid": 1},
        "annotations": [{"type": "url_citation", "url_citation": {"url": "http://a"}}],
    }  # fmt: skip
    kept = {"role": "assistant", "content": "{}", "tool_calls": [CALL]}
    assert read(message) == [kept]
    for name in ("parsed", "annotations"):
        assert read({**kept, name: None}) == [kept]
    call["function"]["parsed_arguments"] = None
    assert read({**kept, "tool_calls": [call]}) == [kept]


class River(BaseModel):
    """What an answer is parsed into."""

    km: int


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("dumped", [False, True])
def test_an_answer_that_the_sdk_parsed_is_taken_back(*, dumped: bool) -> None:
    """`chat.completions.parse`, with a schema and tools; then its message sent back."""
    upstream: list[Any] = []

    def weir(request: httpx2.Request) -> httpx2.Response:
        forward = read_request("chat", request.content, {}).forward
        upstream.append({name: json.loads(bytes(raw)) for name, raw in forward.items()})
        answer = {
            "role": "assistant", "content": '{"km":1}', "reasoning_content": None,
            "tool_calls": [{**CALL, "function": {"name": "f", "arguments": '{"km":1}'}}],
        }  # fmt: skip
        choice = {"index": 0, "message": answer, "finish_reason": "stop", "logprobs": None}
        shown = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
        return httpx2.Response(200, json={**shown, "choices": [choice]})

    transport = httpx2.Client(transport=httpx2.MockTransport(weir))
    client = openai.OpenAI(base_url="http://weir/v1", api_key="k", http_client=transport)
    tools = [openai.pydantic_function_tool(River, name="f")]
    parse = client.chat.completions.parse
    message: Any = (
        parse(model="m", messages=[ASK], tools=tools, response_format=River)  # type: ignore[list-item]
        .choices[0]
        .message
    )
    assert message.parsed.km == message.tool_calls[0].function.parsed_arguments.km == 1
    parse(model="m", messages=[ASK, message.model_dump() if dumped else message])  # type: ignore[list-item]
    assert set(upstream[0]) == {"messages", "tools", "response_format"}
    echoed = upstream[1]["messages"][1]
    assert echoed["content"] == '{"km":1}'
    assert echoed["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"km":1}'}
    assert "parsed" not in echoed


@pytest.mark.parametrize("name", ["audio", "function_call"])
def test_what_no_engine_reads_is_refused(name: str) -> None:
    """SGLang would drop it unread."""
    with pytest.raises(InvalidRequest) as caught:
        read({"role": "assistant", "content": "a", name: {"id": "secret"}})
    assert caught.value.param == f"messages[1].{name}"
