/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling.h"

#include <asm/perf_regs.h>
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define HZ 1999 /* no multiple of what programs do regularly */
#define STACK_BYTES 32768
#define RECORD_BYTES_MAX 65536
#define RING_BYTES (32UL << 20) /* of a CPU: a power of two */
#define CPUS_MAX 256
#define EVENTS_MAX 4096

#ifdef __aarch64__
#define REGISTERS_MASK ((1ULL << PERF_REG_ARM64_MAX) - 1)
/* The kernel's numbers are those of DWARF. */
static const uint8_t numbers[] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
				   11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
				   22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32 };
#else
#define REGISTERS_MASK (0x1ffULL | 0xffULL << PERF_REG_X86_R8)
/* Of DWARF, in the kernel's order: ax bx cx dx si di bp sp ip r8 to r15. */
static const uint8_t numbers[] = { 0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15 };
#endif
_Static_assert(sizeof(numbers) == SAMPLE_REGISTERS, "registers");

struct ring {
	int fd; /* of the event that it was made for */
	struct perf_event_mmap_page *page; /* NULL: there is none */
	const uint8_t *data;
};

struct sampling {
	struct ring rings[CPUS_MAX];
	int events[EVENTS_MAX]; /* all of them */
	size_t events_len;
	uint64_t lost;
	uint8_t record[RECORD_BYTES_MAX] __attribute__((aligned(8)));
};

/* Of a thread, and of those that it will start. */
static int event_open(pid_t tid, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = HZ,
		.freq = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = REGISTERS_MASK,
		.sample_stack_user = STACK_BYTES,
		.mmap = 1,
		.inherit = 1,
	};
	long fd = syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static int ring_open(struct ring *ring, int fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *memory = mmap(NULL, page + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return -errno;
	*ring = (struct ring){ .fd = fd, .page = memory, .data = (const uint8_t *)memory + page };
	return 0;
}

/* Events of a CPU share a ring. */
static int event_add(struct sampling *sampling, pid_t tid, int cpu)
{
	struct ring *ring = &sampling->rings[cpu];
	int fd = event_open(tid, cpu);

	if (fd == -ENODEV || fd == -ESRCH)
		return 0; /* the CPU is not online, or the thread has ended */
	if (fd < 0)
		return fd;
	if (sampling->events_len == EVENTS_MAX) {
		close(fd);
		return -ENOSPC;
	}
	sampling->events[sampling->events_len++] = fd;
	if (!ring->page)
		return ring_open(ring, fd);
	return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) ? -errno : 0;
}

static int process_add(struct sampling *sampling, pid_t pid);

static int children_add(struct sampling *sampling, const char *folder, const char *tid)
{
	_cleanup_(cleanup_fclose) FILE *file = NULL;
	char path[64];
	int r = 0, child;

	snprintf(path, sizeof(path), "%s/%.16s/children", folder, tid);
	file = fopen(path, "re");
	while (!r && file && fscanf(file, "%d", &child) == 1)
		r = process_add(sampling, child);
	return r;
}

static int thread_add(struct sampling *sampling, pid_t tid)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int r = 0;

	for (int cpu = 0; !r && cpu < cpus && cpu < CPUS_MAX; cpu++)
		r = event_add(sampling, tid, cpu);
	return r;
}

/* With its descendants. One that has ended has none. */
static int process_add(struct sampling *sampling, pid_t pid)
{
	struct dirent *entry;
	char folder[32];
	DIR *threads;
	int r = 0;

	snprintf(folder, sizeof(folder), "/proc/%d/task", pid);
	threads = opendir(folder);
	while (!r && threads && (entry = readdir(threads))) {
		if (*entry->d_name == '.')
			continue;
		r = thread_add(sampling, (pid_t)strtol(entry->d_name, NULL, 10));
		if (!r)
			r = children_add(sampling, folder, entry->d_name);
	}
	if (threads)
		closedir(threads);
	return r;
}

