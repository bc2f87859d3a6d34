/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/image.h"

#include <errno.h>

#include "base/cleanup.h"
#include "unwind/bare.h"
#include "unwind/elf_image.h"
#include "unwind/generator.h"
#include "unwind/go.h"
#include "unwind/pclntab.h"

/* System V ABI for x86-64, figure 3.36; DWARF for the 64-bit Arm architecture, 4.1. */
static const struct cfi_machine *machine_of(const struct elf_image *image)
{
	static const struct cfi_machine x86_64 = { .sp = 7, .fp = 6, .ra = 16 };
	static const struct cfi_machine arm64 = { .sp = 31, .fp = 29, .ra = 30 };

	return image->machine == EM_X86_64 ? &x86_64 : &arm64;
}

/* .debug_frame is linked nowhere: its pointers are absolute. */
static int debug_frames_read(const struct elf_image *elf, struct frames *frames)
{
	struct frames_section section = { .debug = true, .machine = machine_of(elf) };
	struct reader debug;
	GElf_Shdr found;

	if (!elf_image_named(elf, ".debug_frame", &found) ||
	    !elf_image_inflate(elf, &found, &debug, &frames->inflated))
		return -ENODATA;
	section.bytes = debug.at;
	section.len = reader_left(&debug);
	return frames_read(&section, frames);
}

/* What .debug_frame says of functions of Go that set the stack pointer is not true. */
static int others_read(const struct elf_image *elf, struct frames *frames)
{
	return go_is(elf) ? go_frames_read(elf, machine_of(elf), frames)
			  : debug_frames_read(elf, frames);
}

/* What no frame information tells of. */
static int unknown_read(const struct elf_image *elf, struct frames *frames)
{
	int r = generator_frames_read(elf, machine_of(elf), frames);

	if (!r && image_may_be_bare(elf))
		r = image_bare_read(elf, frames);
	return r || frames->functions_len ? r : -ENODATA;
}

int image_frames(const struct elf_image *image, struct frames_section *section)
{
	struct reader frames;
	GElf_Shdr found;

	if (!elf_image_find(image, ".eh_frame", &found) || !elf_image_bytes(image, &found, &frames))
		return -ENODATA;
	*section = (struct frames_section){
		.bytes = frames.at,
		.len = reader_left(&frames),
		.address = found.sh_addr,
		.machine = machine_of(image),
	};
	return 0;
}

int image_framed_read(const struct elf_image *image, struct frames *frames)
{
	struct frames_section section;
	int r = image_frames(image, &section);

	return r ? r : frames_read(&section, frames);
}

/* What Go has not told is no function. */
bool image_may_be_bare(const struct elf_image *image)
{
	return image->machine == EM_X86_64 && !go_is(image);
}

int image_bare_read(const struct elf_image *image, struct frames *frames)
{
	return bare_frames_read(image, machine_of(image), frames);
}

int image_frames_read(const void *bytes, size_t len, struct frames *frames)
{
	_cleanup_(elf_image_close) struct elf_image image = { 0 };
	int first = elf_image_open(bytes, len, &image), second;

	if (first)
		return first;
	first = image_framed_read(&image, frames);
	if (first && first != -ENODATA)
		return first;
	second = others_read(&image, frames);
	if (first && second && second != -ENODATA)
		return second;
	return unknown_read(&image, frames);
}
