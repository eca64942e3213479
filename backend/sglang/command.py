"""`weir backend sglang`: become SGLang, started as the gateway needs it."""

import os
import shutil
import subprocess
import sys
from typing import Any

import click

from backend.sglang.launch import LaunchRefused, SglangSettings, launch_arguments

HAS_SGLANG = "import importlib.util, sys; sys.exit(importlib.util.find_spec('sglang') is None)"
POSITIVE = click.IntRange(min=1)


@click.command()
@click.option("--model-path", required=True, help="Folder of the checkpoint, or its hub name.")
@click.option("--model", "served_model_name", required=True, help="Served model name.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(1, 65535), default=30000, show_default=True)
@click.option("--tensor-parallel-size", type=POSITIVE, default=1, show_default=True)
@click.option("--context-length", "context_tokens", type=POSITIVE, help="Default: the model's.")
@click.option(
    "--kv-fraction",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Of the GPU's memory, for weights and KV cache.",
)
@click.option("--kv-tokens", "kv_tokens_max", type=POSITIVE, help="At most so many in the cache.")
@click.option("--max-running-requests", type=POSITIVE)
@click.option("--max-queued-requests", type=click.IntRange(min=0), help="Default: no limit.")
@click.option("--chunked-prefill-tokens", type=POSITIVE)
@click.option("--precision", help="Of weights and activations: bfloat16, float16, float32.")
@click.option("--quantization", help="fp8, awq, gptq, ...")
@click.option("--kv-precision", help="Of the KV cache: bf16, fp8_e4m3, fp8_e5m2.")
@click.option("--device", help="cuda, cpu, ...  Default: what is there.")
@click.option("--tool-call-parser", help="How this model writes tool calls: qwen25, llama3, ...")
@click.option("--reasoning-parser", help="How this model marks its reasoning: qwen3, ...")
@click.option(
    "--python",
    "interpreter",
    default=sys.executable,
    metavar="PATH",
    help="Python of an environment that has SGLang.  Default: this one.",
)
@click.argument("extra", nargs=-1, type=click.UNPROCESSED)
def sglang(*, interpreter: str, extra: tuple[str, ...], **settings: Any) -> None:
    """SGLang on this machine's GPUs. What follows -- is passed on to it."""
    try:
        arguments = launch_arguments(SglangSettings(**settings), extra)
    except LaunchRefused as error:
        raise click.UsageError(str(error)) from None
    found = shutil.which(interpreter)
    if found is None:
        raise click.BadParameter(f"{interpreter} is no program", param_hint="--python")
    if subprocess.run([found, "-c", HAS_SGLANG], check=False).returncode != 0:
        raise click.ClickException(
            f"{interpreter} has no SGLang: install weir[sglang], or name another with --python"
        )
    sys.stdout.flush()
    os.execv(found, [found, "-m", "sglang.launch_server", *arguments])  # noqa: S606 - no shell
