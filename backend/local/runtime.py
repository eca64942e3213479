"""The engine library behind a narrow, blocking interface: load, tokenise, generate.

What it was measured to do (0.9.5, CPU) shapes everything here:
- Prompts and decoding are three times faster requantized to Q8_0 than in the file's own Q4_1.
- A second thread of computation doubles the speed on an idle machine and slows it down more than
  tenfold on a busy one (its threads wait by spinning), so it gets one unless asked otherwise.
- Its prefix cache never evicts on CPU (it grew by 11 MB a prompt), so it is off: nothing is ever
  cached, and no tenant's prompt can show in another's timing.
- `tokenize_text` waits for the step that runs, so tokenising has a second, idle instance.
- A chunk is a token only where log probabilities are asked for (otherwise it hands out what
  belongs to one character together, and what a grammar forces at once), so they always are.
- Its own stop strings match whole tokens only, so they are never given to it.
"""

import importlib
import os
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from backend.local.chat_template import RAW_TEMPLATE
from backend.local.model_file import ModelFile
from backend.sglang_http.engine import GenerationRequest
from backend.sglang_http.generation import TokenLogprob, Usage
from backend.sglang_http.refusals import EngineFailure, engine_broke

if TYPE_CHECKING:
    import mistralrs

REQUANTIZED = "Q8_0"
CONTEXT_TOKENS = 8192
MIN_P_MAX = 0.999
_INVALID_GRAMMAR = ("Invalid grammar", "Failed to parse JSON schema")


@dataclass(frozen=True, slots=True)
class Chunk:
    """One token. Its text is empty while a character is incomplete; the last chunk has the finish
    reason and the engine's own usage."""

    text: str
    logprob: TokenLogprob | None = None
    finish_reason: str | None = None
    usage: Usage | None = None


class Runtime:
    """One loaded model. Every method blocks; `generate` may run in several threads at once."""

    def __init__(self, model: ModelFile, *, threads: int, max_running: int) -> None:
        """Load. Raises ValueError or OSError where the file cannot be used."""
        # Read by the library when it is imported.
        os.environ["RAYON_NUM_THREADS"] = str(threads)
        os.environ.setdefault("RUST_LOG", "off")
        self._library = importlib.import_module("mistralrs")
        self._calls = threading.Lock()
        self._tokenising = threading.Lock()
        with tempfile.TemporaryDirectory() as folder:
            template = Path(folder, "raw.jinja")
            template.write_text(RAW_TEMPLATE)
            self._runner = self._load(model, str(template), REQUANTIZED, max_running)
            self._tokenizer = self._load(model, str(template), None, 1)

    def tokenise(self, text: str) -> list[int]:
        """The text's tokens, special ones recognised."""
        with self._tokenising:
            return list(self._tokenizer.tokenize_text(text, False, None))

    def generate(self, request: GenerationRequest) -> Iterator[Chunk]:
        """Run one request. Only one request may be short of its first chunk at a time: two prompts
        in one step break both. Dropping the iterator ends the generation within a step.

        Raises EngineFailure.
        """
        wanted = self._library_request(request)
        try:
            # From several threads at once the library can refuse with "Already borrowed".
            with self._calls:
                stream = cast(
                    "Iterator[mistralrs.ChatCompletionChunkResponse]",
                    self._runner.send_chat_completion_request(wanted),
                )
            for raw in stream:
                yield _chunk(raw, request.sampling.top_logprobs)
        except ValueError as error:
            if str(error).startswith(_INVALID_GRAMMAR):
                message = "The regex or JSON schema is not valid."
                raise EngineFailure(message, status=400, event_kind="BadRequestError") from None
            raise engine_broke() from error

    def _load(
        self, model: ModelFile, template: str, requantize: str | None, max_running: int
    ) -> "mistralrs.Runner":
        which = self._library.Which.GGUF(
            quantized_model_id=model.folder, quantized_filename=model.filename
        )
        runner: mistralrs.Runner = self._library.Runner(
            which=which,
            max_seqs=max_running,
            prefix_cache_n=0,
            jinja_explicit=template,
            in_situ_quant=requantize,
        )
        return runner

    def _library_request(self, request: GenerationRequest) -> "mistralrs.ChatCompletionRequest":
        sampling = request.sampling
        greedy = not sampling.temperature
        grammar = sampling.regex or sampling.json_schema
        wanted: mistralrs.ChatCompletionRequest = self._library.ChatCompletionRequest(
            messages=request.prompt.text,
            model="default",
            stream=True,
            max_tokens=sampling.max_tokens,
            temperature=sampling.temperature,
            top_p=None if greedy else sampling.top_p,
            top_k=None if greedy else sampling.top_k,
            min_p=None if greedy else _min_p(sampling.min_p),
            frequency_penalty=sampling.frequency_penalty or None,
            presence_penalty=sampling.presence_penalty or None,
            repetition_penalty=(
                None if sampling.repetition_penalty == 1.0 else sampling.repetition_penalty
            ),
            logit_bias=sampling.logit_bias,
            logprobs=True,
            top_logprobs=sampling.top_logprobs or None,
            grammar=grammar,
            grammar_type=None if grammar is None else "regex" if sampling.regex else "json_schema",
            ignore_eos=sampling.ignore_eos,
        )
        return wanted


def _min_p(asked: float | None) -> float | None:
    """The library takes 1, which leaves the likeliest token alone, for none at all."""
    return None if asked is None else min(asked, MIN_P_MAX)


def _chunk(raw: "mistralrs.ChatCompletionChunkResponse", top_logprobs: int | None) -> Chunk:
    choice = raw.choices[0]
    shown = None if top_logprobs is None else choice.logprobs
    return Chunk(
        text=choice.delta.content or "",
        logprob=None if shown is None else _logprob(shown, top_logprobs or 0),
        finish_reason=choice.finish_reason,
        usage=None if raw.usage is None else _usage(raw.usage),
    )


def _usage(raw: "mistralrs.Usage") -> Usage:
    details = getattr(raw, "prompt_tokens_details", None)
    cached = None if details is None else int(details.cached_tokens)
    return Usage(raw.prompt_tokens, raw.completion_tokens, cached)


def _logprob(raw: "mistralrs.ResponseLogprob", count: int) -> TokenLogprob:
    # The library hands out more than it was asked for.
    top = tuple(
        TokenLogprob(entry.bytes, list(entry.bytes.encode()), entry.logprob)
        for entry in raw.top_logprobs
        if entry.bytes is not None
    )[:count]
    # The library hands out bytes, whatever its stub says.
    spelled = None if raw.bytes is None else list(raw.bytes)
    return TokenLogprob(raw.token, spelled, raw.logprob, top)