int sampling_open(const pid_t *pids, size_t len, struct sampling **out)
{
	struct sampling *sampling = calloc(1, sizeof(*sampling));
	int r = sampling ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < len; i++)
		r = process_add(sampling, pids[i]);
	if (r)
		sampling_close(sampling);
	else
		*out = sampling;
	return r;
}

void sampling_close(struct sampling *sampling)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE) + RING_BYTES;

	for (size_t i = 0; sampling && i < CPUS_MAX; i++)
		if (sampling->rings[i].page)
			munmap(sampling->rings[i].page, bytes);
	for (size_t i = 0; sampling && i < sampling->events_len; i++)
		close(sampling->events[i]);
	free(sampling);
}

/* --- records --------------------------------------------------------------------------------- */

struct words {
	const uint8_t *at, *end;
};

static uint64_t word_take(struct words *words)
{
	uint64_t word = 0;

	if (words->end - words->at < 8)
		return 0;
	memcpy(&word, words->at, 8);
	words->at += 8;
	return word;
}

/* PERF_RECORD_SAMPLE: pid and tid, the ABI, registers, and the stack with its lengths. */
static void sample_take(const struct sampling *sampling, const struct perf_event_header *header,
			const struct sampling_calls *calls)
{
	struct words words = { sampling->record + sizeof(*header),
			       sampling->record + header->size };
	uint64_t ids = word_take(&words), bytes;
	struct sample sample = { .pid = (pid_t)(uint32_t)ids, .tid = (pid_t)(ids >> 32) };

	sample.in_kernel = (header->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
			   PERF_RECORD_MISC_KERNEL;
	if (word_take(&words) != PERF_SAMPLE_REGS_ABI_64)
		return;
	for (size_t i = 0; i < sizeof(numbers); i++)
		sample.registers[numbers[i]] = word_take(&words);
	bytes = word_take(&words);
	if (!bytes || bytes + 8 > (uint64_t)(words.end - words.at))
		return;
	sample.stack = words.at;
	words.at += bytes;
	sample.stack_bytes = word_take(&words);
	if (sample.stack_bytes <= bytes)
		calls->take(&sample, calls->arg);
}

static void record_take(struct sampling *sampling, const struct sampling_calls *calls)
{
	const struct perf_event_header *header = (const struct perf_event_header *)sampling->record;
	struct words words = { sampling->record + sizeof(*header),
			       sampling->record + header->size };
	uint64_t first = word_take(&words);

	if (header->type == PERF_RECORD_SAMPLE)
		sample_take(sampling, header, calls);
	else if (header->type == PERF_RECORD_MMAP)
		calls->mapped((pid_t)(uint32_t)first, calls->arg);
	else if (header->type == PERF_RECORD_LOST)
		sampling->lost += word_take(&words);
}

/* A record may go on at the beginning of the ring. */
static void ring_copy(const struct ring *ring, uint64_t from, void *to, size_t bytes)
{
	size_t at = from % RING_BYTES, first = RING_BYTES - at;

	if (first > bytes)
		first = bytes;
	memcpy(to, ring->data + at, first);
	memcpy((uint8_t *)to + first, ring->data, bytes - first);
}

static void ring_read(struct sampling *sampling, const struct ring *ring,
		      const struct sampling_calls *calls)
{
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;

	while (tail < head) {
		struct perf_event_header header;

		ring_copy(ring, tail, &header, sizeof(header));
		if (header.size < sizeof(header))
			abort(); /* the kernel writes none */
		ring_copy(ring, tail, sampling->record, header.size);
		tail += header.size;
		__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
		record_take(sampling, calls);
	}
}

void sampling_read(struct sampling *sampling, const struct sampling_calls *calls)
{
	for (size_t i = 0; i < CPUS_MAX; i++)
		if (sampling->rings[i].page)
			ring_read(sampling, &sampling->rings[i], calls);
}

uint64_t sampling_lost(const struct sampling *sampling)
{
	return sampling->lost;
}
