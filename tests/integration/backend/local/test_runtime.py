"""The engine library itself, as this code relies on it."""

import importlib.metadata
import json
import subprocess
import sys

PROGRAM = """
import json, sys
from backend.local.chat_template import render
from backend.local.model_file import find_model
from backend.local.runtime import Runtime
from backend.sglang_http.engine import GenerationRequest, Message, Prompt, Sampling

runtime = Runtime(find_model(), threads=1, max_running=1)
counts = []
for text, regex in json.load(sys.stdin):
    prompt = Prompt(render([Message("user", text)], continue_final=False), ())
    sampling = Sampling(20, temperature=1.0, regex=regex)
    chunks = list(runtime.generate(GenerationRequest("r", prompt, sampling, stream=True)))
    counts.append([len(chunks), chunks[-1].usage.completion_tokens,
                   chunks[-1].usage.prompt_tokens - len(runtime.tokenise(prompt.text))])
json.dump(counts, sys.stdout)
"""


def test_a_chunk_is_a_token() -> None:
    """Every token is a chunk, in any script and under a grammar that forces several at once; so
    what was handed out before an abort is counted exactly. Prompts are counted alike."""
    asked = [
        ("Write emoji: 😀🐈🌊", None),
        ("Write math symbols ∑∫√ and → arrows", None),
        ("Напиши по-русски", None),
        ("x", "(😀|🐈){4}"),
        ("x", "forced text without any choice( [0-9])+"),
    ]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    counts = json.loads(done.stdout)
    assert len(counts) == len(asked)
    for chunks, completion_tokens, prompt_difference in counts:
        assert chunks == completion_tokens
        assert prompt_difference == 0


def test_measured_release() -> None:
    """What is relied on was measured on this release; another one is to be measured again."""
    assert importlib.metadata.version("mistralrs") == "0.9.5"
