# SPDX-License-Identifier: Apache-2.0
"""
Profiles: asked for, and read as others read them: folded lines, and pprof's format by `go tool pprof`.
And what takes their samples, as the kernel tells of it.
"""

import contextlib
import ctypes
import http.client
import json
import math
import os
import re
import subprocess
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path

from exporter import ROOT, SLOWER
from services import wait_until

PATH = "/debug/pprof/profile"
OFFCPU, BLOCK, MUTEX = (f"/debug/pprof/{name}" for name in ("offcpu", "block", "mutex"))
HZ = 99
PERIOD_NS = 10**9 // HZ
LATE_SECONDS = 120 * SLOWER
BEGIN_SECONDS = 10 * SLOWER
# A share that is right is further off in one of 15 000 comparisons.
SIGMAS = 4
# What stands in the place of frames that are missing.
ENDS = {
    f"[{label}]"
    for label in re.findall(
        r'STACK_END\(\w+, "(\w+)"\)', (ROOT / "bpf" / "abi" / "profiles.h").read_text()
    )
}
LOST = "[lost] "
# Where threads begin, and goroutines: by their names, or by those of the library that starts them.
BEGINS = re.compile(
    r"(_start|_*clone3?|runtime\.(goexit|mstart|rt0_go|mcall|morestack)(\.abi0)?|(libc|ld-linux)[-.\w]*\+0x[0-9a-f]+)$"
)


@dataclass(frozen=True)
class Stack:
    """@frames: names, outermost first; of one without a name its address."""

    workload: str
    pool: str
    state: str
    frames: tuple
    count: int
    ns: int = 0

    @property
    def is_complete(self):
        return self.frames[0] not in ENDS

    def calls(self, *names):
        """Whether these frames are in it in this order, others between them or not."""
        rest = iter(self.frames)
        return all(name in rest for name in names)


@dataclass
class Mapping:
    path: str
    build_id: str


@dataclass
class Profile:
    """What was taken; all but the stacks only of pprof's format."""

    stacks: list
    types: list = field(default_factory=list)
    period: tuple = ()
    began: datetime | None = None
    duration: float = 0
    mappings: list = field(default_factory=list)
    lost: int = 0

    def of(self, workload):
        return Profile([stack for stack in self.stacks if stack.workload == workload])

    @property
    def samples(self):
        return sum(stack.count for stack in self.stacks)

    @property
    def workloads(self):
        return {stack.workload for stack in self.stacks}

    def where(self, holds):
        """Samples of the stacks of which @holds is true."""
        return sum(stack.count for stack in self.stacks if holds(stack))

    def calling(self, *names):
        return self.where(lambda stack: stack.calls(*names))

    def naming(self, part):
        """Samples of stacks that have a function whose name has @part in it."""
        return self.where(lambda stack: any(part in frame for frame in stack.frames))

    def waits(self, *names, states=None):
        """(how many, seconds) on stacks that call these; of pprof's format, and of waits."""
        found = [
            stack
            for stack in self.stacks
            if stack.calls(*names) and (not states or stack.state in states)
        ]
        return sum(stack.count for stack in found), sum(stack.ns for stack in found) / 1e9

    def ends(self):
        """How the stacks that are not complete end: samples of each."""
        found = Counter()
        for stack in self.stacks:
            if not stack.is_complete:
                found[stack.frames[0]] += stack.count
        return dict(found)

    def totals(self):
        """Samples by workload and thread pool."""
        found = Counter()
        for stack in self.stacks:
            found[stack.workload, stack.pool] += stack.count
        return dict(found)

    def expect_complete(self, share=0.99, at_least=10):
        """All stacks but a few are complete, and begin where threads do: of few samples one may not."""
        left_out = sum(self.ends().values())
        print(f"samples {self.samples}, not complete {self.ends()}")
        assert self.samples >= at_least, f"{self.samples} samples are too few"
        broken = [stack for stack in self.stacks if not stack.is_complete]
        assert left_out <= max(1, (1 - share) * self.samples), broken
        elsewhere = [each for each in self.stacks if not BEGINS.match(each.frames[0])]
        assert Profile(elsewhere).samples - left_out <= max(1, (1 - share) * self.samples), elsewhere


# --- asking -----------------------------------------------------------------------------------------


