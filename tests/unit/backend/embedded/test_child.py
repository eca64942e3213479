"""Children: what they inherit, what their failures say, and that they do not outlive us."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import servers

from backend.embedded import child
from backend.embedded.child import Launch, StartFailed, last_words, spawn, stop

PYTHON = sys.executable
SAY_ALL = """
import json, os
print(json.dumps({"environment": dict(os.environ), "folder": os.getcwd(),
                  "session": os.getsid(0) == os.getpid(), "umask": os.umask(0)}))
"""


def test_a_child_inherits_no_environment_and_leads_its_own_session(tmp_path: Path) -> None:
    """It sees exactly what it was given, and Ctrl-C at the terminal does not reach it."""
    launch = Launch(
        (PYTHON, "-c", SAY_ALL), tmp_path / "log", environment={"ONLY": "this"}, folder=tmp_path
    )
    assert spawn(launch).wait(10) == 0
    said = json.loads((tmp_path / "log").read_text())
    said["environment"].pop("LC_CTYPE", None)  # Python's own doing
    assert said["environment"] == {"ONLY": "this"}
    assert (said["folder"], said["session"], said["umask"]) == (str(tmp_path), True, 0o077)


def test_a_program_that_is_missing_is_one_line(tmp_path: Path) -> None:
    """The failure names the program."""
    with pytest.raises(StartFailed, match="cannot start /nowhere/program"):
        spawn(Launch(("/nowhere/program",), tmp_path / "log"))


def test_the_last_words_are_the_last_line_that_says_something(tmp_path: Path) -> None:
    """A failed start shows why, and where there is more to read."""
    log = tmp_path / "log"
    log.write_bytes(b"x" * 10_000 + b"\nFATAL: no \xff room\n\n")
    assert last_words(log) == f"FATAL: no � room (log: {log})"
    assert last_words(tmp_path / "none").startswith("it wrote nothing")


def test_a_long_log_is_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Restarts do not fill the disk: one older log is kept."""
    monkeypatch.setattr(child, "LOG_BYTES_MAX", 10)
    log = tmp_path / "log"
    log.write_text("older lines\n")
    assert spawn(Launch((PYTHON, "-c", "print('new')"), log)).wait(10) == 0
    assert log.read_text() == "new\n"
    assert (tmp_path / "log.1").read_text() == "older lines\n"


def test_a_child_that_will_not_stop_is_killed(tmp_path: Path) -> None:
    """Stopping ends with the process gone, whatever it thinks of the signal."""
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True)\n"
    started = spawn(Launch((PYTHON, "-c", deaf + "while True: time.sleep(9)"), tmp_path / "log"))
    while not (tmp_path / "log").read_text():
        assert started.poll() is None
    stop(started, signal.SIGTERM, timeout_s=0.05)
    assert started.returncode == -signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child to its launcher")
def test_a_killed_launcher_takes_its_children_along(tmp_path: Path) -> None:
    """kill -9 of the launcher leaves no orphan."""
    program = textwrap.dedent("""
        import sys, time
        from pathlib import Path
        from backend.embedded.child import Launch, spawn
        started = spawn(Launch((sys.executable, "-c", "import time; time.sleep(99)"),
                               Path(sys.argv[1])))
        print(started.pid, flush=True)
        time.sleep(99)
    """)
    launcher = subprocess.Popen(
        [PYTHON, "-c", program, str(tmp_path / "log")], stdout=subprocess.PIPE
    )
    assert launcher.stdout is not None
    pid = int(launcher.stdout.readline())
    launcher.kill()
    launcher.wait()
    # Where PID 1 reaps nobody it stays a zombie, which holds nothing.
    asyncio.run(servers.eventually(lambda: servers.process_state(pid) in (None, "Z")))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_another_account_loses_every_group_of_ours(tmp_path: Path) -> None:
    """A child of another user has none of the launcher's rights."""
    user, group = servers.nobody()
    launch = Launch(
        ("/bin/cat", "/proc/self/status"), tmp_path / "log", folder=Path("/"), account=(user, group)
    )
    assert spawn(launch).wait(10) == 0
    said = dict(line.split(":", 1) for line in (tmp_path / "log").read_text().splitlines())
    assert said["Uid"].split() == [str(user)] * 4
    assert said["Gid"].split() == [str(group)] * 4
    assert said["Groups"].split() == []
