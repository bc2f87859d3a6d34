# SPDX-License-Identifier: Apache-2.0
"""What the kernel says about the BPF programs that are loaded, beyond what bpftool shows."""

import ctypes
import json
import os
import platform
import subprocess

BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}[platform.machine()]
BPF_PROG_GET_FD_BY_ID = 13
BPF_OBJ_GET_INFO_BY_FD = 15


class ProgramInfo(ctypes.Structure):
    """struct bpf_prog_info of include/uapi/linux/bpf.h up to its last field of Linux 5.16."""

    _fields_ = [("before", ctypes.c_uint8 * 216), ("verified_insns", ctypes.c_uint32)]
    _fields_ += [("padding", ctypes.c_uint32)]


class IdAttribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint32), ("next", ctypes.c_uint32), ("flags", ctypes.c_uint32)]


class InfoAttribute(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_uint32), ("size", ctypes.c_uint32), ("info", ctypes.c_uint64)]


def _bpf(command, attribute):
    call = ctypes.CDLL(None, use_errno=True).syscall
    result = call(BPF_SYSCALL, command, ctypes.byref(attribute), ctypes.sizeof(attribute))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _verified_instructions(program):
    info = ProgramInfo()
    fd = _bpf(BPF_PROG_GET_FD_BY_ID, IdAttribute(program, 0, 0))
    try:
        attribute = InfoAttribute(fd, ctypes.sizeof(info), ctypes.addressof(info))
        _bpf(BPF_OBJ_GET_INFO_BY_FD, attribute)
    finally:
        os.close(fd)
    return info.verified_insns


def verified_instructions():
    """{program: how many instructions the verifier looked at}, all paths counted."""
    text = subprocess.check_output(["bpftool", "-j", "prog"], text=True)
    return {row["name"]: _verified_instructions(row["id"]) for row in json.loads(text)}
