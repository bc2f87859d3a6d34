/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/call_sites.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/profiles.h"
#include "base/text.h"
#include "base/utf8.h"
#include "profiles/profile.h"

static void site_named(struct call_sites *sites, struct call_site *site)
{
	site->named = true;
	sites->unnamed--;
}

static void site_free(struct call_sites *sites, struct call_site *site)
{
	sites->unnamed -= !site->named;
	free(site->module);
	free(site->function);
	free(site);
}

static void site_forget(struct call_sites *sites, struct call_site *site)
{
	HASH_DEL(sites->by_place, site);
	site_free(sites, site);
}

void call_sites_free(struct call_sites *sites)
{
	struct call_site *site, *next;

	HASH_ITER (hh, sites->by_place, site, next) {
		site_forget(sites, site);
	}
}

static struct call_site *site_find(const struct call_sites *sites, const struct place *place)
{
	struct call_site *site;

	HASH_FIND(hh, sites->by_place, place, sizeof(*place), site); /* NOLINT: it has no holes */
	return site;
}

const struct call_site *call_sites_at(const struct call_sites *sites, const struct place *place)
{
	return site_find(sites, place);
}

/* As the last that was met. False: there is no memory, and @site is gone. */
static bool site_put(struct call_sites *sites, struct call_site *site)
{
	HASH_ADD(hh, sites->by_place, place, sizeof(site->place), site);
	if (site->hh.tbl)
		return true;
	site_free(sites, site);
	return false;
}

static bool site_add(struct call_sites *sites, const struct file *file, const struct place *place)
{
	struct call_site *site = calloc(1, sizeof(*site));

	if (site)
		site->module = strdup(text_base_name(file->path));
	if (!site || !site->module) {
		free(site);
		return false;
	}
	site->place = *place;
	site->number = file->number;
	sites->unnamed++;
	if (HASH_COUNT(sites->by_place) >= CALL_SITES_MAX)
		site_forget(sites, sites->by_place);
	return site_put(sites, site);
}

struct place call_sites_meet(struct call_sites *sites, const struct files *files, uint64_t frame)
{
	const struct file *file = frame_file(frame) ? files_at(files, frame_file(frame)) : NULL;
	struct place place = { 0 }, none = { 0 };
	struct call_site *site;
	bool known;

	if (!file || !file->path || file->generated)
		return none; /* what is generated may be something else by the next time */
	place.file = file->id;
	place.address = frame_address(frame);
	site = site_find(sites, &place);
	if (site) {
		HASH_DEL(sites->by_place, site);
		known = site_put(sites, site);
	} else {
		known = site_add(sites, file, &place);
	}
	return known ? place : none;
}

/* --- names ---------------------------------------------------------------------------------- */

static bool site_is_of(const struct call_site *site, const struct files *files)
{
	const struct file *file = files_at(files, site->number);

	return file && file->id == site->place.file;
}

/* The next file, by id, behind the one that was asked last. */
static const struct call_site *file_next(const struct call_sites *sites)
{
	const struct call_site *site, *next, *first = NULL, *behind = NULL;

	HASH_ITER (hh, sites->by_place, site, next) {
		uint64_t file = site->place.file;

		if (site->named)
			continue;
		if (!first || file < first->place.file)
			first = site;
		if (file > sites->file && (!behind || file < behind->place.file))
			behind = site;
	}
	return behind ? behind : first;
}

static size_t frames_gather(struct call_sites *sites, const struct files *files, uint32_t number)
{
	struct call_site *site, *next;
	size_t len = 0;

	HASH_ITER (hh, sites->by_place, site, next) {
		if (site->named || site->place.file != sites->file || len == CALL_SITES_ASKED_MAX)
			continue;
		if (site_is_of(site, files))
			sites->frames[len++] = frame_make(number, site->place.address);
		else
			site_named(sites, site); /* it has gone, and cannot be asked */
	}
	return profile_frames_sort(sites->frames, len);
}

bool call_sites_ask(struct call_sites *sites, const struct files *files, struct survey_wish *wish)
{
	const struct call_site *site;
	size_t len = 0;

	while (!len && sites->unnamed) {
		site = file_next(sites);
		if (!site)
			break;
		sites->file = site->place.file;
		*wish = (struct survey_wish){ .file = site->number, .frames = sites->frames };
		len = wish->len = frames_gather(sites, files, wish->file);
	}
	return len;
}

/* The parser may be late, or be replaced, and have the names another time. */
static void site_name(struct call_sites *sites, struct call_site *site,
		      const struct survey_wish *wish)
{
	uint64_t frame = frame_make(wish->file, site->place.address);
	const uint64_t *asked = profile_frames_find(wish->frames, wish->len, frame);
	const char *text;
	size_t i;

	if (!asked)
		return;
	site->tries++;
	if (!wish->result || site->tries == CALL_SITE_TRIES)
		site_named(sites, site);
	i = (size_t)(asked - wish->frames);
	if (wish->result || i >= wish->names.len)
		return;
	text = parsed_names_text(&wish->names, i);
	site->function = text ? strdup(text) : NULL;
	site->begin = wish->names.names[i].begin;
}

void call_sites_take(struct call_sites *sites, struct survey_wish *wish)
{
	struct call_site *site, *next;

	HASH_ITER (hh, sites->by_place, site, next) {
		if (site->place.file == sites->file && !site->named)
			site_name(sites, site, wish);
	}
	if (!wish->result)
		parsed_names_free(&wish->names);
}

/* As much of @text as there is room for, with NAME_CUT behind it if that is not all. */
static void text_cut(char *out, size_t size, const char *text)
{
	size_t cut = strlen(text) < size ? 0 : strlen(NAME_CUT);

	utf8_copy(out, size - cut, text);
	if (cut)
		memcpy(out + strlen(out), NAME_CUT, cut + 1);
}

void call_site_text(const struct call_site *site, char out[static CALL_SITE_BYTES])
{
	char function[CALL_SITE_FUNCTION_BYTES], module[CALL_SITE_MODULE_BYTES];
	uint64_t address = site->place.address;

	text_cut(module, sizeof(module), site->module);
	if (!site->function || !site->begin) {
		snprintf(out, CALL_SITE_BYTES, "%s+%#" PRIx64, module, address);
		return;
	}
	text_cut(function, sizeof(function), site->function);
	snprintf(out, CALL_SITE_BYTES, "%s+%#" PRIx64 " [%s]", function, address - site->begin,
		 module);
}
