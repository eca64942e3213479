"""The chat template of SmolLM2, as its GGUF states it: ChatML with a default system message."""

from collections.abc import Sequence

from backend.sglang_http.engine import Message

DEFAULT_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
RAW_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
"""What the engine is given instead, so that it reads prompts exactly as they are rendered here."""


def render(messages: Sequence[Message], *, continue_final: bool) -> str:
    """The prompt for these messages, open for the assistant's answer; with `continue_final` the
    last message is the beginning of that answer."""
    closed = messages[:-1] if continue_final else messages
    parts = []
    if messages[0].role != "system":
        parts.append(_turn("system", DEFAULT_SYSTEM))
    parts += [_turn(message.role, message.content) for message in closed]
    parts.append("<|im_start|>assistant\n")
    if continue_final:
        parts.append(messages[-1].content)
    return "".join(parts)


def _turn(role: str, content: str) -> str:
    return f"<|im_start|>{role}\n{content}<|im_end|>\n"
