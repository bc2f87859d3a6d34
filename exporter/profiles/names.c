/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "profiles/name_texts.h"
#include "profiles/symbols.h"
#include "unwind/frames.h"
#include "unwind/image.h"
#include "unwind/pclntab.h"

/* --- functions ------------------------------------------------------------------------------- */

/* What there is of functions without a symbol. */
struct unnamed {
	struct frames frames;
	struct pclntab go; /* their names; without a function if there is no table */
	bool partial; /* there may be others */
};

static void unnamed_free(struct unnamed *unnamed)
{
	frames_free(&unnamed->frames);
}

/*
 * A symbol that does not say how long it is may be the last before many functions that were
 * stripped of theirs: frame information tells, or their instructions.
 */
static struct name name_of(struct name_texts *texts, uint64_t address, const struct symbol *symbol,
			   const struct unnamed *unnamed)
{
	const struct frames_function *function = symbol->sized
							 ? NULL
							 : frames_find(&unnamed->frames, address);
	struct pclntab_function of_go;
	struct name name = { 0 };

	if (!symbol->sized && pclntab_search(&unnamed->go, address, &of_go))
		name = name_texts_write(texts, &of_go.name, of_go.begin);
	else if (function && (!symbol->rank || function->begin > symbol->begin))
		name.begin = function->begin;
	else if (symbol->rank && (symbol->sized || function || !unnamed->partial))
		name = name_texts_write(texts, &symbol->name, symbol->begin);
	return name;
}

/* Whether an address is in no function that is known. */
static bool unnamed_lack(const struct unnamed *unnamed, const uint64_t *addresses,
			 const struct symbol *symbols, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!symbols[i].sized && !frames_find(&unnamed->frames, addresses[i]))
			return true;
	return false;
}

static void unnamed_load(const struct elf_image *image, const uint64_t *addresses,
			 const struct symbol *symbols, size_t len, bool quick,
			 struct unnamed *unnamed)
{
	bool all;
	int r;

	if (!unnamed_lack(unnamed, addresses, symbols, len))
		return;
	if (pclntab_find(image, &unnamed->go))
		unnamed->go.len = 0;
	r = image_framed_read(image, &unnamed->frames);
	all = !r || r == -ENODATA;
	if (all && image_may_be_bare(image) && unnamed_lack(unnamed, addresses, symbols, len))
		all = !quick && !image_bare_read(image, &unnamed->frames);
	unnamed->partial = !all;
}

int names_find(const struct elf_image *image, const uint64_t *addresses, size_t len, bool quick,
	       struct name_texts *texts)
{
	_cleanup_(cleanup_free) struct symbol *symbols = calloc(len + 1, sizeof(*symbols));
	_cleanup_(unnamed_free) struct unnamed unnamed = { 0 };
	int r = symbols ? symbols_find(image, addresses, len, symbols) : -ENOMEM;

	if (r && r != -EFBIG)
		return r;
	texts->found->too_large = r == -EFBIG;
	unnamed_load(image, addresses, symbols, len, quick, &unnamed);
	for (size_t i = 0; i < len; i++)
		texts->names->names[i] = name_of(texts, addresses[i], &symbols[i], &unnamed);
	return 0;
}
