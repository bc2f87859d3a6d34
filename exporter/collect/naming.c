/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/naming.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "base/utf8.h"
#include "identity/identity.h"
#include "identity/runtime.h"
#include "kernel/trees.h"

#define TRIES_MAX 8
#define RETRY_NS 20000000ULL /* doubled with each try: 5 s in all */
#define WALK_SHARE 10 /* a walk takes at most one part in so many of the time */

/* An answer takes less than a millisecond, unless the machine is busy, or the process hostile. */
#define ANSWER_NS 100000000ULL /* doubled each time it is too short, up to 800 ms */
#define ANSWER_DOUBLINGS_MAX 3U
#define LATE_NS 250000000ULL /* until it is asked again: doubled each time, up to 128 s */
#define LATE_DOUBLINGS_MAX 9U

static unsigned int at_most(unsigned int value, unsigned int limit)
{
	return value < limit ? value : limit;
}

static uint32_t named_slot(const struct naming *naming, const struct named *named)
{
	return (uint32_t)(named - naming->trees);
}

void naming_init(struct naming *naming, struct kernel *kernel, struct ledger *ledger,
		 struct namer *namer, naming_leaves_fn leaves_other, void *arg)
{
	memset(naming, 0, sizeof(*naming));
	naming->kernel = kernel;
	naming->ledger = ledger;
	naming->namer = namer;
	naming->leaves_other = leaves_other;
	naming->arg = arg;
}

/* What the tree has lost so far is of the workload that it was. */
static void named_fold_drops(struct naming *naming, const struct named *named)
{
	uint64_t drops[DROP_REASONS] = { 0 };

	kernel_drops_take(naming->kernel, named_slot(naming, named), drops);
	if (named->known)
		ledger_fold_drops(naming->ledger, named->handle, drops);
}

/* It becomes another workload. The row of a name stands still then; `other` has more in its own. */
static void named_move(struct naming *naming, const struct named *named)
{
	named_fold_drops(naming, named);
	if (named->handle == LEDGER_OTHER)
		naming->leaves_other(naming->arg, named_slot(naming, named));
}

/* @named is shown as @identity from now on. */
static void named_show(struct naming *naming, struct named *named, struct identity *identity)
{
	char name[IDENTITY_NAME_LEN];
	ledger_handle handle;

	/* Names that would be shown alike are one workload. */
	utf8_copy(name, sizeof(name), identity->name);
	memcpy(identity->name, name, sizeof(name));
	handle = ledger_join(naming->ledger, identity, named->uid);
	if (named->known && handle != named->handle)
		named_move(naming, named);
	if (named->known)
		ledger_leave(naming->ledger, named->handle);
	named->handle = handle;
	named->refused = handle == LEDGER_OTHER && strcmp(name, LEDGER_OTHER_TEXT) != 0;
	named->known = true;
}

/* Its executable cannot be read: that is counted once. */
static void named_unread(struct naming *naming, struct named *named)
{
	if (!named->unread)
		kernel_drop(naming->kernel, named_slot(naming, named), DROP_IDENTITY);
	named->due_ns = clock_monotonic_ns() +
			(LATE_NS << at_most(named->unread++, LATE_DOUBLINGS_MAX));
}

static void named_know(struct naming *naming, struct named *named, struct identity *identity)
{
	named_show(naming, named, identity);
	trees_set_tasks(naming->kernel, named_slot(naming, named),
			runtime_runs_tasks(identity->runtime));
	named->whole = identity->exe[0];
	named->orphan = false;
	named->tries = 0;
	named->late = 0;
	named->due_ns = 0;
	if (!named->whole)
		named_unread(naming, named);
}

static void comm_copy(char out[static COMM_LEN + 1], const struct tree *tree)
{
	memcpy(out, tree->comm, COMM_LEN);
	out[COMM_LEN] = '\0';
}

/* What was known stays known. */
static void named_give_up(struct naming *naming, struct named *named, const struct tree *tree)
{
	char comm[COMM_LEN + 1];
	struct identity identity;

	named->due_ns = 0;
	named->orphan = false;
	if (named->known)
		return;
	comm_copy(comm, tree);
	identity_from_comm(comm, tree->uid, &identity);
	named_know(naming, named, &identity);
}

