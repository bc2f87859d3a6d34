// SPDX-License-Identifier: Apache-2.0
/*
 * Processes that listen, and hold the lock of their own memory nearly all the time: a reader of
 * their /proc/PID/maps or memory waits. Each unmaps a dirty page of a file again and again, and the
 * file system, FUSE in a process of its own, takes --hold-ms to write it. Needs root, for the
 * mount, which only these processes see.
 */
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "workload.h"

#define PAGE_BYTES 4096L
#define PLACE "/tmp" /* hidden by a file system in memory */
#define FILE_PATH PLACE "/slow"
#define WRITES_MAX 4096
#define REQUEST_BYTES (1 << 20)

struct holder {
	long processes;
	long hold_ms;
};

/* A write that is answered later. */
struct written {
	uint64_t unique, due_ns;
	uint32_t bytes;
};

static void child_of_this(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* --- the file system ------------------------------------------------------------------------ */

static void reply(int fuse, uint64_t unique, int error, const void *body, size_t bytes)
{
	struct fuse_out_header header = { .len = (uint32_t)(sizeof(header) + bytes),
					  .error = error,
					  .unique = unique };
	struct iovec parts[] = { { &header, sizeof(header) }, { (void *)body, bytes } };

	if (writev(fuse, parts, bytes ? 2 : 1) < 0 && errno != ENOENT)
		die("answer of the file system");
}

static void reply_init(int fuse, const struct fuse_in_header *in)
{
	const struct fuse_init_in *wanted = (const void *)(in + 1);
	struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION,
				     .minor = wanted->minor < FUSE_KERNEL_MINOR_VERSION
						      ? wanted->minor
						      : FUSE_KERNEL_MINOR_VERSION,
				     .max_background = 1000,
				     .congestion_threshold = 1000,
				     .max_write = 65536 };

	reply(fuse, in->unique, 0, &out, sizeof(out));
}

static void reply_attributes(int fuse, const struct fuse_in_header *in, const struct holder *holder)
{
	struct fuse_attr_out out = { .attr_valid = 1000,
				     .attr = {
					     .ino = FUSE_ROOT_ID,
					     .mode = S_IFREG | 0600,
					     .nlink = 1,
					     .blksize = PAGE_BYTES,
					     .size = (uint64_t)(holder->processes * PAGE_BYTES) } };

	reply(fuse, in->unique, 0, &out, sizeof(out));
}

static void reply_read(int fuse, const struct fuse_in_header *in)
{
	static const char zeros[1 << 17];
	const struct fuse_read_in *read = (const void *)(in + 1);

	reply(fuse, in->unique, 0, zeros, read->size < sizeof(zeros) ? read->size : sizeof(zeros));
}

/* Returns the size of a write, which is to be answered later. */
static uint32_t request_answer(int fuse, const struct fuse_in_header *in,
			       const struct holder *holder)
{
	const struct fuse_open_out opened = { .open_flags = FOPEN_KEEP_CACHE };

	switch (in->opcode) {
	case FUSE_INIT:
		reply_init(fuse, in);
		break;
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		reply_attributes(fuse, in, holder);
		break;
	case FUSE_OPEN:
		reply(fuse, in->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		reply_read(fuse, in);
		break;
	case FUSE_WRITE:
		return ((const struct fuse_write_in *)(const void *)(in + 1))->size;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break; /* no answer */
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_FSYNC:
		reply(fuse, in->unique, 0, NULL, 0);
		break;
	default:
		reply(fuse, in->unique, -ENOSYS, NULL, 0);
	}
	return 0;
}

__attribute__((noreturn)) static void fuse_serve(int fuse, const struct holder *holder)
{
	static char request[REQUEST_BYTES] __attribute__((aligned(8)));
	static struct written writes[WRITES_MAX];
	const struct fuse_in_header *in = (const void *)request;
	size_t first = 0, end = 0; /* of writes: all take as long, so they end in order */

	child_of_this();
	for (;;) {
		struct pollfd ready = { .fd = fuse, .events = POLLIN };
		uint32_t bytes;

		while (first != end && writes[first % WRITES_MAX].due_ns <= clock_now_ns()) {
			const struct written *done = &writes[first++ % WRITES_MAX];
			struct fuse_write_out out = { .size = done->bytes };

			reply(fuse, done->unique, 0, &out, sizeof(out));
		}
		if (poll(&ready, 1, first == end ? -1 : 5) <= 0)
			continue;
		if (read(fuse, request, sizeof(request)) < (ssize_t)sizeof(*in)) {
			if (errno == EINTR || errno == EAGAIN || errno == ENOENT)
				continue;
			exit(0); /* no process uses it any more */
		}
		bytes = request_answer(fuse, in, holder);
		if (bytes)
			writes[end++ % WRITES_MAX] = (struct written){
				in->unique,
				clock_now_ns() + (uint64_t)holder->hold_ms * 1000000,
				bytes,
			};
	}
}

/* A process with a page of it must not have the file system's end as well: neither would end. */
static void fuse_start(const struct holder *holder)
{
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC), file;
	char options[100];
	pid_t pid;

	if (fuse < 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", PLACE, "tmpfs", 0, NULL))
		die("cannot mount");
	file = open(FILE_PATH, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	snprintf(options, sizeof(options), "fd=%d,rootmode=100600,user_id=0,group_id=0", fuse);
	if (file < 0 || mount("slow", FILE_PATH, "fuse", MS_NOSUID | MS_NODEV, options))
		die("cannot mount with FUSE");
	close(file);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid)
		fuse_serve(fuse, holder);
	close(fuse);
}

/* --- processes that hold their memory ------------------------------------------------------- */

__attribute__((noreturn)) static void hold(long number, int started)
{
	int file = open(FILE_PATH, O_RDWR | O_CLOEXEC);
	struct stat size;
	char *page = mmap(NULL, PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	child_of_this();
	listen_open("127.0.0.1", 0, 1);
	/* The size is asked for by fstat(2), not by a fault. */
	if (file < 0 || fstat(file, &size) || page == MAP_FAILED || write(started, "", 1) != 1)
		die("%s", FILE_PATH);
	for (;;) {
		if (mmap(page, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
			 number * PAGE_BYTES) == MAP_FAILED)
			die("mmap");
		++*(volatile char *)page;
		/* In its place: munmap(2) would give the lock back before it is written. */
		if (mmap(page, PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			 0) == MAP_FAILED)
			die("mmap");
	}
}

static void holders_start(const struct holder *holder)
{
	int started[2];
	char byte;

	if (pipe2(started, O_CLOEXEC))
		die("pipe");
	for (long i = 0; i < holder->processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (!pid)
			hold(i, started[1]);
	}
	for (long i = 0; i < holder->processes; i++)
		if (read(started[0], &byte, 1) != 1)
			die("pipe");
}

int main(int argc, char **argv)
{
	struct holder holder = { .processes = 1, .hold_ms = 1500 };
	long port = 0;
	const struct option_row options[] = {
		{ "port", &port, NULL, "of the first process, which holds nothing" },
		{ "processes", &holder.processes, NULL, "that do" },
		{ "hold-ms", &holder.hold_ms, NULL, "how long at a time" },
		{ 0 },
	};
	char line[64];

	options_parse(options, argc, argv);
	fuse_start(&holder);
	holders_start(&holder);
	ready_print(listen_open("127.0.0.1", port, 1));
	while (command_next(line, sizeof(line)) && strcmp(line, "quit"))
		command_done();
	exit(0);
}
