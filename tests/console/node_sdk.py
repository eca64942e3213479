"""OpenAI's Node SDK, unmodified, in one Node process for many calls."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sdk.seen import Call, Seen

HERE = Path(__file__).resolve().parent
NODE_MAJOR_MIN = 20


class NodeUnusable(Exception):
    """There is no Node, or it cannot be used; the message says what is needed, in one line."""


def node() -> str:
    """The path of Node. Raises NodeUnusable."""
    found = shutil.which("node")
    wanted = f"these tests need Node {NODE_MAJOR_MIN} or later, with npm"
    if found is None or shutil.which("npm") is None:
        raise NodeUnusable(f"{wanted}: not found in PATH")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    major = said.stdout.strip().removeprefix("v").partition(".")[0]
    if not major.isdigit() or int(major) < NODE_MAJOR_MIN:
        raise NodeUnusable(f"{wanted}: {found} is {said.stdout.strip() or 'broken'}")
    return found


def install() -> None:
    """Fill `node_modules` from the lock file, where it is missing or another's. Raises
    NodeUnusable."""
    if _installed():
        return
    npm = shutil.which("npm") or "npm"
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise NodeUnusable(f"npm ci failed in tests/console: {last}")


def _installed() -> bool:
    """Whether every package of the lock file is there, in its version."""
    wanted, there = HERE / "package-lock.json", HERE / "node_modules" / ".package-lock.json"
    return there.exists() and _versions(there) == _versions(wanted)


def _versions(path: Path) -> dict[str, str]:
    packages: dict[str, dict[str, Any]] = json.loads(path.read_text())["packages"]
    return {name: each["version"] for name, each in packages.items() if name}


class NodeSdk:
    """The running process. `call` is what `sdk.seen.Caller` promises."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def call(self, call: Call) -> Seen:
        """One call."""
        writer, reader = self._process.stdin, self._process.stdout
        assert writer is not None
        assert reader is not None
        writer.write(json.dumps(asdict(call)) + "\n")
        writer.flush()
        line = reader.readline()
        assert line, "the Node process has ended; its stderr says why"
        return Seen(**json.loads(line))


@contextmanager
def node_sdk() -> Iterator[NodeSdk]:
    """Node with the SDK, until the block ends. Raises NodeUnusable."""
    path = node()
    install()
    process = subprocess.Popen(
        [path, str(HERE / "run.mjs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield NodeSdk(process)
    finally:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
