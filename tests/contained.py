"""A process as a container would have it, by the kernel's own means: a root file system that cannot
be written, an empty /tmp, one folder of volumes, another user, no capabilities, no way to more.

Where the kernel lends no mount namespace (macOS, some hardened systems) `CONTAINED` is false and
the process runs as it is.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_ROOT = os.geteuid() == 0
_UNSHARE = ["unshare", "--mount"]
_UNSHARE += [] if _ROOT else ["--user", "--map-current-user", "--keep-caps"]
_CONFINE = """
set -e
mount --make-rprivate /
mount --bind "$1" /opt
mount --bind "$2" /mnt
mount --bind "$3" /srv
mount --bind "$4" /media
cut -d' ' -f5 /proc/self/mountinfo | while read -r place; do
  case $place in
    /proc*|/sys*|/dev*|/mnt) ;;
    *) mount -o remount,bind,ro "$place" 2> /dev/null || true ;;
  esac
done
mount -t tmpfs -o size=256m,mode=1777 tmpfs /tmp
cd /
shift 4
exec "$@"
"""


def _possible() -> bool:
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    tried = subprocess.run(
        [*_UNSHARE, "mount", "-t", "tmpfs", "tmpfs", "/tmp"],  # noqa: S108 - in a namespace
        capture_output=True,
        check=False,
    )
    return tried.returncode == 0


CONTAINED = _possible()


@dataclass(frozen=True)
class Container:
    """Where a contained process finds things."""

    image: Path
    volumes: Path
    packages: Path

    @property
    def image_seen(self) -> Path:
        """The image's folder as the process sees it, not to be written."""
        return Path("/opt") if CONTAINED else self.image

    @property
    def volumes_seen(self) -> Path:
        """Where it may write."""
        return Path("/mnt") if CONTAINED else self.volumes

    @property
    def packages_seen(self) -> Path:
        """This environment's packages."""
        return Path("/srv") if CONTAINED else self.packages

    @property
    def python_seen(self) -> Path:
        """The folder of the Python below this environment, which may lie in a folder of root's."""
        return Path("/media") if CONTAINED else Path(sys.base_prefix)

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """`given`, and where that Python finds its own library."""
        return {**given, "LD_LIBRARY_PATH": str(self.python_seen / "lib")}

    def volume(self, name: str, uid: int) -> Path:
        """A new volume of that user's own, as the process sees it."""
        folder = self.volumes / name
        folder.mkdir(mode=0o700, parents=True)
        if _ROOT:
            os.chown(folder, uid, uid)
        return self.volumes_seen / name

    def command(self, uid: int, words: Sequence[str]) -> list[str]:
        """What to execute so that `words` run in it as that user."""
        if not CONTAINED:
            return list(words)
        user = ["--reuid", str(uid), "--regid", str(uid), "--clear-groups"] if _ROOT else []
        less = ["--bounding-set=-all"] if _ROOT else []
        confined = ["setpriv", *user, "--inh-caps=-all", *less, "--no-new-privs", *words]
        seen = (self.image, self.volumes, self.packages, sys.base_prefix)
        folders = [str(folder) for folder in seen]
        return [*_UNSHARE, "sh", "-c", _CONFINE, "confine", *folders, *confined]

    def start(
        self, uid: int, words: Sequence[str], environment: Mapping[str, str], log: Path
    ) -> subprocess.Popen[bytes]:
        """Start it; its output is appended to `log`. Its process id is the program's own."""
        with log.open("ab") as output:
            return subprocess.Popen(
                self.command(uid, words),
                env=self.environment(environment),
                stdout=output,
                stderr=output,
            )

    def run(
        self, uid: int, words: Sequence[str], environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            self.command(uid, words),
            env=self.environment(environment),
            capture_output=True,
            text=True,
            check=False,
        )
