/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/named.h"

#include <errno.h>

#include "abi/limits.h"

#define TRIES_MAX 8
#define RETRY_NS 20000000ULL /* doubled with each try: 5 s in all */
/* An answer takes less than a millisecond, unless the machine is busy, or the process hostile. */
#define ANSWER_NS 100000000ULL /* doubled each time it is too short, up to 800 ms */
#define ANSWER_DOUBLINGS_MAX 3U
#define LATE_NS 250000000ULL /* until it is asked again: doubled each time, up to 128 s */
#define LATE_DOUBLINGS_MAX 9U

static uint64_t doubled(uint64_t ns, unsigned int times, unsigned int limit)
{
	return ns << (times < limit ? times : limit);
}

/* --- what happens ---------------------------------------------------------------------------- */

bool named_is(const struct named *named, const struct tree *tree)
{
	return named->found_ns && named->tgid == tree->tgid && named->start_ns == tree->start_ns;
}

void named_look(struct named *named, const struct tree *tree, uint64_t now_ns)
{
	if (named_is(named, tree))
		return;
	*named = (struct named){
		.tgid = tree->tgid,
		.start_ns = tree->start_ns,
		.uid = tree->uid,
		.found_ns = now_ns,
		.due_ns = now_ns,
	};
}

/*
 * A wrapper that listens and then becomes the server: the new name takes the history over, the old
 * one stands still until it is forgotten, so no rate counts anything twice.
 */
bool named_changed(struct named *named, bool exec, bool ended, uint64_t now_ns)
{
	if (named->whole && now_ns - named->found_ns > NAMED_HEIR_NS)
		ended = false;
	named->heir &= !ended;
	named->orphan |= ended;
	if (!exec && !ended)
		return false;
	named->tries = 0;
	named->late = 0;
	named->unread = 0;
	named->due_ns = now_ns;
	return true;
}

void named_room(struct named *named, uint64_t now_ns)
{
	if (named->refused && (!named->due_ns || named->unread))
		named->due_ns = now_ns;
}

enum named_step named_settle(struct named *named)
{
	named->due_ns = 0;
	named->orphan = false;
	return named->known ? NAMED_WAIT : NAMED_KNOW_COMM;
}

/* The process could not be read: later, or with what is known if that has been tried enough. */
static enum named_step named_retry(struct named *named, bool lives, uint64_t now_ns)
{
	named->heir = false;
	if (!lives || ++named->tries == TRIES_MAX)
		return named_settle(named);
	named->due_ns = now_ns + doubled(RETRY_NS, named->tries, TRIES_MAX);
	return NAMED_WAIT;
}

enum named_step named_answer(struct named *named, int r, bool lives, uint64_t now_ns)
{
	switch (r) {
	case 0:
		return NAMED_KNOW;
	case -ETIMEDOUT:
		named->due_ns = now_ns + doubled(LATE_NS, named->late++, LATE_DOUBLINGS_MAX);
		return NAMED_LATE;
	case -EPIPE:
		return NAMED_KNOW_PUBLIC;
	case -ESRCH:
		if (!lives || named->orphan)
			return named_retry(named, lives, now_ns);
		named->orphan = true;
		named->heir = false;
		return NAMED_WAIT;
	default:
		return named_retry(named, lives, now_ns);
	}
}

void named_show(struct named *named, ledger_handle handle, bool refused)
{
	named->handle = handle;
	named->refused = refused;
	named->known = true;
}

bool named_know(struct named *named, bool whole, uint64_t now_ns)
{
	named->whole = whole;
	named->orphan = false;
	named->tries = 0;
	named->late = 0;
	named->due_ns = 0;
	if (whole)
		return false;
	named->due_ns = now_ns + doubled(LATE_NS, named->unread, LATE_DOUBLINGS_MAX);
	return !named->unread++;
}

/* --- heirs ----------------------------------------------------------------------------------- */

static bool elder(const struct tree_process *a, const struct tree_process *b)
{
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns;
	return a->tgid < b->tgid;
}

void named_walk(struct named *named)
{
	if (!named_has_head(named))
		named->eldest.tid = 0;
}

void named_meet(struct named *named, const struct tree_process *process)
{
	if (!named_has_head(named) && process->tid &&
	    (!named->eldest.tid || elder(process, &named->eldest)))
		named->eldest = *process;
}

bool named_heir_is_due(const struct named *named, uint64_t now_ns)
{
	return !named_has_head(named) && named->due_ns && named->due_ns <= now_ns;
}

enum named_step named_inherit(struct named *named, bool lives, uint64_t now_ns)
{
	if (!named->eldest.tid)
		return named_retry(named, lives, now_ns);
	named->tgid = named->eldest.tgid;
	named->start_ns = named->eldest.start_ns;
	named->heir = true;
	return NAMED_INHERIT;
}

/* --- questions ------------------------------------------------------------------------------- */

bool named_has_head(const struct named *named)
{
	return !named->orphan || named->heir;
}

bool named_shows_public(const struct named *named, uint64_t now_ns)
{
	return !named->known && named->due_ns && named_has_head(named) &&
	       now_ns - named->found_ns >= NAMED_PATIENCE_NS;
}

uint32_t named_pid(const struct named *named)
{
	return named->orphan ? named->eldest.tid : named->tgid;
}

uint64_t named_pid_start_ns(const struct named *named)
{
	return named->orphan ? named->eldest.thread_start_ns : named->start_ns;
}

uint64_t named_answer_ns(const struct named *named)
{
	return doubled(ANSWER_NS, named->late, ANSWER_DOUBLINGS_MAX);
}

uint32_t named_next(const struct named *trees, uint64_t now_ns)
{
	uint32_t next = 0;

	for (uint32_t slot = 1; slot < TREES_MAX; slot++) {
		const struct named *named = &trees[slot], *first = &trees[next];

		if (!named->due_ns || named->due_ns > now_ns || !named_has_head(named))
			continue;
		if (!next || named->late < first->late ||
		    (named->late == first->late && named->due_ns < first->due_ns))
			next = slot;
	}
	return next;
}

uint64_t named_due_ns(const struct named *named, bool ready, uint64_t walk_ns)
{
	uint64_t shown_ns = named->found_ns + NAMED_PATIENCE_NS;

	if (!named->due_ns)
		return UINT64_MAX;
	if (!named_has_head(named))
		return named->due_ns > walk_ns ? named->due_ns : walk_ns;
	if (ready && (named->known || named->due_ns < shown_ns))
		return named->due_ns;
	return named->known ? UINT64_MAX : shown_ns;
}