def path_of(path=PATH, **arguments):
    return path + "?" + "&".join(f"{name}={value}" for name, value in arguments.items())


def ask(port, path=PATH, **arguments):
    """(status, headers, body)"""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LATE_SECONDS)
    try:
        connection.request("GET", path_of(path, **arguments))
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def take(exporter, seconds=2, **arguments):
    """A profile, as folded stacks."""
    status, headers, body = ask(exporter.port, seconds=seconds, format="folded", **arguments)
    assert status == 200, body
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    lines = body.decode().splitlines()
    lost = [int(line[len(LOST) :]) for line in lines if line.startswith(LOST)]
    profile = Profile([_folded_line(line) for line in lines if not line.startswith(LOST)])
    profile.lost = sum(lost)
    return profile


def take_pprof(exporter, seconds=2, **arguments):
    """The same in pprof's format."""
    status, headers, body = ask(exporter.port, seconds=seconds, **arguments)
    assert status == 200, body
    assert headers["Content-Type"] == "application/octet-stream"
    with tempfile.NamedTemporaryFile(suffix=".pb.gz") as file:
        file.write(body)
        file.flush()
        return pprof_read(file.name)


def _folded_line(line):
    words, count = line.rsplit(" ", 1)
    workload, pool, state, *frames = words.split(";")
    return Stack(workload, pool, state, tuple(frames), int(count))


# --- pprof ------------------------------------------------------------------------------------------


