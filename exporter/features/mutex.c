/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutex: every acquisition of a pthread mutex, by probes on the watched processes (mutexes.h). Off
 * unless --mutex.backend=uprobe: each lock of a watched process then costs 2 to 20 us more.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/units.h"
#include "features/feature.h"
#include "features/mutexes.h"

struct mutex {
	struct mutexes *mutexes;
	struct mutex_row rows[MUTEX_RESULTS]; /* what the last snapshot points to */
	struct budget_cost refresh;
};

/* Said once per process and change: what is not observed, and why. */
static void mutex_say(void *arg, pid_t pid, enum mutex_result result, const char *meaning)
{
	const struct log *log = arg;

	if (result == MUTEX_ATTACHED)
		log_debug(log, "mutexes of process %d: %s", (int)pid, meaning);
	else
		log_warn(log, "mutexes of process %d: %s", (int)pid, meaning);
}

static void mutex_close(void *state)
{
	struct mutex *mutex = state;

	mutexes_free(mutex->mutexes);
	free(mutex);
}

static int mutex_open(const struct feature_env *env, void **state)
{
	struct loader *loader = env->kernel->loader;
	struct mutex *mutex;
	int r;

	if (!env->on)
		return -ENOENT;
	mutex = calloc(1, sizeof(*mutex));
	if (!mutex)
		return -ENOMEM;
	log_warn(env->log, "--mutex.backend=uprobe: each pthread_mutex_lock of a watched process "
			   "costs 2 to 20 us more while the exporter runs");
	r = mutexes_new(loader, env->proc_root, mutex_say, (void *)env->log, &mutex->mutexes);
	if (!r) {
		*state = mutex;
		return 0;
	}
	log_error(env->log, "--mutex.backend=uprobe: %s: only waits that sleep are seen",
		  strerror(-r));
	mutex_close(mutex);
	return r == -EACCES ? 0 : r;
}

static int mutex_collect(void *state, struct collection *collection)
{
	struct mutex *mutex = state;
	struct budget *budget = &collection->budget;

	return BUDGET_STEP(budget, &mutex->refresh,
			   mutexes_refresh(mutex->mutexes, budget->step_ns));
}

static void mutex_show_self(void *state, struct snapshot *snapshot)
{
	struct mutex *mutex = state;

	mutexes_count(mutex->mutexes, mutex->rows);
	snapshot->mutexes = mutex->rows;
	snapshot->mutexes_len = MUTEX_RESULTS;
}

static int mutex_try(void *state)
{
	struct mutex *mutex = state;

	return mutexes_try(mutex->mutexes);
}

/* Events of one process, not of a CPU; threads that remove probes, and no process. */
static const struct sandbox_call mutex_calls[] = {
	SANDBOX_CALL(SYS_bpf, INT_IS(0, BPF_LINK_CREATE)),
	SANDBOX_CALL(SYS_clone, A_THREAD(0)),
	SANDBOX_CALL(SYS_ioctl, INT_IS(1, PERF_EVENT_IOC_DISABLE)),
	SANDBOX_CALL(SYS_ioctl, INT_IS(1, PERF_EVENT_IOC_ENABLE)),
	SANDBOX_CALL(SYS_ioctl, INT_IS(1, PERF_EVENT_IOC_SET_BPF)),
	SANDBOX_CALL(SYS_perf_event_open, INT_IS(2, -1), INT_IS(3, -1),
		     IS(4, PERF_FLAG_FD_CLOEXEC)),
	SANDBOX_ANY(SYS_rseq),
	SANDBOX_ANY(SYS_set_robust_list),
};

/*
 * Libraries are mapped later, and probed by their path. Where uprobes are perf events some kernels
 * give them to an administrator only.
 */
static const struct needs mutex_needs = {
	.capabilities = { CAPABILITY(CAP_BPF) | CAPABILITY(CAP_PERFMON) |
				  CAPABILITY(CAP_SYS_PTRACE),
			  CAPABILITY(CAP_SYS_ADMIN) | CAPABILITY(CAP_SYS_PTRACE) },
	.capabilities_len = 2,
	.calls = mutex_calls,
	.calls_len = COUNT(mutex_calls),
	.threads = true,
	.files = true,
};

static const struct flag mutex_flags[] = {
	FLAG("mutex.backend", "BACKEND", "futex", FLAG_BACKEND,
	     "How waits for mutexes are observed: futex (those that\n"
	     "sleep; free of charge while nobody waits), or uprobe\n"
	     "(also counts acquisitions and sees spinning; each\n"
	     "lock of a watched process then costs 2 to 20 us more:\n"
	     "for minutes, not for production)."),
};

const struct feature feature_mutex = {
	.plan = {
		.name = "mutex",
		.requires = "threads",
		.optional = true,
		.backends = { { .label = "uprobe", .object = "mutex" } },
	},
	.off = "futex",
	.flags = mutex_flags,
	.flags_len = COUNT(mutex_flags),
	.open = mutex_open,
	.close = mutex_close,
	.collect = mutex_collect,
	.show_self = mutex_show_self,
	.needs = &mutex_needs,
	.try = mutex_try,
};
