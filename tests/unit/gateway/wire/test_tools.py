"""Tools, which is called, and the form of an answer: only what is known, schemas but open."""

import json
from typing import Any

import pytest

from gateway.errors import InvalidRequest
from gateway.wire.request import read_request
from gateway.wire.tools import FORMAT_KINDS, ResponseFormat

SCHEMA = {"type": "object", "properties": {"rid": {"$ref": "http://a"}}, "x-mine": [1]}
FUNCTION = {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True}
TOOL = {"type": "function", "function": FUNCTION}
NAMED = {"type": "function", "function": {"name": "f"}}
JSON_SCHEMA = {"name": "a", "description": "b", "schema": SCHEMA, "strict": None}


def read(**fields: Any) -> Any:
    """The fields as they go upstream."""
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}
    forward = read_request("chat", json.dumps(body).encode(), {}).forward
    return {name: json.loads(bytes(forward[name])) for name in fields}


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [TOOL, {"function": {"name": "g"}}]},
        {"tool_choice": "auto"},
        {"tool_choice": "none"},
        {"tool_choice": "required"},
        {"tool_choice": NAMED},
        {"response_format": {"type": "text"}},
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema", "json_schema": JSON_SCHEMA}},
        {"response_format": {"json_schema": JSON_SCHEMA, "type": "json_schema"}},
        {
            "response_format": {
                "type": "structural_tag",
                "structures": [{"begin": "<a>", "schema": SCHEMA, "end": "</a>"}],
                "triggers": ["<a>"],
                "at_least_one": True,
            }
        },
        {"response_format": {"type": "structural_tag", "format": {"type": "any_text"}}},
    ],
)
def test_what_is_known_goes_upstream_as_it_came(fields: dict[str, Any]) -> None:
    """OpenAI's forms and SGLang's."""
    assert read(**fields) == fields


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{**TOOL, "rid": "secret"}]}, "tools[0].rid"),
        ({"tools": [{**TOOL, "defer_loading": True}]}, "tools[0].defer_loading"),
        ({"tools": [{"function": {**FUNCTION, "key_order": []}}]}, "tools[0].function.key_order"),
        ({"tool_choice": {**NAMED, "rid": "secret"}}, "tool_choice.rid"),
        (
            {"tool_choice": {"function": {"name": "f", "rid": "secret"}}},
            "tool_choice.function.rid",
        ),
        ({"response_format": {"type": "text", "rid": "secret"}}, "response_format.rid"),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {**JSON_SCHEMA, "rid": "secret"},
                }
            },
            "response_format.json_schema.rid",
        ),
        (
            {
                "response_format": {
                    "type": "structural_tag",
                    "triggers": [],
                    "structures": [{"begin": "", "end": "", "rid": "secret"}],
                }
            },
            "response_format.structures[0].rid",
        ),
        ({"stream": True, "stream_options": {"rid": "secret"}}, "stream_options.rid"),
    ],
)
def test_an_unknown_field_is_named_by_its_path(fields: dict[str, Any], param: str) -> None:
    """INV-12: an engine's control is no tenant's, wherever it stands; no value is quoted."""
    with pytest.raises(InvalidRequest) as caught:
        read(**fields)
    assert (caught.value.code, caught.value.param) == ("unsupported_parameter", param)
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{"type": "custom"}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0]"),
        ({"tools": ["secret"]}, "tools[0]"),
        ({"tool_choice": "secret"}, "tool_choice"),
        ({"response_format": {"type": "secret"}}, "response_format.type"),
        ({"response_format": {}}, "response_format"),
        ({"response_format": "secret"}, "response_format"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
    ],
)
def test_another_kind_is_refused(fields: dict[str, Any], param: str) -> None:
    """A kind that no engine has is the gateway's 400."""
    with pytest.raises(InvalidRequest) as caught:
        read(**fields)
    assert (caught.value.code, caught.value.param) == ("invalid_value", param)
    assert "secret" not in caught.value.message


def test_the_kinds_that_are_told_are_those_that_are_taken() -> None:
    """Each kind has a struct, and each struct is told of."""
    kinds = ResponseFormat.__args__
    assert {kind.__struct_config__.tag for kind in kinds} == set(FORMAT_KINDS)