/* It could not be looked at: later, or nobody is left who could be. */
static void named_retry(struct naming *naming, struct named *named, const struct tree *tree,
			uint64_t now_ns)
{
	if (!tree->processes || ++named->tries == TRIES_MAX)
		named_give_up(naming, named, tree);
	else
		named->due_ns = now_ns + (RETRY_NS << named->tries);
}

/* The thread that tells who the tree is. */
static pid_t named_pid(const struct named *named)
{
	return (pid_t)(named->orphan ? named->eldest.tid : named->tgid);
}

static uint64_t named_pid_start(const struct named *named)
{
	return named->orphan ? named->eldest.thread_start_ns : named->start_ns;
}

/* The founder's name is none of an heir. */
static void named_comm(const struct named *named, const struct tree *tree,
		       char out[static COMM_LEN + 1])
{
	if (named->orphan)
		out[0] = '\0';
	else
		comm_copy(out, tree);
}

/* Who it is by what every user may know; by the name of a thread at least. */
static void named_read_public(const struct naming *naming, const struct named *named,
			      const struct tree *tree, struct identity *out)
{
	char comm[COMM_LEN + 1];

	named_comm(named, tree, comm);
	if ((named->orphan && !named->heir) ||
	    namer_read_public(naming->namer, named_pid(named), named_pid_start(named), comm, out)) {
		comm_copy(comm, tree);
		identity_from_comm(comm, tree->uid, out);
	}
}

/* Until the answer comes. */
static void named_show_public(struct naming *naming, struct named *named, const struct tree *tree)
{
	struct identity identity;

	if (named->known)
		return;
	named_read_public(naming, named, tree, &identity);
	named_show(naming, named, &identity);
}

static bool named_is(const struct named *named, const struct tree *tree)
{
	return named->found_ns && named->tgid == tree->tgid && named->start_ns == tree->start_ns;
}

/* What the kernel side has told of the tree since. */
static void named_note(struct naming *naming, uint32_t slot, struct named *named, uint64_t now_ns)
{
	bool ended = trees_take_flags(naming->kernel, slot, TREE_ORPHAN);

	if (ended && named->whole && now_ns - named->found_ns > NAMING_HEIR_NS)
		ended = false;
	/*
	 * A wrapper that listens and then becomes the server: the new name takes the history over,
	 * the old one stands still until it is forgotten, so no rate counts anything twice.
	 */
	if (trees_take_flags(naming->kernel, slot, TREE_EXEC) || ended) {
		named->tries = 0;
		named->late = 0;
		named->unread = 0;
		named->due_ns = now_ns;
		if (naming->asked == slot)
			naming->asked = 0; /* the answer may be about what was before */
	}
	named->heir &= !ended;
	named->orphan |= ended;
}

/* Whether it can be asked about; else its heir has to be found before. */
static bool named_has_head(const struct named *named)
{
	return !named->orphan || named->heir;
}

void naming_look(struct naming *naming, uint32_t slot, const struct tree *tree, uint64_t now_ns)
{
	struct named *named = &naming->trees[slot];

	if (!named_is(named, tree))
		*named = (struct named){
			.tgid = tree->tgid,
			.start_ns = tree->start_ns,
			.uid = tree->uid,
			.found_ns = now_ns,
			.due_ns = now_ns,
		};
	named_note(naming, slot, named, now_ns);
	if (named->refused && (!named->due_ns || named->unread) &&
	    ledger_has_room(naming->ledger, named->uid))
		named->due_ns = now_ns;
	if (named->due_ns && named_has_head(named) &&
	    now_ns - named->found_ns >= NAMING_PATIENCE_NS)
		named_show_public(naming, named, tree);
}

/* --- heirs ---------------------------------------------------------------------------------- */

static bool elder(const struct tree_process *a, const struct tree_process *b)
{
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns;
	return a->tgid < b->tgid;
}

