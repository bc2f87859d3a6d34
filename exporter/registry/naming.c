/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/naming.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "base/utf8.h"
#include "identity/identity.h"
#include "identity/runtime.h"
#include "kernel/trees.h"

#define WALK_SHARE 10 /* a walk takes at most one part in so many of the time */

static uint32_t named_slot(const struct naming *naming, const struct named *named)
{
	return (uint32_t)(named - naming->trees);
}

void naming_init(struct naming *naming, struct kernel *kernel, struct ledger *ledger,
		 struct namer *namer)
{
	memset(naming, 0, sizeof(*naming));
	naming->kernel = kernel;
	naming->ledger = ledger;
	naming->namer = namer;
}

/* Whether @tree, as it is now, is the one that @named is about. */
static bool tree_read(const struct naming *naming, const struct named *named, struct tree *tree)
{
	return trees_read(naming->kernel, named_slot(naming, named), tree) == 1 &&
	       named_is(named, tree);
}

/* --- what a tree is shown as ----------------------------------------------------------------- */

/* What the tree has lost so far is of the workload that it was. */
static void fold_drops(struct naming *naming, const struct named *named)
{
	uint64_t drops[DROP_REASONS] = { 0 };

	kernel_drops_take(naming->kernel, named_slot(naming, named), drops);
	if (named->known)
		ledger_fold_drops(naming->ledger, named->handle, drops);
}

/* From the workload that it was. The row of a name stands still then; `other` has more in its own.
 */
static void leave(struct naming *naming, const struct named *named, bool moves)
{
	if (moves)
		fold_drops(naming, named);
	if (moves && named->handle == LEDGER_OTHER)
		naming->left_other[named_slot(naming, named)] = true;
	ledger_leave(naming->ledger, named->handle);
}

static void show(struct naming *naming, struct named *named, struct identity *identity)
{
	char name[IDENTITY_NAME_LEN];
	ledger_handle handle;

	/* Names that would be shown alike are one workload. */
	utf8_copy(name, sizeof(name), identity->name);
	memcpy(identity->name, name, sizeof(name));
	handle = ledger_join(naming->ledger, identity, named->uid);
	if (named->known)
		leave(naming, named, handle != named->handle);
	named_show(named, handle, handle == LEDGER_OTHER && strcmp(name, LEDGER_OTHER_TEXT) != 0);
}

/* An executable that cannot be read is counted once. */
static void know(struct naming *naming, struct named *named, struct identity *identity,
		 uint64_t now_ns)
{
	uint32_t slot = named_slot(naming, named);

	show(naming, named, identity);
	trees_set_tasks(naming->kernel, slot, runtime_runs_tasks(identity->runtime));
	if (named_know(named, identity->exe[0], now_ns))
		kernel_drop(naming->kernel, slot, DROP_IDENTITY);
}

static void comm_copy(char out[static COMM_LEN + 1], const struct tree *tree)
{
	memcpy(out, tree->comm, COMM_LEN);
	out[COMM_LEN] = '\0';
}

static void read_comm(const struct tree *tree, struct identity *out)
{
	char comm[COMM_LEN + 1];

	comm_copy(comm, tree);
	identity_from_comm(comm, tree->uid, out);
}

/* The founder's name is none of an heir. */
static void head_comm(const struct named *named, const struct tree *tree,
		      char out[static COMM_LEN + 1])
{
	if (named->orphan)
		out[0] = '\0';
	else
		comm_copy(out, tree);
}

/* What every user may know; the name of a thread at least. */
static void read_public(const struct naming *naming, const struct named *named,
			const struct tree *tree, struct identity *out)
{
	char comm[COMM_LEN + 1];

	head_comm(named, tree, comm);
	if (!named_has_head(named) || namer_read_public(naming->namer, (pid_t)named_pid(named),
							named_pid_start_ns(named), comm, out))
		read_comm(tree, out);
}

/* Does what the state machine says; @identity is the answer, if one has come, and lost. */
static void carry_out(struct naming *naming, struct named *named, enum named_step step,
		      const struct tree *tree, struct identity *identity, uint64_t now_ns)
{
	switch (step) {
	case NAMED_WAIT:
		return;
	case NAMED_KNOW:
		know(naming, named, identity, now_ns);
		return;
	case NAMED_KNOW_PUBLIC:
		read_public(naming, named, tree, identity);
		know(naming, named, identity, now_ns);
		return;
	case NAMED_KNOW_COMM:
		read_comm(tree, identity);
		know(naming, named, identity, now_ns);
		return;
	case NAMED_LATE:
		kernel_drop(naming->kernel, named_slot(naming, named), DROP_IDENTITY_LATE);
		return;
	case NAMED_INHERIT:
		trees_set_head(naming->kernel, named_slot(naming, named), &named->eldest);
		return;
	}
}

/* --- what the kernel side tells -------------------------------------------------------------- */

static void question_forget(struct naming *naming, uint32_t slot)
{
	if (naming->asked == slot)
		naming->asked = 0;
}

