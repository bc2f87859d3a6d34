/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/program.h"

#include <libelf.h>
#include <string.h>

#define HEADERS_MAX 64 /* program headers that are looked at; usual are a dozen */
/* Notes at one place: usual are 200. libelf may copy them, of each header and section. */
#define NOTES_BYTES_MAX 4096

static bool segment_is_sane(const struct program_segment *segment)
{
	uint64_t end;

	return segment->bytes && !__builtin_add_overflow(segment->offset, segment->bytes, &end) &&
	       !__builtin_add_overflow(segment->address, segment->bytes, &end) &&
	       end <= PROGRAM_ADDRESS_END;
}

/* The first address of all segments, and the end of the last. */
static void span_of(const struct program *program, uint64_t *begin, uint64_t *end)
{
	*begin = *end = 0;
	for (uint32_t i = 0; i < program->segments_len; i++) {
		const struct program_segment *segment = &program->segments[i];

		if (!i || segment->address < *begin)
			*begin = segment->address;
		if (segment->address + segment->bytes > *end)
			*end = segment->address + segment->bytes;
	}
}

static void segment_add(struct program *program, const GElf_Phdr *header)
{
	const struct program_segment segment = { .offset = header->p_offset,
						 .address = header->p_vaddr,
						 .bytes = header->p_filesz };

	if (program->segments_len < PROGRAM_SEGMENTS_MAX && segment_is_sane(&segment))
		program->segments[program->segments_len++] = segment;
	else
		program->segments_more++;
}

/* --- the build id: a note, which ld(1) writes for --build-id ---------------------------------- */

static void build_id_take(struct program *program, const Elf_Data *notes)
{
	size_t at = 0, name, id;
	GElf_Nhdr note;

	if (!notes || !notes->d_buf)
		return;
	while (!program->build_id_len &&
	       (at = gelf_getnote((Elf_Data *)(uintptr_t)notes, at, &note, &name, &id))) {
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof(ELF_NOTE_GNU) ||
		    memcmp((const char *)notes->d_buf + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) !=
			    0 ||
		    note.n_descsz > sizeof(program->build_id))
			continue;
		program->build_id_len = note.n_descsz;
		memcpy(program->build_id, (const char *)notes->d_buf + id, note.n_descsz);
	}
}

/* Notes are aligned to 4 bytes, or where that is said to 8 (gelf_getnote()). */
static void notes_read(const struct elf_image *image, struct program *program, uint64_t at,
		       uint64_t bytes, uint64_t align)
{
	if (program->build_id_len || !bytes || bytes > NOTES_BYTES_MAX || at > image->len ||
	    bytes > image->len - at)
		return;
	build_id_take(program, elf_getdata_rawchunk(image->elf, (int64_t)at, bytes,
						    align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR));
}

static void headers_read(const struct elf_image *image, struct program *program)
{
	GElf_Phdr header;
	size_t len;

	if (elf_getphdrnum(image->elf, &len))
		return;
	for (size_t i = 0; i < len && i < HEADERS_MAX; i++) {
		if (!gelf_getphdr(image->elf, (int)i, &header))
			continue;
		if (header.p_type == PT_LOAD && header.p_flags & PF_X)
			segment_add(program, &header);
		else if (header.p_type == PT_NOTE)
			notes_read(image, program, header.p_offset, header.p_filesz,
				   header.p_align);
	}
}

/* For what is linked to have no segment of notes, or one that is too large. */
static void sections_read(const struct elf_image *image, struct program *program)
{
	GElf_Shdr header;

	for (size_t i = 1; i < image->sections && !program->build_id_len; i++)
		if (elf_image_section(image, i, &header) && header.sh_type == SHT_NOTE &&
		    !(header.sh_flags & SHF_COMPRESSED))
			notes_read(image, program, header.sh_offset, header.sh_size,
				   header.sh_addralign);
}

/* --- all of it ------------------------------------------------------------------------------- */

void program_read(const struct elf_image *image, struct program *program)
{
	*program = (struct program){ 0 };
	headers_read(image, program);
	sections_read(image, program);
	span_of(program, &program->begin, &program->end);
	program->generator = generator_find(image);
}

bool program_is_sane(const struct program *program)
{
	uint64_t begin, end;

	if (program->segments_len > PROGRAM_SEGMENTS_MAX || program->generator >= GENERATORS ||
	    program->build_id_len > PROGRAM_BUILD_ID_MAX)
		return false;
	for (uint32_t i = 0; i < program->segments_len; i++)
		if (!segment_is_sane(&program->segments[i]))
			return false;
	span_of(program, &begin, &end);
	return program->begin == begin && program->end == end;
}
