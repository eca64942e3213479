"""What only the engine notices: its refusals in OpenAI's shape, with nothing of its own in them."""

from typing import Any

import pytest
from sglang_server import Behind

SECRET = "the-duck-flies-at-midnight"
Json = dict[str, Any]


def schema(inner: Json) -> Json:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": inner}}


REFUSED: dict[str, Json] = {
    "a schema's type": {"response_format": schema({"type": SECRET})},
    "a schema's reference": {"response_format": schema({"$ref": f"#/{SECRET}"})},
    "a regular expression": {"regex": f"({SECRET}"},
    "a grammar": {"ebnf": f"root ::= {SECRET}"},
    "a tool without a function": {"tools": [{"type": "function", "function": SECRET}]},
    "a tool's parameters": {
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": SECRET}}}],
    },
    "a tool that is not there": {
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "tool_choice": {"type": "function", "function": {"name": SECRET}},
    },
    "a token's name": {"logit_bias": {SECRET: 1}},
    "a token beyond the vocabulary": {"logit_bias": {"999999": 1}},
    "a format": {"response_format": {"type": SECRET}},
    "a role": {"messages": [{"role": SECRET, "content": "x"}]},
    "an effort": {"reasoning_effort": SECRET},
}
OF_THE_SERVER = (b"/", b"\\\\", b".py", b".cc", b"sglang", b"xgrammar", b"pydantic", b"File")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", REFUSED)
async def test_a_refusal_is_openais_and_tells_nothing(
    main: Behind, name: str, stream: bool
) -> None:
    """A status, a kind and at most a field's name: no path, no input. Nothing stays held."""
    reply = main.weir.chat(stream=stream, **{"max_tokens": 2, **REFUSED[name]})
    assert reply.status == 400, reply.raw
    assert reply.error["type"] == "invalid_request_error"
    assert reply.error["code"] == "invalid_value"
    assert reply.error["message"]
    named = str(reply.error["param"] or "").partition(".")[0].partition("[")[0]
    assert named in ("", *REFUSED[name])
    assert SECRET.encode() not in reply.raw
    assert not [word for word in OF_THE_SERVER if word in reply.raw]
    assert main.weir.leases() == 0
    rows = await main.weir.sql("SELECT * FROM usage_records WHERE tenant_id = $1", main.weir.tenant)
    assert all(row["outcome"] == "refused" and row["output_tokens"] == 0 for row in rows)
