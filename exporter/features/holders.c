/* SPDX-License-Identifier: Apache-2.0 */
#include "features/holders.h"

#include <errno.h>
#include <string.h>

#include "abi/threads.h"
#include "base/utf8.h"
#include "model/ledger_kinds.h"

typedef void (*tell_fn)(struct ledger *ledger, ledger_handle handle, const char *pool,
			const char *holder, const struct blocked_row *part);

static struct pool_holders *holders_at(struct view *holders, uint32_t slot)
{
	return view_at(holders, slot);
}

int holders_open(struct view *holders, const struct loader *loader)
{
	return view_open(holders, loader, "pool_holders", sizeof(struct pool_holders));
}

static void holder_tell(const struct lock_holder *holder, struct ledger *ledger,
			ledger_handle handle, const char *pool, tell_fn tell)
{
	const struct blocked_row part = { .blocked_ns = __atomic_load_n(&holder->ns,
									__ATOMIC_RELAXED) };
	char raw[COMM_LEN + 1] = "", name[LEDGER_LABEL_LEN];

	if (__atomic_load_n(&holder->state, __ATOMIC_ACQUIRE) != HOLDER_NAMED || !part.blocked_ns)
		return;
	memcpy(raw, holder->name, COMM_LEN);
	utf8_copy(name, sizeof(name), raw);
	tell(ledger, handle, pool, name, &part);
}

static void slot_tell(struct view *holders, uint32_t slot, struct ledger *ledger,
		      ledger_handle handle, const char *pool, tell_fn tell)
{
	const struct pool_holders *at = holders_at(holders, slot);
	struct blocked_row other = { 0 };

	if (!at)
		return;
	for (size_t i = 0; i < LOCK_HOLDERS; i++)
		holder_tell(&at->holders[i], ledger, handle, pool, tell);
	other.blocked_ns = __atomic_load_n(&at->other_ns, __ATOMIC_RELAXED);
	if (other.blocked_ns)
		tell(ledger, handle, pool, LEDGER_OTHER_TEXT, &other);
}

void holders_add(struct view *holders, uint32_t slot, struct ledger *ledger, ledger_handle handle,
		 const char *pool)
{
	slot_tell(holders, slot, ledger, handle, pool, ledger_add_blocked);
}

void holders_fold(struct view *holders, uint32_t slot, struct ledger *ledger, ledger_handle handle,
		  const char *pool)
{
	slot_tell(holders, slot, ledger, handle, pool, ledger_fold_blocked);
}

void holders_clear(struct view *holders, uint32_t slot)
{
	struct pool_holders *at = holders_at(holders, slot);

	if (at)
		memset(at, 0, sizeof(*at));
}
