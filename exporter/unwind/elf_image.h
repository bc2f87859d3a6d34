/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF files of x86-64 and arm64 in memory: their sections, and the bytes of these. The image is
 * hostile, but does not change while it is read: what another process may write to is copied
 * first, or read by a process that may crash. Only headers are left to libelf, which may copy what
 * it reads: all else is read where it is.
 *
 * One thread: libelf is not thread-safe.
 */
#ifndef WORKLOAD_UNWIND_ELF_IMAGE_H
#define WORKLOAD_UNWIND_ELF_IMAGE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/reader.h"

#define ELF_IMAGE_SECTIONS_MAX 4096 /* that are looked at, behind the first, which is none */
#define ELF_IMAGE_INFLATED_MAX (64U << 20) /* kubelet has 4 MiB of frame information */

struct elf_image {
	const uint8_t *bytes; /* borrowed */
	size_t len;
	uint16_t machine; /* EM_X86_64 or EM_AARCH64 */
	size_t sections; /* one more than the index of the last that is looked at */
	Elf *elf; /* owned */
};

/*
 * 0 with @image, which elf_image_close() releases; -ENOEXEC: it is no ELF file of x86-64 or arm64
 * (64 bits, little endian).
 */
int elf_image_open(const void *bytes, size_t len, struct elf_image *image);

/* Zeros are nothing. */
void elf_image_close(struct elf_image *image);

/* The header of section @index; false: there is none. */
bool elf_image_section(const struct elf_image *image, size_t index, GElf_Shdr *header);

/* The bytes of a section; false: they are not in the image, or not as they are. */
bool elf_image_bytes(const struct elf_image *image, const GElf_Shdr *header, struct reader *bytes);

/* The section called @name; false: there is none. */
bool elf_image_named(const struct elf_image *image, const char *name, GElf_Shdr *header);

/* The same, and its bytes are there. */
bool elf_image_find(const struct elf_image *image, const char *name, GElf_Shdr *header);

/* The symbols of the section called @name, and the texts that names are in; false: none there. */
bool elf_image_symbols(const struct elf_image *image, const char *name, struct reader *symbols,
		       struct reader *names);

/* The next one of @symbols; false: there is none. */
bool elf_image_symbol_next(struct reader *symbols, Elf64_Sym *symbol);

/*
 * The bytes of a section that may be compressed (gABI, "Section compression"), of which at most
 * ELF_IMAGE_INFLATED_MAX are made. *inflated, which the caller releases with free(), is NULL if it
 * was not. False: they are not there, more, or compressed in another way than by zlib.
 */
bool elf_image_inflate(const struct elf_image *image, const GElf_Shdr *header, struct reader *bytes,
		       void **inflated);

#endif
