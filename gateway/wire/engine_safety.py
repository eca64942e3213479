"""What is well-formed and would hurt the engine, and with it every other tenant, all the same.

Seen on SGLang 0.5.23: a stop token id outside the vocabulary, together with `min_tokens`, ends its
scheduler; a grammar of a hundred thousand words compiles for a minute, and others' tokens wait.
"""

from collections.abc import Mapping

import msgspec

from gateway.errors import InvalidRequest, UnsupportedParameter
from gateway.wire.bodies import ChatBody, CompletionBody

GRAMMAR_BYTES_MAX = 64 * 1024
TOOLS_BYTES_MAX = 256 * 1024
BYTES_MAX = {
    **dict.fromkeys(("regex", "ebnf", "json_schema", "response_format"), GRAMMAR_BYTES_MAX),
    "tools": TOOLS_BYTES_MAX,
}
"""How large a field may be that an engine compiles; tools become a grammar where one is forced."""


def refuse_harmful(asked: ChatBody | CompletionBody, fields: Mapping[str, msgspec.Raw]) -> None:
    """Raises InvalidRequest, UnsupportedParameter, naming the field."""
    for name, bytes_max in BYTES_MAX.items():
        if name in fields and len(bytes(fields[name])) > bytes_max:
            raise InvalidRequest(f"{name} may have at most {bytes_max} bytes", param=name)
    if asked.stop_token_ids and asked.min_tokens:
        raise UnsupportedParameter(
            "stop_token_ids cannot be combined with min_tokens", param="stop_token_ids"
        )
