"""Rows: SGLang's extensions through `extra_body`, and what the gateway refuses for every engine."""

from sdk import checks
from sdk.rows import NOT_SENT, NoEffect, Passes, Refused, Row

_PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def _image(url: str) -> dict[str, object]:
    parts = [{"type": "text", "text": "What is it?"}]
    parts.append({"type": "image_url", "image_url": {"url": url}})  # type: ignore[dict-item]
    return {"messages": [{"role": "user", "content": parts}]}


def _extra(**fields: object) -> dict[str, object]:
    return {"extra_body": fields}


def _everywhere(
    param: str | None, code: str = "unsupported_parameter", status: int = 400
) -> tuple[Refused, Refused, Refused]:
    refused = Refused(param, code, status)
    return refused, refused, refused


ROWS = (
    Row(
        "top_k",
        '`extra_body={"top_k": 1}`: always the likeliest token',
        {"temperature": 1, **_extra(top_k=1)},
        simulated=NoEffect("its text is not sampled"),
        check=checks.same_text,
        variants=({}, {}),
        hosted=NOT_SENT,
    ),
    Row(
        "min_p",
        '`extra_body={"min_p": 1}`: always the likeliest token',
        {"temperature": 1, **_extra(min_p=1)},
        simulated=NoEffect("its text is not sampled"),
        check=checks.same_text,
        variants=({}, {}),
        hosted=NOT_SENT,
    ),
    Row(
        "regex",
        '`extra_body={"regex": ...}`',
        _extra(regex="(yes|no)"),
        simulated=Refused("regex"),
        check=checks.matches("yes|no"),
        hosted=NOT_SENT,
    ),
    Row(
        "ebnf",
        '`extra_body={"ebnf": ...}`',
        _extra(ebnf='root ::= "yes" | "no"'),
        local=Refused("ebnf"),
        simulated=Refused("ebnf"),
        check=checks.matches("yes|no"),
        hosted=NOT_SENT,
    ),
    Row(
        "repetition_penalty",
        '`extra_body={"repetition_penalty": 2}`',
        {"temperature": 0, "max_tokens": 24, **_extra(repetition_penalty=2)},
        simulated=Refused("repetition_penalty"),
        check=checks.differs,
        variants=({}, {"extra_body": {}}),
        hosted=NOT_SENT,
    ),
    Row(
        "min_tokens",
        '`extra_body={"min_tokens": ...}`',
        _extra(min_tokens=16) | {"max_tokens": 16},
        local=Refused("min_tokens"),
        check=checks.cut_at(16),
        hosted=NOT_SENT,
    ),
    Row(
        "stop_token_ids",
        '`extra_body={"stop_token_ids": [...]}`',
        _extra(stop_token_ids=[28]),
        local=Refused("stop_token_ids"),
        simulated=Refused("stop_token_ids"),
        hosted=NOT_SENT,
    ),
    Row(
        "json_schema, completions",
        '`completions.create(extra_body={"json_schema": ...})`',
        {"max_tokens": 60, **_extra(json_schema='{"enum": ["big", "small"]}')},
        simulated=Refused("json_schema"),
        check=checks.matches('"(big|small)"'),
        kind="completions",
        hosted=NOT_SENT,
    ),
    Row(
        "json_schema, chat",
        '`chat.completions.create(extra_body={"json_schema": ...})`: use `response_format`',
        _extra(json_schema='{"enum": ["big", "small"]}'),
        *_everywhere("json_schema"),
        hosted="refused",
    ),
    *(
        Row(
            f"privileged: {name}",
            f"`extra_body={{{name!r}: ...}}`".replace("'", '"'),
            {"extra_body": {name: value}},
            *_everywhere(name),
            hosted="refused",
        )
        for name, value in (
            ("rid", "mine"),
            ("priority", 100),
            ("cache_salt", "theirs"),
            ("lora_path", "x"),
            ("ignore_eos", True),
        )
    ),
    Row(
        "unknown field",
        "a field that nobody knows",
        _extra(frobnicate=1),
        *_everywhere("frobnicate"),
        hosted="refused",
    ),
    Row(
        "audio",
        '`modalities=["text", "audio"]`',
        {"modalities": ["text", "audio"]},
        *_everywhere("modalities"),
        hosted="refused",
    ),
    Row(
        "best_of",
        "`completions.create(best_of=3)`",
        {"best_of": 3},
        *_everywhere("best_of"),
        hosted="refused",
        kind="completions",
    ),
    Row(
        "max_completion_tokens, completions",
        '`completions.create(extra_body={"max_completion_tokens": ...})`',
        _extra(max_completion_tokens=5),
        *_everywhere("max_completion_tokens"),
        hosted="refused",
        kind="completions",
    ),
    Row(
        "image as data",
        '`{"type": "image_url", "image_url": {"url": "data:..."}}`',
        _image(_PIXEL),
        local=Refused("messages", "invalid_value"),
        simulated=Refused("messages", "invalid_value"),
        sglang=Passes("where the model sees"),
    ),
    Row(
        "image by URL",
        '`{"type": "image_url", "image_url": {"url": "https://..."}}`',
        _image("https://example.com/river.png"),
        *_everywhere("messages[0].content[1].image_url.url", "invalid_value"),
        hosted="refused",
    ),
    Row(
        "unknown field within",
        "a field that is not known within a message, a part, a tool or a form: `param` is its path",
        {"messages": [{"role": "user", "content": "Rivers?", "rid": "x"}]},
        *_everywhere("messages[0].rid"),
        hosted="refused",
    ),
    Row(
        "models.retrieve",
        "`models.retrieve(model)`",
        {},
        *_everywhere(None, "not_found", 404),
        hosted="refused",
        kind="model",
        forms=("whole",),
    ),
)