static void process_meet(void *arg, const struct tree_process *process)
{
	struct naming *naming = arg;
	struct named *named = &naming->trees[process->tree % TREES_MAX];

	if (!named_has_head(named) && process->tid &&
	    (!named->eldest.tid || elder(process, &named->eldest)))
		named->eldest = *process;
}

/* Before it is asked about: an exec or an end that comes meanwhile is then told of. */
static void heir_take(struct naming *naming, uint32_t slot, struct named *named, uint64_t now_ns)
{
	const struct tree_process *heir = &named->eldest;
	struct tree tree;

	if (trees_read(naming->kernel, slot, &tree) != 1 || !named_is(named, &tree))
		return;
	if (!heir->tid) {
		named_retry(naming, named, &tree, now_ns);
		return;
	}
	trees_set_head(naming->kernel, slot, heir);
	named->tgid = heir->tgid;
	named->start_ns = heir->start_ns;
	named->heir = true;
}

static bool heir_is_due(const struct named *named, uint64_t now_ns)
{
	return !named_has_head(named) && named->due_ns && named->due_ns <= now_ns;
}

int naming_find_heirs(struct naming *naming, uint64_t now_ns)
{
	uint64_t began_ns = clock_monotonic_ns(), ended_ns;
	bool wanted = false;
	int r;

	for (uint32_t slot = 1; slot < TREES_MAX; slot++) {
		if (!named_has_head(&naming->trees[slot]))
			naming->trees[slot].eldest.tid = 0;
		wanted |= heir_is_due(&naming->trees[slot], now_ns);
	}
	if (!wanted || began_ns < naming->walk_ns)
		return 0;
	r = loader_walk_rows(naming->kernel->loader, WALK_PROCESSES, process_meet, naming);
	ended_ns = clock_monotonic_ns();
	naming->walk_ns = ended_ns + (ended_ns - began_ns) * WALK_SHARE;
	for (uint32_t slot = 1; slot < TREES_MAX; slot++)
		if (heir_is_due(&naming->trees[slot], now_ns))
			heir_take(naming, slot, &naming->trees[slot], now_ns);
	return r;
}

/* --- questions and answers ------------------------------------------------------------------ */

/* It keeps the namer waiting, or what is in its way does. */
static void named_late(struct naming *naming, struct named *named, uint64_t now_ns)
{
	kernel_drop(naming->kernel, named_slot(naming, named), DROP_IDENTITY_LATE);
	named->due_ns = now_ns + (LATE_NS << at_most(named->late++, LATE_DOUBLINGS_MAX));
}

/* Nobody is left who could tell more. */
static void named_know_public(struct naming *naming, struct named *named, const struct tree *tree)
{
	struct identity identity;

	named_read_public(naming, named, tree, &identity);
	named_know(naming, named, &identity);
}

static void named_answered(struct naming *naming, struct named *named, int r,
			   struct identity *identity, uint64_t now_ns)
{
	struct tree tree;

	if (trees_read(naming->kernel, named_slot(naming, named), &tree) != 1 ||
	    !named_is(named, &tree))
		return;
	if (!r) {
		named_know(naming, named, identity);
	} else if (r == -ETIMEDOUT) {
		named_late(naming, named, now_ns);
	} else if (r == -EPIPE) {
		named_know_public(naming, named, &tree);
	} else if (r == -ESRCH && tree.processes && !named->orphan) {
		named->orphan = true;
		named->heir = false;
	} else {
		named->heir = false;
		named_retry(naming, named, &tree, now_ns);
	}
}

/* Of those that are due the one that is asked about first; 0: none is. */
static uint32_t question_next(const struct naming *naming, uint64_t now_ns)
{
	uint32_t next = 0;

	for (uint32_t slot = 1; slot < TREES_MAX; slot++) {
		const struct named *named = &naming->trees[slot], *first = &naming->trees[next];

		if (!named->due_ns || named->due_ns > now_ns || !named_has_head(named))
			continue;
		if (!next || named->late < first->late ||
		    (named->late == first->late && named->due_ns < first->due_ns))
			next = slot;
	}
	return next;
}