def pprof_read(path):
    """As `go tool pprof -raw` prints it, which has checked it before."""
    done = subprocess.run(
        ["go", "tool", "pprof", "-raw", "-symbolize=none", path],
        env={**os.environ, "TZ": "UTC", "PPROF_TMPDIR": tempfile.gettempdir(), "HOME": "/"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    head, samples, locations, mappings = re.split(
        r"^(?:Samples|Locations|Mappings)(?::\s*)?\n", done.stdout, flags=re.MULTILINE
    )
    types, *rows = samples.splitlines()
    frames = _locations(locations)
    profile = Profile([_sample(*pair, frames) for pair in zip(rows[::2], rows[1::2])])
    profile.types = types.replace("[dflt]", "").split()
    profile.period = (
        re.search(r"^PeriodType: (.*)$", head, re.MULTILINE)[1],
        int(re.search(r"^Period: (\d+)$", head, re.MULTILINE)[1]),
    )
    profile.began, profile.duration = _times(head)
    profile.mappings = [
        Mapping(path, build_id)
        for path, build_id in re.findall(r"^\d+: \S+ (\S+) ([0-9a-f]*) ", mappings, re.MULTILINE)
    ]
    return profile


def _times(head):
    """When it began, by the clock of the day, and how long it took."""
    day, fraction = re.search(r"^Time: (\S+ \d+:\d+:\d+)(\.\d+)? \+0000", head, re.MULTILINE).groups()
    began = datetime.strptime(day, "%Y-%m-%d %H:%M:%S").replace(tzinfo=timezone.utc)
    began += timedelta(seconds=float(fraction or 0))
    return began, float(re.search(r"^Duration: ([\d.]+)", head, re.MULTILINE)[1])


def _locations(text):
    """What each is called: by its line, or by its address."""
    found = {}
    for line in text.splitlines():
        number, address, name = re.match(
            r"\s*(\d+): (0x[0-9a-f]+) (?:M=\d+ )?(?:(.*) :0 s=0)?", line
        ).groups()
        found[number] = name or address
    return found


def _sample(values, labels, frames):
    numbers, locations = values.split(":")
    count, ns = [*map(int, numbers.split()), 0][:2]  # of page faults there is no time
    named = dict(re.findall(r"(\w+):\[(.*?)\](?= \w+:\[|\s*$)", labels))
    return Stack(
        frames=tuple(frames[number] for number in reversed(locations.split())),
        count=count,
        ns=ns,
        **named,
    )


# --- truth ------------------------------------------------------------------------------------------


def sigmas_off(samples, of_all, share):
    """By how much @samples of @of_all differ from the @share that is true, in standard deviations."""
    return (samples - of_all * share) / math.sqrt(of_all * share * (1 - share))


def at_least(samples, of_all, share):
    """Whether @samples of @of_all may be those of this @share, or of more: of few it varies."""
    return sigmas_off(samples, of_all, share) > -SIGMAS


def shares(before, after):
    """What a burner's counts (Service.ask()) have grown by, as shares of all."""
    grown = {key: after[key] - before[key] for key in before}
    return {key: value / sum(grown.values()) for key, value in grown.items()}


def expect_shares(profile, before, after, functions, least=0.95, count=Profile.calling):
    """
    @functions: each one's name by the burner's count of it, which tells its true share of what they
    take together; or a part of it, with Profile.naming as @count. @least: their share of all samples.
    """
    true = shares({key: before[key] for key in functions}, after)
    found = {key: count(profile, name) for key, name in functions.items()}
    of_all = sum(found.values())
    off = {key: round(sigmas_off(found[key], of_all, true[key]), 1) for key in functions}
    print(f"samples {profile.samples}, found {found}, true {true}, off by {off}")
    assert at_least(of_all, profile.samples, least), profile.stacks
    assert max(map(abs, off.values())) < SIGMAS, off


def build_id(path):
    done = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True)
    return re.search(r"Build ID: ([0-9a-f]+)", done.stdout)[1]


def functions(path):
    """What the functions of a program are called in its source: by c++filt, without parameters."""
    run = {"check": True, "capture_output": True, "text": True}
    lines = subprocess.run(["nm", "--defined-only", "--no-demangle", path], **run).stdout.splitlines()
    names = "\n".join({line.split(" ", 2)[2] for line in lines})
    return set(subprocess.run(["c++filt", "--no-params"], input=names, **run).stdout.splitlines())


def cpu_seconds(pid):
    """Of all threads of a process, also of those that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def family(pid):
    """{name: pids} of all that a process has started, and those have."""
    found, rest = {}, [str(pid)]
    while rest:
        one = rest.pop()
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            rest += Path(f"/proc/{one}/task/{one}/children").read_text().split()
            found.setdefault(Path(f"/proc/{one}/comm").read_text().strip(), []).append(one)
    return found


# --- samplers -------------------------------------------------------------------------------------

SYS_BPF = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
BPF_ENABLE_STATS = 32


@contextlib.contextmanager
def statistics():
    """The kernel counts runs of programs as long as a descriptor of this kind is open (bpf(2))."""
    attr = ctypes.create_string_buffer(128)  # BPF_STATS_RUN_TIME is 0
    fd = ctypes.CDLL(None).syscall(SYS_BPF, BPF_ENABLE_STATS, attr, ctypes.c_uint(4))
    assert fd >= 0
    try:
        yield
    finally:
        os.close(fd)


def sampler(exporter, name="profiles_sample"):
    """The program that samples, or another one, as bpftool shows it; None: there is none."""
    done = subprocess.run(
        ["bpftool", "--json", "prog", "show"], check=True, capture_output=True, text=True
    )
    ids = exporter.bpf_ids("prog")
    for program in json.loads(done.stdout):
        if program["id"] in ids and program.get("name") == name:
            return program
    return None


def runs(exporter, name="profiles_sample"):
    """How often it has run while there were statistics()."""
    return sampler(exporter, name).get("run_cnt", 0)


def wait_until_read(exporter, workload, run=None, path=PATH):
    """
    Until the code of all its files has been read: on a loaded machine a profile may begin before.
    @run: has it do what the page is of, if it does not of its own: without samples nothing is told.
    """

    def is_read():
        with ThreadPoolExecutor(1) as thread:
            taken = thread.submit(take, exporter, 1, path=path, workload=workload)
            while run and not taken.done():
                run()
        profile = taken.result()
        print(f"samples {profile.samples}, not complete {profile.ends()}")
        enough = not run or profile.samples > 0
        return enough and sum(profile.ends().values()) <= max(1, 0.03 * profile.samples)

    wait_until(is_read, 60, "its code is not read")


def begun(function, exporter, *arguments, program="profiles_sample", **options):
    """A profile that is being taken: .result() of what is returned. @program: that has run for it."""
    thread = ThreadPoolExecutor(1)
    with statistics():
        before = runs(exporter, program)
        result = thread.submit(function, exporter, *arguments, **options)
        wait_until(lambda: runs(exporter, program) > before, BEGIN_SECONDS, "it does not begin")
    thread.shutdown(wait=False)
    return result
