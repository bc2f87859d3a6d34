/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/types.h"

#include <bpf/btf.h>

#include "base/cleanup.h"

const struct btf *types_get(struct types *types)
{
	if (!types->btf)
		types->btf = btf__load_vmlinux_btf();
	return types->btf;
}

void types_forget(struct types *types)
{
	btf__free(TAKE_PTR(types->btf));
}
