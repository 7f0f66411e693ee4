"""The machines that packages are made for: what each is called by whom, and where its libraries lie.

A machine that this one is not takes Debian's cross compiler (`g++-aarch64-linux-gnu`), an emulator (`qemu-user-static`), and
LLVM's archives out of Debian's packages for it, which are downloaded and unpacked, not installed.
"""

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# Debian's packages that have what is linked: LLVM, its linker, and the libraries that both take.
PACKAGES = ["llvm-22-dev", "libpolly-22-dev", "liblld-22-dev", "liblld-22", "zlib1g-dev", "libzstd-dev", "libffi-dev"]


@dataclass(frozen=True)
class Machine:
    """A machine by its name in wheels and tarballs, and with Debian's."""

    name: str
    debian: str
    loader: str

    @property
    def triple(self) -> str:
        """Rust's and LLVM's name."""
        return f"{self.name}-unknown-linux-gnu"

    @property
    def gnu(self) -> str:
        """The prefix of Debian's tools, and the name of its folder of libraries."""
        return f"{self.name}-linux-gnu"

    def is_here(self) -> bool:
        return platform.machine() == self.name

    def folder(self, dist: Path) -> Path:
        """Where what is built for it lies."""
        return dist if self.is_here() else dist / self.name

    def runner(self) -> list[str]:
        """The words before a program of it that run it here."""
        return [] if self.is_here() else [f"qemu-{self.name}-static", "-L", f"/usr/{self.gnu}"]

    def emulated(self) -> None:
        """Has the kernel run programs of this machine by the emulator, in chroots too (as root)."""
        known = Path("/proc/sys/fs/binfmt_misc")
        if self.is_here() or (known / f"qemu-{self.name}").exists():
            return
        if not (known / "register").exists():
            subprocess.run(["mount", "-t", "binfmt_misc", "none", known], check=True)
        if not (known / f"qemu-{self.name}").exists():
            (known / "register").write_text(Path(f"/usr/lib/binfmt.d/qemu-{self.name}.conf").read_text())

    def root(self, dist: Path) -> Path:
        """The folder that holds Debian's files for it: `/`, or one into which they are unpacked."""
        if self.is_here():
            return Path("/")
        root = self.folder(dist) / "debian"
        if not root.is_dir():
            for tool in (f"{self.gnu}-g++", self.runner()[0]):
                if not shutil.which(tool):
                    sys.exit(f"release: {tool} is missing; tools/setup g++-{self.gnu} qemu-user-static installs what is needed")
            scratch = self.folder(dist) / "packages"
            unpacked(self.debian, scratch)
            (scratch / "root").rename(root)
            shutil.rmtree(scratch)
        return root

    def llvm(self, dist: Path) -> Path:
        """LLVM's folder there."""
        return self.root(dist) / "usr/lib/llvm-22"

    def environment(self, dist: Path) -> dict[str, str]:
        """What llvm-sys is told: a program that answers as llvm-config does, with the folders of this machine's LLVM."""
        if self.is_here():
            return {}
        prefix = self.folder(dist) / "llvm-config"
        config = prefix / "bin/llvm-config"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(f'#!/bin/sh\nset -e\nsaid=$(llvm-config-22 "$@")\nprintf "%s\\n" "$said" | sed "s:/usr/lib/llvm-22:{self.llvm(dist)}:g"\n')
        config.chmod(0o755)
        return {"LLVM_SYS_221_PREFIX": str(prefix)}


MACHINES = {m.name: m for m in (Machine("x86_64", "amd64", "ld-linux-x86-64.so.2"), Machine("aarch64", "arm64", "ld-linux-aarch64.so.1"))}


def unpacked(architecture: str, scratch: Path) -> None:
    """Downloads PACKAGES for an architecture with the sources that apt has here, and unpacks them into `scratch/root`."""
    shutil.rmtree(scratch, ignore_errors=True)
    for folder in ("state/lists/partial", "cache/archives/partial", "root"):
        (scratch / folder).mkdir(parents=True)
    config = scratch / "apt.conf"
    settings = [f'APT::Architecture "{architecture}"', f'APT::Architectures {{ "{architecture}"; }}']
    settings += [f'Dir::State "{scratch}/state"', 'Dir::State::status "/dev/null"', f'Dir::Cache "{scratch}/cache"']
    settings += ['APT::Sandbox::User "root"']
    config.write_text("".join(f"{setting};\n" for setting in settings))
    environment = {**os.environ, "APT_CONFIG": str(config)}
    subprocess.run(["apt-get", "update", "-qq"], check=True, env=environment)
    subprocess.run(["apt-get", "download", "-qq", *PACKAGES], check=True, env=environment, cwd=scratch / "cache")
    for package in sorted((scratch / "cache").glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", package, scratch / "root"], check=True)
