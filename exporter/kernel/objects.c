/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/objects.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "base/units.h"
#include "identity/cgroup.h"
#include "kernel/hooks.h"
#include "kernel/spares.h"
#include "skeletons.h"

int object_knobs_read(struct object_knobs *knobs, const char *proc_root, const struct btf *types)
{
	struct cgroup_hierarchies hierarchies;
	int r = map_sizes_read(&knobs->sizes);

	if (r < 0)
		return r;
	cgroup_hierarchies_read(proc_root, &hierarchies);
	knobs->hierarchy = hierarchies.v1;
	knobs->spares = spares_are_needed(types);
	knobs->casts = hooks_have_cast(types);
	knobs->storage_refuses = hooks_storage_refuses(types);
	knobs->mib_overflows = hooks_net_counter(types, "LINUX_MIB_LISTENOVERFLOWS");
	knobs->mib_deferred = hooks_net_counter(types, "LINUX_MIB_TCPDEFERACCEPTDROP");
	return 0;
}

#define OBJECT_OPEN(name)                                                               \
	static void name##_destroy(void *skeleton)                                      \
	{                                                                               \
		name##_bpf__destroy(skeleton);                                          \
	}                                                                               \
	static int name##_open(const struct object_knobs *knobs, struct object *object) \
	{                                                                               \
		struct name##_bpf *skeleton = name##_bpf__open();                       \
                                                                                        \
		if (!skeleton)                                                          \
			return -errno;                                                  \
		skeleton->rodata->cpus = knobs->sizes.cpus;                             \
		skeleton->rodata->shards = knobs->sizes.shards;                         \
		skeleton->rodata->endpoints_max = knobs->sizes.endpoints;               \
		skeleton->rodata->pools_max = knobs->sizes.pools;                       \
		skeleton->rodata->hierarchy = knobs->hierarchy;                         \
		skeleton->rodata->casts = knobs->casts;                                 \
		skeleton->rodata->storage_refuses = knobs->storage_refuses;             \
		skeleton->rodata->mib_overflows = knobs->mib_overflows;                 \
		skeleton->rodata->mib_deferred = knobs->mib_deferred;                   \
		if (!knobs->spares)                                                     \
			spares_leave_out(skeleton->obj);                                \
		*object = (struct object){ skeleton->obj, skeleton, name##_destroy };   \
		return 0;                                                               \
	}
SKELETON_LIST(OBJECT_OPEN)

int object_open(const char *name, const struct object_knobs *knobs, struct object *object)
{
	static const struct {
		const char *name;
		int (*open)(const struct object_knobs *knobs, struct object *object);
	} objects[] = {
#define OBJECT(name) { #name, name##_open },
		SKELETON_LIST(OBJECT)
#undef OBJECT
	};

	for (size_t i = 0; i < COUNT(objects); i++)
		if (!strcmp(name, objects[i].name))
			return objects[i].open(knobs, object);
	return -ENOENT;
}

void object_close(struct object *object)
{
	if (object->skeleton)
		object->destroy(object->skeleton);
	*object = (struct object){ 0 };
}

size_t object_programs(const struct object *object)
{
	struct bpf_program *program;
	size_t len = 0;

	if (!object->bpf)
		return 0;
	bpf_object__for_each_program(program, object->bpf) len += bpf_program__autoload(program);
	return len;
}

bool object_has_hooks(const struct object *object, const struct btf *types)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, object->bpf)
	{
		if (!hooks_have(types, program))
			return false;
	}
	return true;
}
