/* SPDX-License-Identifier: Apache-2.0 */
#include "read/objects.h"

#include <bpf/libbpf.h>
#include <errno.h>

#include "discovery.skel.h"
#include "mutex.skel.h"
#include "read/hooks.h"
#include "read/spares.h"
#include "requests.skel.h"
#include "requests_syscall.skel.h"
#include "threads.skel.h"

#define OBJECT_PROGRAMS_MAX 32

#define OBJECT_OPEN(name)                                                                         \
	static void name##_destroy(void *skeleton)                                                \
	{                                                                                         \
		name##_bpf__destroy(skeleton);                                                    \
	}                                                                                         \
	static int name##_open(const struct map_sizes *sizes, bool spares, struct object *object) \
	{                                                                                         \
		struct name##_bpf *skeleton = name##_bpf__open();                                 \
                                                                                                  \
		if (!skeleton)                                                                    \
			return -errno;                                                            \
		skeleton->rodata->cpus = sizes->cpus;                                             \
		skeleton->rodata->shards = sizes->shards;                                         \
		skeleton->rodata->spares = spares;                                                \
		if (!spares)                                                                      \
			spares_leave_out(skeleton->obj);                                          \
		*object = (struct object){ skeleton->obj, skeleton, name##_destroy };             \
		return 0;                                                                         \
	}
OBJECT_OPEN(discovery)
OBJECT_OPEN(requests)
OBJECT_OPEN(requests_syscall)
OBJECT_OPEN(threads)
OBJECT_OPEN(mutex)

int object_open(enum object_id id, const struct map_sizes *sizes, bool spares,
		struct object *object)
{
	static int (*const open[OBJECTS])(const struct map_sizes *, bool, struct object *) = {
		[OBJECT_DISCOVERY] = discovery_open,
		[OBJECT_REQUESTS] = requests_open,
		[OBJECT_REQUESTS_SYSCALL] = requests_syscall_open,
		[OBJECT_THREADS] = threads_open,
		[OBJECT_MUTEX] = mutex_open,
	};

	return open[id](sizes, spares, object);
}

void object_close(struct object *object)
{
	if (object->skeleton)
		object->destroy(object->skeleton);
	*object = (struct object){ 0 };
}

bool object_has_hooks(const struct object *object)
{
	char reasons[OBJECT_PROGRAMS_MAX][HOOKS_REASON_BYTES] = { 0 }, missing[256];
	struct bpf_program *programs[OBJECT_PROGRAMS_MAX], *program;
	size_t len = 0;

	bpf_object__for_each_program(program, object->bpf) if (len < OBJECT_PROGRAMS_MAX)
		programs[len++] = program;
	hooks_find_missing(programs, len, reasons, missing, sizeof(missing));
	return !*missing;
}
