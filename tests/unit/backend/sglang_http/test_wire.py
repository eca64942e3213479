"""Request bodies that do not parse."""

import pytest

from backend.sglang_http.refusals import Refused
from backend.sglang_http.wire import ChatBody, CompletionBody, decode


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"secret",
        b'{"messages":"secret"}',
        b'{"messages":[{"role":"user","content":"\xff"}]}',
        b'{"messages":[{"role":"secret","content":1}]}',
        b'{"messages":[],"model":["secret"]}',
        b'{"messages":' + b"[" * 100_000,
        b'{"messages":[],"n":129}',
    ],
)
def test_refused_without_the_input(raw: bytes) -> None:
    """A body that does not parse is refused without a word of what it said."""
    with pytest.raises(Refused) as refused:
        decode(raw, ChatBody)
    assert refused.value.status == 400
    assert "secret" not in refused.value.message


def test_prompt_forms() -> None:
    """A prompt is a text, texts, token ids, or lists of them."""
    for prompt in (b'"a"', b'["a","b"]', b"[1,2]", b"[[1],[2]]"):
        decode(b'{"prompt":' + prompt + b"}", CompletionBody)
    with pytest.raises(Refused, match="prompt"):
        decode(b'{"prompt":{"a":1}}', CompletionBody)
