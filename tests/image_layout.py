"""What deploy/docker/Dockerfile puts into an image, made here without a container engine.

Its steps are carried out as they stand but for two: packages are not downloaded, the installed
ones stand in (a link for each that the image's lock file names, and none for any other), and
nothing is done as root.
"""

import importlib.metadata
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from contained import Container

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = ROOT / "deploy/docker/Dockerfile"
IGNORED = ROOT / ".dockerignore"
LOCKS = ROOT / "deploy/docker"
PACKAGES = Path(str(importlib.metadata.distribution("aiohttp").locate_file("")))
"""Where the packages of this environment are."""


@dataclass(frozen=True)
class Instruction:
    """One line of the Dockerfile, continued ones joined."""

    stage: str
    word: str
    rest: str


def instructions() -> list[Instruction]:
    """The whole Dockerfile; what is before the first stage has the stage ''."""
    text = re.sub(r"(?m)^#.*\n", "", DOCKERFILE.read_text()).replace("\\\n", " ")
    found, stage = [], ""
    for line in filter(None, map(str.strip, text.splitlines())):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            stage = rest.rpartition(" AS ")[2].strip()
        found.append(Instruction(stage, word, " ".join(rest.split())))
    return found


def image_environment(target: str) -> dict[str, str]:
    """The variables of an image that is built for `target`, PATH left out."""
    lines = [each for each in instructions() if each.stage in ("runtime", target)]
    pairs = [pair for each in lines if each.word == "ENV" for pair in each.rest.split()]
    found = dict(pair.split("=", 1) for pair in pairs)
    return {name: value for name, value in found.items() if name != "PATH"}


def copied_sources() -> list[str]:
    """What is copied from this repository, by any stage."""
    copies = [each.rest.split() for each in instructions() if each.word == "COPY"]
    return [source for words in copies if "--from" not in words[0] for source in words[:-1]]


def locked(name: str) -> dict[str, str]:
    """The packages of a lock file of the images, and their versions, markers left out."""
    lines = (LOCKS / name).read_text().splitlines()
    pins = (line.split(";")[0].rstrip(" \\").split("==") for line in lines if "==" in line[:80])
    return {pin[0].strip(): pin[1].strip() for pin in pins if not pin[0].startswith(" ")}


def build_wheel(folder: Path) -> Path:
    """The wheel that the build stage makes, of nothing but what it copies."""
    source = folder / "src"
    source.mkdir(parents=True)
    for name in copied_sources():
        if name.startswith("deploy/"):
            continue
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, source / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, source / name)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "wheel")],
        cwd=source,
        check=True,
        capture_output=True,
    )
    (wheel,) = (folder / "wheel").glob("*.whl")
    return wheel


def lay_out(folder: Path, container: Container, locks: Sequence[str]) -> None:
    """Make the image's /opt/weir in `folder`, which is in the container's image, with links to the
    packages of these lock files."""
    seen_at = container.image_seen / folder.relative_to(container.image)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    home = container.python_seen / "bin"
    (folder / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\n")
    (python,) = folder.glob("bin/python3.*")
    python.unlink()
    python.symlink_to(home / python.name)
    with zipfile.ZipFile(build_wheel(folder.with_name(f"{folder.name}-build"))) as wheel:
        wheel.extractall(site)
    for name in _top_levels(locks):
        (site / name).symlink_to(container.packages_seen / name)
    script = folder / "bin/weir"
    script.write_text(
        f"#!{seen_at}/bin/python\nimport sys\nfrom gateway.cli import main\nsys.exit(main())\n"
    )
    script.chmod(0o755)


def _top_levels(locks: Sequence[str]) -> Iterator[str]:
    """Files and folders of the packages that these lock files name, where installed here."""
    found = set()
    for lock in locks:
        for name in locked(lock):
            try:
                files = importlib.metadata.files(name) or []
            except importlib.metadata.PackageNotFoundError:
                continue  # another platform's
            found |= {file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__")}
    yield from sorted(found)
