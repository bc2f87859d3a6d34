/* SPDX-License-Identifier: Apache-2.0 */
#include "features/mutexes.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1 /* an element that could not be added has hh.tbl == NULL */
#include <uthash.h>

#include "base/cleanup.h"
#include "identity/functions.h"
#include "identity/mapped.h"
#include "identity/maps.h"
#include "identity/proc.h"
#include "kernel/uprobes.h"

#define REFRESH_NS 1000000000ULL
#define EXAMINE_AGAIN_NS (10 * 1000000000ULL)
#define EXAMINED_PER_REFRESH 16
#define REMOVERS_MAX 64

/* What a thread removes, and what it posts then. */
struct removal {
	struct uprobes *uprobes;
	sem_t *removed;
};

struct process {
	struct tree_process identity;
	enum mutex_result result;
	enum mapped_kind library; /* if attached: what to, MAPPED_KINDS: the executable */
	uint64_t inode; /* of that */
	uint64_t examined_ns;
	struct uprobes *uprobes; /* NULL: none */
	bool seen; /* by the last walk */
	UT_hash_handle hh;
};

struct mutexes {
	struct loader *loader;
	const char *proc_root;
	mutexes_note_fn note;
	void *arg;
	struct bpf_program *entry, *back;
	struct process *processes;
	size_t attached;
	unsigned int removers; /* threads that have not been waited for */
	sem_t removed;
	uint64_t refreshed_ns;
};

_Static_assert(MUTEX_FUNCTIONS <= UPROBES_MAX, "more functions than a process can have probed");

static const char *const function_names[] = {
#define FUNCTION(id, name) [MUTEX_##id] = name,
	MUTEX_FUNCTION_LIST(FUNCTION)
#undef FUNCTION
};

static const struct {
	const char *label, *meaning;
} results[] = {
#define RESULT(id, label, meaning) [MUTEX_##id] = { label, meaning },
	MUTEX_RESULT_LIST(RESULT)
#undef RESULT
};

/* --- removing ------------------------------------------------------------------------------- */

static void *remover_main(void *arg)
{
	struct removal *removal = arg;
	sem_t *removed = removal->removed;

	uprobes_destroy(removal->uprobes);
	free(removal);
	sem_post(removed);
	return NULL;
}

static int remover_start(struct mutexes *mutexes, struct uprobes *uprobes)
{
	struct removal *removal = malloc(sizeof(*removal));
	pthread_attr_t attributes;
	pthread_t thread;
	int r;

	if (!removal || mutexes->removers == REMOVERS_MAX) {
		free(removal);
		return -EAGAIN;
	}
	*removal = (struct removal){ uprobes, &mutexes->removed };
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&thread, &attributes, remover_main, removal);
	pthread_attr_destroy(&attributes);
	if (r)
		free(removal);
	else
		mutexes->removers++;
	return -r;
}

/* Without a thread it is done here and now: slower, but done. */
static void uprobes_remove(struct mutexes *mutexes, struct uprobes *uprobes)
{
	while (mutexes->removers && !sem_trywait(&mutexes->removed))
		mutexes->removers--;
	if (remover_start(mutexes, uprobes))
		uprobes_destroy(uprobes);
}

static void process_detach(struct mutexes *mutexes, struct process *process)
{
	if (!process->uprobes)
		return;
	uprobes_remove(mutexes, TAKE_PTR(process->uprobes));
	mutexes->attached--;
}

/* --- attaching ------------------------------------------------------------------------------ */

/* The kernel looks the file up by name: this name leads to what was opened, whatever happens. */
static enum mutex_result process_attach(struct mutexes *mutexes, struct process *process, int fd,
					const uint64_t offsets[static MUTEX_FUNCTIONS])
{
	struct uprobes_place place = { 0 };
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	place.path = path;
	for (__u32 i = 0; i < MUTEX_FUNCTIONS; i++) {
		if (!offsets[i])
			continue;
		place.offsets[place.len] = offsets[i];
		place.cookies[place.len++] = mutex_cookie(mapped_layout(process->library), i);
	}
	r = uprobes_attach(mutexes->entry, mutexes->back, (pid_t)process->identity.tgid, &place,
			   &process->uprobes);
	if (r)
		return r == -ESRCH ? MUTEX_UNREADABLE : MUTEX_REFUSED;
	mutexes->attached++;
	return MUTEX_ATTACHED;
}

