"""The model's chat template."""

from backend.local.chat_template import render
from backend.sglang_http.engine import Message


def test_default_system_message() -> None:
    """Without a system message the model's own one comes first."""
    assert render([Message("user", "hi")], continue_final=False) == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
        "<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    )


def test_turns() -> None:
    """Turns stand in order, and a given system message replaces the default."""
    messages = [Message("system", "s"), Message("user", "u"), Message("assistant", "a")]
    assert render(messages, continue_final=False) == (
        "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nu<|im_end|>\n"
        "<|im_start|>assistant\na<|im_end|>\n<|im_start|>assistant\n"
    )
    assert render(messages, continue_final=True) == (
        "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\na"
    )
