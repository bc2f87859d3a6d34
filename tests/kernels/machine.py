# SPDX-License-Identifier: Apache-2.0
"""
An emulated machine: a Debian kernel and this machine's own files (or, for another architecture,
those that userland.sh made), read-only, under a layer in memory. It runs one command and ends;
nothing of it stays but the results it sends.
"""

import lzma
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MEMORY = "2G"
CPUS = 2
KERNEL_ARGUMENTS = "quiet panic=-1 oops=panic mitigations=off random.trust_cpu=on"
# What the initial file system loads, in this order; a kernel has the rest built in.
MODULES = (
    "virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_console"
    " fuse virtiofs overlay tun tap vhost_iotlb vhost vhost_net"
).split()
VIRTIOFSD = ("/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd")
SOCKET_SECONDS = 10
BOOTS = 3
BOOT_SECONDS = 90  # until its command starts, which takes 5 to 10
STARTED = "init: command starts"
# Files as the machine may see them: never to be written, and without other mounts. The checkout is
# where it is here, with what was built for the machine as its build/.
SHARE = """
set -e
target=$1 files=$2 checkout=$3 built=$4 daemon=$5 socket=$6
mount --make-rprivate /
bind() {
	mount --bind "$1" "$2"
	mount -o remount,bind,ro "$2"
}
[ "$files" = / ] || mkdir -p "$files$checkout"
bind "$files" "$target"
bind "$checkout" "$target$checkout"
bind "$built" "$target$checkout/build"
exec "$daemon" --socket-path="$socket" -o source="$target" -o sandbox=chroot -o cache=always \\
	-o log_level=err
"""


class Architecture(NamedTuple):
    """How to emulate one: @files is its file system, @build what was built for it."""

    qemu: str
    machine: str
    console: str
    files: Path
    build: Path


ARCHITECTURES = {
    "amd64": Architecture("qemu-system-x86_64", "q35", "ttyS0", Path("/"), ROOT / "build"),
    "arm64": Architecture(
        "qemu-system-aarch64",
        "virt",
        "ttyAMA0",
        ROOT / "build/kernels/userland-arm64/root",
        ROOT / "build/arm64",
    ),
}


class MachineError(Exception):
    """The machine did not run its command to the end; the text says what is known."""


class BootError(MachineError):
    """It did not even begin."""


def _unpack_module(source, target):
    if source.suffix == ".xz":
        target.write_bytes(lzma.decompress(source.read_bytes()))
    elif source.suffix == ".zst":
        subprocess.run(["zstd", "-dqo", target, source], check=True)
    else:
        shutil.copy(source, target)


def _copy_modules(modules, target):
    target.mkdir()
    order = []
    for name in MODULES:
        found = sorted(modules.glob(f"kernel/**/{name}.ko*"))
        if found:
            order.append(f"{name}.ko")
            _unpack_module(found[0], target / order[-1])
    (target / "order").write_text("\n".join(order) + "\n")


def _make_initramfs(architecture, kernel, command, scratch):
    """busybox, the modules and the init script, as the kernel wants them: one cpio archive."""
    tree = scratch / "initramfs"
    (tree / "bin").mkdir(parents=True)
    shutil.copy(architecture.files / "bin" / "busybox", tree / "bin" / "busybox")
    for applet in subprocess.check_output(["busybox", "--list"], text=True).split():
        if applet != "busybox":
            (tree / "bin" / applet).symlink_to("busybox")
    shutil.copy(HERE / "init", tree / "init")
    (tree / "init").chmod(0o755)
    assert not any(set(" \t\n") & set(word) for word in command)
    (tree / "arguments").write_text(" ".join([str(ROOT), *command]) + "\n")
    _copy_modules(kernel / "modules", tree / "modules")
    archive = scratch / "initramfs.cpio"
    with archive.open("wb") as out:
        names = "\n".join(str(path.relative_to(tree)) for path in sorted(tree.rglob("*")))
        subprocess.run(
            ["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0"],
            input=names.encode(),
            stdout=out,
            cwd=tree,
            check=True,
        )