/* --- looking -------------------------------------------------------------------------------- */

/* Tries one library; PENDING: it has no such functions, go on with the next. */
static enum mutex_result library_examine(struct mutexes *mutexes, struct process *process,
					 int dir_fd, const struct mapped_file *file)
{
	_cleanup_(cleanup_close) int fd = -1;
	uint64_t offsets[MUTEX_FUNCTIONS];

	if (file->deleted)
		return MUTEX_REPLACED;
	fd = mapped_open(dir_fd, file);
	if (fd < 0)
		return fd == -ENOENT ? MUTEX_REPLACED : MUTEX_UNREADABLE;
	if (functions_find(fd, function_names, MUTEX_FUNCTIONS, offsets) <= 0 ||
	    !offsets[MUTEX_LOCK])
		return MUTEX_PENDING;
	process->inode = file->inode;
	return process_attach(mutexes, process, fd, offsets);
}

/* A static program has them itself, and says by another function whose they are. */
static enum mutex_result executable_examine(struct mutexes *mutexes, struct process *process,
					    int dir_fd)
{
	_cleanup_(cleanup_close) int fd = maps_open_executable(dir_fd, 0);
	static const char *const musl[] = { "__init_libc" };
	uint64_t offsets[MUTEX_FUNCTIONS], of_musl[1];

	if (fd < 0)
		return MUTEX_UNREADABLE;
	if (functions_find(fd, function_names, MUTEX_FUNCTIONS, offsets) <= 0 ||
	    !offsets[MUTEX_LOCK])
		return MUTEX_NO_FUNCTIONS;
	process->library = functions_find(fd, musl, 1, of_musl) == 1 ? MAPPED_MUSL : MAPPED_KINDS;
	process->inode = 0;
	return process_attach(mutexes, process, fd, offsets);
}

static enum mutex_result libraries_examine(struct mutexes *mutexes, struct process *process,
					   int dir_fd, const struct mapped *mapped)
{
	enum mutex_result result;

	for (int kind = 0; kind < MAPPED_KINDS; kind++) {
		if (!mapped->files[kind].found)
			continue;
		process->library = kind;
		result = library_examine(mutexes, process, dir_fd, &mapped->files[kind]);
		if (result != MUTEX_PENDING)
			return result;
	}
	return executable_examine(mutexes, process, dir_fd);
}

static enum mutex_result process_look(struct mutexes *mutexes, struct process *process)
{
	pid_t pid = (pid_t)process->identity.tgid;
	_cleanup_(cleanup_close) int dir_fd = proc_open(mutexes->proc_root, pid);
	_cleanup_(cleanup_free) struct mapped *mapped = malloc(sizeof(*mapped));

	if (dir_fd < 0 || !mapped || mapped_read(dir_fd, mapped) || !mapped->any)
		return process->uprobes ? MUTEX_ATTACHED : MUTEX_UNREADABLE;
	if (process->uprobes) {
		if (!process->inode || (mapped->files[process->library].found &&
					mapped->files[process->library].inode == process->inode))
			return MUTEX_ATTACHED;
		process_detach(mutexes, process);
		return MUTEX_UNMAPPED;
	}
	if (mutexes->attached >= MUTEXES_PROCESSES_MAX)
		return MUTEX_OVER_LIMIT;
	return libraries_examine(mutexes, process, dir_fd, mapped);
}

static void process_examine(struct mutexes *mutexes, struct process *process, uint64_t now_ns)
{
	enum mutex_result result = process_look(mutexes, process);

	process->examined_ns = now_ns;
	if (result == process->result)
		return;
	process->result = result;
	mutexes->note(mutexes->arg, (pid_t)process->identity.tgid, result, results[result].meaning);
}

/* --- which processes there are -------------------------------------------------------------- */

static void process_remove(struct mutexes *mutexes, struct process *process)
{
	process_detach(mutexes, process);
	HASH_DEL(mutexes->processes, process);
	free(process);
}

static void process_add(struct mutexes *mutexes, const struct tree_process *identity)
{
	struct process *process = calloc(1, sizeof(*process));

	if (!process)
		return; /* it is met again by the next walk */
	process->identity = *identity;
	process->seen = true;
	HASH_ADD(hh, mutexes->processes, identity.tgid, sizeof(identity->tgid), process);
	if (!process->hh.tbl)
		free(process);
}

