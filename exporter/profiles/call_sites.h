/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places in code that are shown for long: each is named once, and its name outlives the file and
 * the processes that run it. Bounded: what was not met for longest is forgotten first.
 *
 * One thread.
 */
#ifndef WORKLOAD_PROFILES_CALL_SITES_H
#define WORKLOAD_PROFILES_CALL_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiles/files.h"
#include "profiles/survey.h"

#define CALL_SITES_MAX 4096U
#define CALL_SITES_ASKED_MAX 512U /* at once */
#define CALL_SITE_TRIES 3U /* then it is shown by its address */
#define CALL_SITE_FUNCTION_BYTES 160U /* of its name; more is cut */
#define CALL_SITE_MODULE_BYTES 64U
#define CALL_SITE_BYTES (CALL_SITE_FUNCTION_BYTES + CALL_SITE_MODULE_BYTES + 32U)

/* Frames of stacks (abi/profiles.h) have numbers of files, which are given again; this has not. */
struct place {
	uint64_t file; /* id; 0: of no file */
	uint64_t address; /* as linked */
};

struct call_site {
	struct place place;
	uint32_t number; /* of its file, as long as that has this id */
	bool named; /* or it cannot be */
	uint32_t tries; /* how often it was asked */
	char *module; /* owned: what the file is called, without its folder */
	char *function; /* owned; NULL: it has no name */
	uint64_t begin; /* of the function, as linked; 0: it is not known */
	UT_hash_handle hh;
};

struct call_sites {
	struct call_site *by_place; /* in the order in which they were met */
	size_t unnamed; /* of these */
	uint64_t frames[CALL_SITES_ASKED_MAX]; /* that are being named, */
	uint64_t file; /* and the id of their file */
};

void call_sites_free(struct call_sites *sites);

/* The place of @frame; of no file where that is not known, or there is no memory. */
struct place call_sites_meet(struct call_sites *sites, const struct files *files, uint64_t frame);

/* NULL: it is of no file, or was forgotten. */
const struct call_site *call_sites_at(const struct call_sites *sites, const struct place *place);

/* Makes a wish for names of places in one file, if some have none yet: it points into @sites. Files
 * have their turns. */
bool call_sites_ask(struct call_sites *sites, const struct files *files, struct survey_wish *wish);

/* Takes what has become of that. */
void call_sites_take(struct call_sites *sites, struct survey_wish *wish);

/*
 * Writes "function+offset [module]", or "module+address" where the function is not known: both can
 * be asked of addr2line(1), as they are of the call and not of where it returns to.
 */
void call_site_text(const struct call_site *site, char out[static CALL_SITE_BYTES]);

#endif
