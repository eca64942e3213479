"""make_checkpoint.py GGUF FOLDER: a checkpoint that SGLang loads, from a GGUF file.

Run by the Python of SGLang's environment. The folder appears whole or not at all.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig


def make_checkpoint(gguf: Path, folder: Path) -> None:
    """Write weights (16 bit), configuration, tokenizer and chat template of `gguf` to `folder`."""
    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    tokenizer = AutoTokenizer.from_pretrained(**source)
    model = AutoModelForCausalLM.from_pretrained(
        **source, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(dir=folder.parent, prefix=folder.name))
    try:
        tokenizer.save_pretrained(making)
        model.to(torch.bfloat16).save_pretrained(making)
        making.rename(folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)


if __name__ == "__main__":
    make_checkpoint(Path(sys.argv[1]), Path(sys.argv[2]))