/* After an exec, and where the number was given anew, it is another process. */
static void process_meet(void *arg, const void *row)
{
	const struct tree_process *identity = row;
	struct mutexes *mutexes = arg;
	struct process *process;

	if (identity->tid && identity->tid != identity->tgid)
		return; /* one more thread of the same process */
	HASH_FIND(hh, mutexes->processes, &identity->tgid, sizeof(identity->tgid), process);
	if (process && !walk_process_is(&process->identity, identity)) {
		process_remove(mutexes, process);
		process = NULL;
	}
	if (process)
		process->seen = true;
	else
		process_add(mutexes, identity);
}

static void processes_forget(struct mutexes *mutexes)
{
	struct process *process, *next;

	HASH_ITER (hh, mutexes->processes, process, next) {
		if (!process->seen)
			process_remove(mutexes, process);
	}
}

static int examined_earlier(const struct process *a, const struct process *b)
{
	return (a->examined_ns > b->examined_ns) - (a->examined_ns < b->examined_ns);
}

/* Those first that have waited longest, and before them those that were never examined. */
static void processes_examine(struct mutexes *mutexes, uint64_t now_ns)
{
	struct process *process, *next;
	int examined = 0;

	HASH_SORT(mutexes->processes, examined_earlier);
	HASH_ITER (hh, mutexes->processes, process, next) {
		if (process->examined_ns && now_ns - process->examined_ns < EXAMINE_AGAIN_NS)
			return;
		if (examined++ == EXAMINED_PER_REFRESH)
			return;
		process_examine(mutexes, process, now_ns);
	}
}

int mutexes_refresh(struct mutexes *mutexes, uint64_t now_ns)
{
	struct process *process, *next;
	int r;

	if (mutexes->refreshed_ns && now_ns - mutexes->refreshed_ns < REFRESH_NS)
		return 0;
	mutexes->refreshed_ns = now_ns;
	HASH_ITER (hh, mutexes->processes, process, next) {
		process->seen = false;
	}
	r = loader_walk_rows(mutexes->loader, WALK_PROCESSES, process_meet, mutexes);
	if (r)
		return r;
	processes_forget(mutexes);
	processes_examine(mutexes, now_ns);
	return 0;
}

void mutexes_count(const struct mutexes *mutexes, struct mutex_row rows[static MUTEX_RESULTS])
{
	const struct process *process, *next;

	for (int i = 0; i < MUTEX_RESULTS; i++)
		rows[i] = (struct mutex_row){ .result = results[i].label };
	HASH_ITER (hh, mutexes->processes, process, next) {
		rows[process->result].processes++;
	}
}

void mutexes_free(struct mutexes *mutexes)
{
	struct process *process, *next;

	if (!mutexes)
		return;
	HASH_ITER (hh, mutexes->processes, process, next) {
		process_remove(mutexes, process);
	}
	for (; mutexes->removers; mutexes->removers--)
		while (sem_wait(&mutexes->removed) && errno == EINTR)
			;
	sem_destroy(&mutexes->removed);
	free(mutexes);
}

/*
 * Probes the exporter itself, for a moment: tells whether the kernel allows it, and lets libbpf
 * find out what this kernel can do while it may still load programs.
 */
int mutexes_try(struct mutexes *mutexes)
{
	struct process process = { .identity.tgid = (__u32)getpid() };
	enum mutex_result result = process_look(mutexes, &process);

	process_detach(mutexes, &process);
	return result == MUTEX_ATTACHED ? 0 : -EACCES;
}

int mutexes_new(struct loader *loader, const char *proc_root, mutexes_note_fn note, void *arg,
		struct mutexes **out)
{
	struct mutexes *mutexes = calloc(1, sizeof(*mutexes));
	int r;

	if (!mutexes)
		return -ENOMEM;
	mutexes->loader = loader;
	mutexes->proc_root = proc_root;
	mutexes->note = note;
	mutexes->arg = arg;
	mutexes->entry = loader_program(loader, "mutex_entry");
	mutexes->back = loader_program(loader, "mutex_return");
	sem_init(&mutexes->removed, 0, 0);
	r = mutexes_try(mutexes);
	if (r)
		mutexes_free(mutexes);
	else
		*out = mutexes;
	return r;
}
