/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where functions of x86-64 begin that no frame information tells of: by symbols, by the entry
 * point of the program, by pointers that are moved with it (of .rela.dyn, not of .relr.dyn), and by
 * the instructions that handlers of signals return to. unwind/bare.h finds others by these.
 */
#ifndef WORKLOAD_UNWIND_STARTS_H
#define WORKLOAD_UNWIND_STARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/elf_image.h"
#include "unwind/frames.h"
#include "unwind/reader.h"

#define STARTS_MAX (64U << 10) /* of a file; musl has 2 000 */

enum start_kind {
	START_SIGNAL, /* where a handler of signals returns to, from the byte before it on */
	START_FUNCTION,
	START_BOUNDARY, /* what is before it ends there; it may be anything */
};

/* Where something begins, and where it ends if that is known. */
struct start {
	uint64_t begin, end; /* the latter 0: at the next one */
	enum start_kind kind;
	bool endless; /* it never returns */
	bool wrong; /* it is no function, or it is not understood */
	uint64_t until; /* it was followed up to there; 0: not yet */
	size_t rules, rules_len; /* index of its first rule, and how many there are */
};

struct starts {
	const struct frames *frames; /* borrowed: of functions that are known otherwise */
	struct reader text; /* borrowed */
	uint64_t begin, end; /* addresses of it */
	uint64_t entry; /* where the kernel begins the program; 0 of most libraries */
	struct start *all; /* owned; the first that are `ordered` are by address */
	size_t len, ordered, size;
	uint64_t *maybe; /* owned; addresses that may be of functions */
	size_t maybe_len, maybe_size;
	uint8_t *seen; /* owned; a bit for each byte of the text: a function begins there */
	uint8_t *named; /* owned; the same: it is one of `maybe` */
	bool changed; /* one was added since this was cleared */
};

/*
 * Reads those of @image, which it borrows as it does @frames. 0 or -ENOMEM, with @starts, which
 * starts_close() releases in any case. Without a section .text of x86-64 there are none.
 */
int starts_open(struct starts *starts, const struct elf_image *image, const struct frames *frames);

/*
 * One more, of @bytes, or 0: it is not known how many. What is known already, is elsewhere, or is
 * more than STARTS_MAX is left out. 0 or -ENOMEM.
 */
int starts_add(struct starts *starts, uint64_t begin, uint64_t bytes, enum start_kind kind);

/* The same of an address that is noted somewhere: of a function, or of anything else. */
int starts_add_maybe(struct starts *starts, uint64_t address);

/* Those that were added are looked at from here on; those that are there may move. */
void starts_order(struct starts *starts);

/* The last one that begins at or before @address; NULL: there is none. */
const struct start *starts_find(const struct starts *starts, uint64_t address);

/* Whether a function was added that begins at @address. */
bool starts_know(const struct starts *starts, uint64_t address);

/* The first address behind @address at which something else begins. */
uint64_t starts_next(const struct starts *starts, uint64_t address);

/* Where @start, one of them, ends. */
uint64_t starts_end(const struct starts *starts, const struct start *start);

void starts_close(struct starts *starts);

#endif