static void question_ask(struct naming *naming, uint32_t slot, uint64_t now_ns)
{
	struct named *named = &naming->trees[slot];
	uint64_t answer_ns = ANSWER_NS << at_most(named->late, ANSWER_DOUBLINGS_MAX);
	char comm[COMM_LEN + 1];
	struct tree tree;
	int r;

	if (trees_read(naming->kernel, slot, &tree) != 1 || !named_is(named, &tree)) {
		named->due_ns = 0; /* another one, which the next look finds */
		return;
	}
	named_comm(named, &tree, comm);
	r = namer_ask(naming->namer, named_pid(named), named_pid_start(named), comm,
		      now_ns + answer_ns);
	if (r) {
		named_answered(naming, named, -EPIPE, NULL, now_ns);
		return;
	}
	naming->asked = slot;
	naming->busy_ns = now_ns;
}

static void answers_take(struct naming *naming, uint64_t now_ns)
{
	struct identity identity;
	uint32_t slot;
	int r;

	while ((r = namer_take(naming->namer, now_ns, &identity)) != -EAGAIN) {
		if (r == -ETIMEDOUT)
			naming->busy_ns = now_ns;
		slot = naming->asked;
		naming->asked = 0;
		if (slot)
			named_answered(naming, &naming->trees[slot], r, &identity, now_ns);
		if (r == -EPIPE)
			return;
	}
}

void naming_exchange(struct naming *naming, uint64_t budget_ns)
{
	uint64_t now_ns = clock_monotonic_ns(), begin_ns = now_ns, end_ns;
	struct pollfd answer = { .fd = namer_fd(naming->namer), .events = POLLIN };
	uint32_t slot;

	for (;;) {
		answers_take(naming, now_ns);
		slot = question_next(naming, now_ns);
		if (slot && (namer_is_ready(naming->namer) || !namer_alive(naming->namer))) {
			question_ask(naming, slot, now_ns);
			continue;
		}
		end_ns = budget_ns + (naming->busy_ns < begin_ns ? naming->busy_ns : begin_ns);
		if ((!slot && !naming->asked) || now_ns >= end_ns)
			return;
		poll(&answer, 1, (int)((end_ns - now_ns) / NS_PER_MS + 1));
		now_ns = clock_monotonic_ns();
	}
}

/* --- the rest ------------------------------------------------------------------------------- */

void naming_settle(struct naming *naming, uint32_t slot, const struct tree *tree)
{
	named_give_up(naming, &naming->trees[slot], tree);
	naming->trees[slot].due_ns = 0;
}

void naming_forget(struct naming *naming, uint32_t slot)
{
	if (naming->trees[slot].found_ns)
		named_fold_drops(naming, &naming->trees[slot]);
	if (naming->trees[slot].known)
		ledger_leave(naming->ledger, naming->trees[slot].handle);
	naming->trees[slot].found_ns = 0;
	naming->trees[slot].known = false;
	naming->trees[slot].orphan = false;
	naming->trees[slot].refused = false;
	naming->trees[slot].due_ns = 0;
	if (naming->asked == slot)
		naming->asked = 0;
}

/* When something is to be done about @named, whose question waits until the namer is @ready. */
static uint64_t named_due_ns(const struct naming *naming, const struct named *named, bool ready)
{
	uint64_t shown_ns = named->found_ns + NAMING_PATIENCE_NS;

	if (!named->due_ns)
		return UINT64_MAX;
	if (!named_has_head(named))
		return named->due_ns > naming->walk_ns ? named->due_ns : naming->walk_ns;
	if (ready && (named->known || named->due_ns < shown_ns))
		return named->due_ns;
	return named->known ? UINT64_MAX : shown_ns;
}

uint64_t naming_due_ns(const struct naming *naming)
{
	bool ready = namer_is_ready(naming->namer) || !namer_alive(naming->namer);
	uint64_t due_ns = namer_due_ns(naming->namer);

	for (uint32_t slot = 1; slot < TREES_MAX; slot++) {
		uint64_t at_ns = named_due_ns(naming, &naming->trees[slot], ready);

		if (at_ns < due_ns)
			due_ns = at_ns;
	}
	return due_ns;
}