void naming_look(struct naming *naming, uint32_t slot, const struct tree *tree, uint64_t now_ns)
{
	struct named *named = &naming->trees[slot];
	struct identity identity;
	bool exec, ended;

	named_look(named, tree, now_ns);
	ended = trees_take_flags(naming->kernel, slot, TREE_ORPHAN);
	exec = trees_take_flags(naming->kernel, slot, TREE_EXEC);
	if (named_changed(named, exec, ended, now_ns))
		question_forget(naming, slot);
	if (named->refused && ledger_has_room(naming->ledger, named->uid))
		named_room(named, now_ns);
	if (named_shows_public(named, now_ns)) {
		read_public(naming, named, tree, &identity);
		show(naming, named, &identity);
	}
}

static void process_meet(void *arg, const void *row)
{
	const struct tree_process *process = row;
	struct naming *naming = arg;

	named_meet(&naming->trees[process->tree % TREES_MAX], process);
}

/* The kernel side is told before the heir is asked about, and then tells of its exec or end. */
static void heirs_take(struct naming *naming, uint64_t now_ns)
{
	struct identity identity;
	struct tree tree;

	for (uint32_t slot = 1; slot < TREES_MAX; slot++) {
		struct named *named = &naming->trees[slot];

		if (named_heir_is_due(named, now_ns) && tree_read(naming, named, &tree))
			carry_out(naming, named, named_inherit(named, tree.processes, now_ns),
				  &tree, &identity, now_ns);
	}
}

int naming_find_heirs(struct naming *naming, uint64_t now_ns)
{
	uint64_t began_ns = clock_monotonic_ns(), ended_ns;
	bool wanted = false;
	int r;

	for (uint32_t slot = 1; slot < TREES_MAX; slot++) {
		named_walk(&naming->trees[slot]);
		wanted |= named_heir_is_due(&naming->trees[slot], now_ns);
	}
	if (!wanted || began_ns < naming->walk_ns)
		return 0;
	r = loader_walk_rows(naming->kernel->loader, WALK_PROCESSES, process_meet, naming);
	ended_ns = clock_monotonic_ns();
	naming->walk_ns = ended_ns + (ended_ns - began_ns) * WALK_SHARE;
	heirs_take(naming, now_ns);
	return r;
}

/* --- questions and answers ------------------------------------------------------------------- */

/* Also where the namer has ended: the question then tells. */
static bool naming_can_ask(const struct naming *naming)
{
	const struct helper *helper = namer_helper(naming->namer);

	return helper_is_ready(helper) || !helper_alive(helper);
}

static void answered(struct naming *naming, uint32_t slot, int r, struct identity *identity,
		     uint64_t now_ns)
{
	struct named *named = &naming->trees[slot];
	struct tree tree;

	if (tree_read(naming, named, &tree))
		carry_out(naming, named, named_answer(named, r, tree.processes, now_ns), &tree,
			  identity, now_ns);
}

static void question_ask(struct naming *naming, uint32_t slot, uint64_t now_ns)
{
	struct named *named = &naming->trees[slot];
	struct identity identity;
	char comm[COMM_LEN + 1];
	struct tree tree;

	if (!tree_read(naming, named, &tree)) {
		named->due_ns = 0; /* another one, which the next look finds */
		return;
	}
	head_comm(named, &tree, comm);
	if (namer_ask(naming->namer, (pid_t)named_pid(named), named_pid_start_ns(named), comm,
		      now_ns + named_answer_ns(named))) {
		answered(naming, slot, -EPIPE, &identity, now_ns);
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
			answered(naming, slot, r, &identity, now_ns);
		if (r == -EPIPE)
			return;
	}
}

void naming_exchange(struct naming *naming, uint64_t budget_ns)
{
	uint64_t now_ns = clock_monotonic_ns(), begin_ns = now_ns, end_ns;
	struct pollfd answer = { .fd = helper_fd(namer_helper(naming->namer)), .events = POLLIN };
	uint32_t slot;

	for (;;) {
		answers_take(naming, now_ns);
		slot = named_next(naming->trees, now_ns);
		if (slot && naming_can_ask(naming)) {
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

/* --- the rest -------------------------------------------------------------------------------- */

bool naming_take_left_other(struct naming *naming, uint32_t slot)
{
	bool left = naming->left_other[slot];

	naming->left_other[slot] = false;
	return left;
}

void naming_settle(struct naming *naming, uint32_t slot, const struct tree *tree)
{
	struct named *named = &naming->trees[slot];
	struct identity identity;

	carry_out(naming, named, named_settle(named), tree, &identity, clock_monotonic_ns());
	named->due_ns = 0;
}

void naming_forget(struct naming *naming, uint32_t slot)
{
	struct named *named = &naming->trees[slot];

	if (!named->found_ns)
		return;
	fold_drops(naming, named);
	if (named->known)
		ledger_leave(naming->ledger, named->handle);
	*named = (struct named){ 0 };
	naming->left_other[slot] = false;
	question_forget(naming, slot);
}

uint64_t naming_due_ns(const struct naming *naming)
{
	bool ready = naming_can_ask(naming);
	uint64_t due_ns = helper_due_ns(namer_helper(naming->namer));

	for (uint32_t slot = 1; slot < TREES_MAX; slot++) {
		uint64_t at_ns = named_due_ns(&naming->trees[slot], ready, naming->walk_ns);

		if (at_ns < due_ns)
			due_ns = at_ns;
	}
	return due_ns;
}
