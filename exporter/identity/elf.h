/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an executable's section names tell about the compiler. The file is hostile: it is read with
 * pread(2) only (a mapping would fault if the file shrank), at most 256 sections, never followed.
 */
#ifndef WORKLOAD_IDENTITY_ELF_H
#define WORKLOAD_IDENTITY_ELF_H

#include <stdbool.h>

/*
 * Whether the regular file @fd, an ELF file of any class, was linked by the Go linker: it has a
 * section .go.buildinfo or .note.go.buildid. Go is only looked for in 64-bit little-endian
 * executables with a sane section table; all other ELF files are "not Go".
 *
 * 0, -ENOEXEC if it is no ELF file (or no regular file), or -errno; *@go untouched on failure.
 */
int elf_go_detect(int fd, bool *go);

#endif
