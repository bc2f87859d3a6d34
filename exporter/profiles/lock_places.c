/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/lock_places.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

/* The place of a stack. */
struct lock_stack {
	struct stack_key key;
	struct lock_place place;
	uint64_t lasting_ns; /* of waits that are not over */
	UT_hash_handle hh;
};

/* Names of files that begin so: libraries of C and C++, and what starts a program. */
static const char *const libraries[] = {
	"libc.so",  "libc-2.", "libc.musl",    "libpthread",
	"ld-linux", "ld-musl", "libstdc++.so", "libc++",
};

/*
 * Names of functions that begin so, or hold that: what wraps locks, and locks of a library that is
 * linked in. Of glibc and musl; std of C++ and what implements it; std, lock_api and parking_lot
 * of Rust, and methods of its types; Boost, Abseil, GLib, libuv, APR.
 */
static const char *const wrappers[] = {
	"__lll_",
	"pthread_mutex_",
	"pthread_rwlock_",
	"__pthread_mutex_",
	"___pthread_mutex_",
	"__pthread_rwlock_",
	"___pthread_rwlock_",
	"futex_",
	"__futex_",
	"__timedwait",
	"__lock",
	"__wait",
	"__gthread_",
	"std::mutex::",
	"std::recursive_mutex::",
	"std::timed_mutex::",
	"std::recursive_timed_mutex::",
	"std::shared_mutex::",
	"std::shared_timed_mutex::",
	"std::__shared_mutex_pthread::",
	"std::lock_guard<",
	"std::unique_lock<",
	"std::shared_lock<",
	"std::scoped_lock<",
	"std::lock<",
	"__gnu_cxx::__mutex::",
	"std::sync::",
	"<std::sync::",
	"std::sys::sync::",
	"<std::sys::sync::",
	"std::sys::locks::",
	"std::sys::unix::locks::",
	"std::sys::pal::unix::locks::",
	"parking_lot::",
	"<parking_lot::",
	"<parking_lot_core::",
	"parking_lot_core::",
	"lock_api::",
	"<lock_api::",
	"Mutex::Lock",
	"boost::mutex::",
	"boost::shared_mutex::",
	"boost::unique_lock<",
	"boost::lock_guard<",
	"g_mutex_",
	"g_rec_mutex_",
	"g_rw_lock_",
	"uv_mutex_",
	"uv_rwlock_",
	"apr_thread_mutex_",
};
static const char *const wrapper_parts[] = { "::Mutex::Lock", "::parking_lot::", " as lock_api::" };

static bool begins_with_any(const char *text, const char *const *prefixes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text_has_prefix(text, prefixes[i]))
			return true;
	return false;
}

static bool site_wraps(const struct call_site *site)
{
	if (!site->function)
		return false;
	for (size_t i = 0; i < COUNT(wrapper_parts); i++)
		if (strstr(site->function, wrapper_parts[i]))
			return true;
	return begins_with_any(site->function, wrappers, COUNT(wrappers));
}

/* --- stacks --------------------------------------------------------------------------------- */

static void stack_forget(struct lock_places *places, struct lock_stack *stack)
{
	HASH_DEL(places->stacks, stack);
	free(stack);
}

void lock_places_free(struct lock_places *places)
{
	struct lock_stack *stack, *next;

	HASH_ITER (hh, places->stacks, stack, next) {
		stack_forget(places, stack);
	}
	call_sites_free(&places->code);
}

static struct stack_key key_of_stack(const struct stack_key *key)
{
	struct stack_key own = *key;

	own.hash &= ~HASH_LATER;
	return own;
}

static struct lock_stack *stack_find(const struct lock_places *places, const struct stack_key *key)
{
	struct lock_stack *stack;

	HASH_FIND(hh, places->stacks, key, sizeof(*key), stack);
	return stack;
}

static bool frame_is_of_library(const struct files *files, uint64_t frame)
{
	const struct file *file = frame_file(frame) ? files_at(files, frame_file(frame)) : NULL;

	return !file || !file->path ||
	       begins_with_any(text_base_name(file->path), libraries, COUNT(libraries));
}

static bool place_find(struct lock_places *places, const struct files *files,
		       const struct stack *stack, struct lock_place *place)
{
	size_t len = 0;

	*place = (struct lock_place){ 0 };
	for (uint32_t i = 0; i < stack->len && i < FRAMES_MAX && len < LOCK_FRAMES; i++) {
		if (frame_is_of_library(files, stack->frames[i]))
			continue;
		place->frames[len] = call_sites_meet(&places->code, files, stack->frames[i]);
		len += place->frames[len].file != 0;
	}
	return len;
}

/* Without memory it is not remembered: what is told of it later has no place. */
static void stack_remember(struct lock_places *places, const struct stack_key *key,
			   const struct lock_place *place)
{
	struct lock_stack *stack = stack_find(places, key);

	if (stack)
		HASH_DEL(places->stacks, stack);
	else
		stack = calloc(1, sizeof(*stack));
	if (!stack)
		return;
	if (HASH_COUNT(places->stacks) >= LOCK_STACKS_MAX)
		stack_forget(places, places->stacks);
	stack->key = *key;
	stack->place = *place;
	HASH_ADD(hh, places->stacks, key, sizeof(stack->key), stack);
	if (!stack->hh.tbl)
		free(stack);
}

bool lock_places_meet(struct lock_places *places, const struct files *files,
		      const struct stack_key *key, const struct stack *stack,
		      struct lock_place *place)
{
	struct stack_key own = key_of_stack(key);
	const struct lock_stack *known;

	if (stack->end != STACK_BEGAN_BEFORE) {
		if (!place_find(places, files, stack, place))
			return false;
		stack_remember(places, &own, place);
		return true;
	}
	known = stack_find(places, &own);
	if (known)
		*place = known->place;
	return known;
}

uint64_t lock_places_hold(struct lock_places *places, const struct stack_key *key, uint64_t ns)
{
	const struct stack_key own = key_of_stack(key);
	struct lock_stack *stack = stack_find(places, &own);

	if (!stack)
		return ns;
	stack->lasting_ns += ns;
	return 0;
}

uint64_t lock_places_release(struct lock_places *places, const struct stack_key *key)
{
	const struct stack_key own = key_of_stack(key);
	struct lock_stack *stack = stack_find(places, &own);
	uint64_t ns = stack ? stack->lasting_ns : 0;

	if (stack)
		stack->lasting_ns = 0;
	return ns;
}

/* --- names ---------------------------------------------------------------------------------- */

/* Where all of them wrap, it is the innermost. */
enum lock_place_name lock_place_text(const struct lock_places *places,
				     const struct lock_place *place,
				     char out[static CALL_SITE_BYTES])
{
	const struct call_site *found = NULL;

	for (size_t i = 0; i < LOCK_FRAMES && place->frames[i].file; i++) {
		const struct call_site *site = call_sites_at(&places->code, &place->frames[i]);

		if (!site)
			return LOCK_PLACE_FORGOTTEN;
		if (!site->named)
			return LOCK_PLACE_ASKED;
		if (!found)
			found = site;
		if (!site_wraps(site)) {
			found = site;
			break;
		}
	}
	if (!found)
		return LOCK_PLACE_FORGOTTEN;
	call_site_text(found, out);
	return LOCK_PLACE_NAMED;
}
