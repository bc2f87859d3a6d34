# SPDX-License-Identifier: Apache-2.0
"""Every BPF program through the verifier of the running kernel, one by one and as a whole."""

import json
import platform
import re
import subprocess

import pytest

from exporter import BUILD, ROOT, Exporter
from kernel_types import programs_are_preempted

OBJECTS = sorted(path.name.removesuffix(".bpf.c") for path in (ROOT / "bpf").glob("*.bpf.c"))
ARCHITECTURES = ("x86", "arm64")
NATIVE = {"x86_64": "x86", "aarch64": "arm64"}[platform.machine()]
NAME_MAX = 15  # the kernel's BPF_OBJ_NAME_LEN, without the end


def output(*command):
    return subprocess.run(
        [str(word) for word in command], check=True, capture_output=True, text=True
    ).stdout


def object_path(architecture, feature):
    return BUILD / "bpf" / architecture / f"{feature}.bpf.o"


def programs(path):
    """{name: section} of the programs in an object: its global functions in sections of hooks."""
    symbols = re.findall(
        r"^\w+ g +F (\S+)\s+\w+ (\w+)$", output("llvm-objdump", "--syms", path), re.MULTILINE
    )
    return {name: section for section, name in symbols if section != ".text"}


@pytest.fixture
def private_bpffs(tmp_path):
    directory = tmp_path / "bpf"
    directory.mkdir()
    subprocess.run(["mount", "-t", "bpf", "none", directory], check=True)
    yield directory
    subprocess.run(["umount", directory], check=True)


def test_there_is_an_object_for_every_feature():
    """One that is a backend besides has its feature's name before its own."""
    answer = json.loads(output(BUILD / "workload_exporter", "check", "--json"))
    features = {feature["name"] for feature in answer["features"]}
    assert features == {name.split("_")[0] for name in OBJECTS} and features <= set(OBJECTS)


@pytest.mark.parametrize("feature", OBJECTS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_object_is_bpf_with_type_information(architecture, feature):
    header = output("llvm-readelf", "--file-header", object_path(architecture, feature))
    assert re.search(r"Machine:\s+EM_BPF", header)
    sections = output("llvm-readelf", "--sections", object_path(architecture, feature))
    assert " .BTF " in sections and " .BTF.ext " in sections


@pytest.mark.parametrize("feature", OBJECTS)
def test_architectures_have_the_same_programs(feature):
    first, second = (programs(object_path(name, feature)) for name in ARCHITECTURES)
    assert first and first == second


@pytest.mark.parametrize("feature", OBJECTS)
def test_program_names_begin_with_their_feature(feature):
    names = programs(object_path(NATIVE, feature))
    prefix = feature.split("_")[0] + "_"  # an object of a backend belongs to its feature
    assert [name for name in names if not name.startswith(prefix)] == []


@pytest.mark.parametrize("feature", OBJECTS)
def test_verifier_accepts_every_program(private_bpffs, feature):
    path = object_path(NATIVE, feature)
    subprocess.run(
        ["bpftool", "prog", "loadall", str(path), str(private_bpffs / feature)],
        check=True,
    )
    pinned = {entry.name for entry in (private_bpffs / feature).iterdir()}
    assert len(pinned) == len(programs(path))


def with_knob(path, name, value, directory):
    """A copy of an object whose constant @name, one byte, has another @value."""
    symbol = rf"^(\w+) g +O \.rodata\s+0*1 {name}$"
    offset = int(re.search(symbol, output("llvm-objdump", "--syms", path), re.MULTILINE)[1], 16)
    constants, copy = directory / "rodata", directory / path.name
    output("llvm-objcopy", f"--dump-section=.rodata={constants}", path, "/dev/null")
    told = bytearray(constants.read_bytes())
    assert told[offset] != value
    told[offset] = value
    constants.write_bytes(told)
    output("llvm-objcopy", f"--update-section=.rodata={constants}", path, copy)
    return copy


def test_requests_load_as_on_a_kernel_that_has_no_casts(private_bpffs, tmp_path):
    path = with_knob(object_path(NATIVE, "requests"), "casts", 0, tmp_path)
    output("bpftool", "prog", "loadall", path, private_bpffs / "requests")


def exchanges(architecture):
    """64-bit exchanges in the programs that write shards of pools."""
    words = output("llvm-objdump", "-d", "--no-show-raw-insn", object_path(architecture, "threads"))
    return words.count("xchg_64")


def test_readers_see_the_writes_to_a_shard_in_their_order():
    """x86 does so by itself; for others each step, two of a write, is an exchange: a full barrier."""
    writes = 3  # account() leaves one shard and enters another, threads_wakeup_new counts a start
    assert exchanges("arm64") - exchanges("x86") == 2 * writes


CHOICES = [
    "--requests.backend=socket",
    "--requests.backend=syscall",
    "--mutex.backend=uprobe",
    "--collector.profiles",
]


def feature_of(choice):
    return re.match(r"--(?:collector\.)?(\w+)", choice)[1]


def features_on(exporter):
    rows = exporter.scrape().rows("workload_exporter_probe_attached")
    return {labels["feature"] for labels, _ in rows}


@pytest.fixture(scope="module")
def on_by_default():
    with Exporter() as running:
        return features_on(running)


def test_what_is_not_on_by_default_can_be_chosen(on_by_default):
    answer = json.loads(output(BUILD / "workload_exporter", "check", "--json"))
    others = {feature["name"] for feature in answer["features"]} - on_by_default
    assert others <= {feature_of(choice) for choice in CHOICES}


def objects_of(exporter, on_by_default, choice):
    """Those of the features that are on: of a backend its own, if it has one."""
    feature, backend = feature_of(choice), choice.partition("=")[2]
    on = features_on(exporter)
    assert on == on_by_default | {feature}
    chosen = f"{feature}_{backend}" if f"{feature}_{backend}" in OBJECTS else feature
    return [chosen if each == feature else each for each in sorted(on)]


@pytest.fixture(scope="module", params=CHOICES)
def exporter(request, on_by_default):
    with Exporter(request.param) as running:
        running.objects = objects_of(running, on_by_default, request.param)
        yield running


def loaded_names():
    """As short as the kernel keeps them: bpftool knows longer ones from type information."""
    programs_now = json.loads(output("bpftool", "-j", "prog"))
    return {program.get("name", "")[:NAME_MAX] for program in programs_now}


def programs_of(objects):
    """Those that this kernel needs: spares only where a program can be preempted."""
    spares = programs_are_preempted()
    names = {name for each in objects for name in programs(object_path(NATIVE, each))}
    return {name for name in names if spares or "_spare" not in name}


def test_exporter_loads_every_program(exporter):
    assert {name[:NAME_MAX] for name in programs_of(exporter.objects)} <= loaded_names()


def test_every_hook_of_every_object_is_attached(exporter):
    rows = exporter.scrape().rows("workload_exporter_probe_attached")
    attached = {labels["probe"]: value for labels, value in rows}
    assert set(attached.values()) == {1}
    assert set(attached) == programs_of(exporter.objects)
    features = {name.split("_")[0] for name in exporter.objects}
    assert {labels["feature"] for labels, _ in rows} == features