def _start_share(architecture, scratch, socket):
    daemon = next((path for path in VIRTIOFSD if os.access(path, os.X_OK)), None)
    if not daemon:
        raise MachineError(f"no virtiofsd here: looked for {', '.join(VIRTIOFSD)}")
    (scratch / "host").mkdir()
    words = ["unshare", "--mount", "sh", "-c", SHARE, "sh", scratch / "host", architecture.files]
    words += [ROOT, architecture.build, daemon, socket]
    with (scratch / "share.log").open("wb") as log:
        share = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=log)
    deadline = time.monotonic() + SOCKET_SECONDS
    while not socket.exists():
        if share.poll() is not None or time.monotonic() > deadline:
            _end(share)
            raise MachineError("virtiofsd: " + (scratch / "share.log").read_text().strip())
        time.sleep(0.02)
    return share


def _qemu(architecture, kernel, scratch, cpu):
    return [
        architecture.qemu,
        *("-machine", f"{architecture.machine},memory-backend=memory"),
        *("-accel", "tcg,thread=multi", "-cpu", cpu),
        *("-smp", str(CPUS), "-m", MEMORY),
        *("-object", f"memory-backend-memfd,id=memory,size={MEMORY},share=on"),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *("-serial", "stdio", "-device", "virtio-serial-pci"),
        *("-chardev", f"file,id=results,path={scratch}/results.tar"),
        *("-device", "virtserialport,chardev=results"),
        *("-chardev", f"socket,id=host,path={scratch}/share.sock"),
        *("-device", "vhost-user-fs-pci,chardev=host,tag=host,queue-size=1024"),
        *("-kernel", str(kernel / "vmlinuz"), "-initrd", f"{scratch}/initramfs.cpio"),
        *("-append", f"console={architecture.console} {KERNEL_ARGUMENTS}"),
    ]


def _end(process):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def _unpack_results(archive, results):
    """Returns the command's exit status."""
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                path = results / member.name
                if member.isfile() and ".." not in path.parts:  # nowhere else
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(tar.extractfile(member).read())
        return int((results / "exit").read_text())
    except (tarfile.TarError, OSError, ValueError) as error:
        raise MachineError("it ended before its command did") from error


class _Console(threading.Thread):
    """Passes on what a machine says, until the machine ends."""

    def __init__(self, machine, say):
        super().__init__(daemon=True)
        self.machine, self.say = machine, say
        self.has_started = False
        self.is_decided = threading.Event()  # the command has started, or never will

    def run(self):
        for line in self.machine.stdout:
            line = line.decode(errors="replace").rstrip("\r\n")
            if line == STARTED:  # see init
                self.has_started = True
                self.is_decided.set()
            self.say(line)
        self.is_decided.set()


def _run_qemu(words, seconds, say):
    """Returns when the machine has ended by itself, after its command has started."""
    machine = subprocess.Popen(
        ["nice", "-n", "19", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    console = _Console(machine, say)
    console.start()
    try:
        if not console.is_decided.wait(BOOT_SECONDS):
            raise BootError(f"the kernel did not reach its command in {BOOT_SECONDS} s")
        machine.wait(seconds)
    except subprocess.TimeoutExpired as error:
        raise MachineError(f"it was still running after {seconds} s") from error
    finally:
        _end(machine)
        console.join()
    if not console.has_started:
        raise BootError("the kernel did not reach its command")


def _boot(kernel, command, results, seconds, say, cpu):
    architecture = ARCHITECTURES[(kernel / "architecture").read_text().strip()]
    scratch = Path(tempfile.mkdtemp(prefix="kernels."))
    share = None
    try:
        _make_initramfs(architecture, kernel, command, scratch)
        share = _start_share(architecture, scratch, scratch / "share.sock")
        _run_qemu(_qemu(architecture, kernel, scratch, cpu), seconds, say)
        return _unpack_results(scratch / "results.tar", results)
    finally:
        if share:
            _end(share)
        shutil.rmtree(scratch, ignore_errors=True)


def run(kernel, command, results, seconds, say, cpu):
    """
    Boots @kernel (a directory that fetch.sh filled) and runs @command, words without blanks, in the
    checkout there. @results, a new directory, receives what the command left in /run/results; @say
    is called with each line of the console; @cpu is QEMU's name of a CPU model. Returns the
    command's exit status; MachineError if it took longer than @seconds or did not end. What happens
    before the command has nothing to do with this project (the emulator crashes in one boot of some
    dozens, and hangs in fewer), so that is tried again.
    """
    results.mkdir(parents=True)
    for _ in range(BOOTS - 1):
        try:
            return _boot(kernel, command, results, seconds, say, cpu)
        except BootError as error:
            say(f"{error}: once more")
    return _boot(kernel, command, results, seconds, say, cpu)
