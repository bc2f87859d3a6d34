/* SPDX-License-Identifier: Apache-2.0 */
#include "security/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* What every role goes on using: memory, time, files that are read, and the way out. */
static const int calls_of_all[] = {
	SCMP_SYS(access),
	SCMP_SYS(brk),
	SCMP_SYS(clock_getres),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(close),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2),
	SCMP_SYS(fadvise64),
	SCMP_SYS(fcntl),
	SCMP_SYS(fstat),
	SCMP_SYS(futex),
	SCMP_SYS(getcwd),
	SCMP_SYS(getegid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getpid),
	SCMP_SYS(getppid),
	SCMP_SYS(getrandom),
	SCMP_SYS(gettid),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(getuid),
	SCMP_SYS(lseek),
	SCMP_SYS(lstat),
	SCMP_SYS(madvise),
	SCMP_SYS(mremap),
	SCMP_SYS(munmap),
	SCMP_SYS(nanosleep),
	SCMP_SYS(newfstatat),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(pread64),
	SCMP_SYS(preadv),
	SCMP_SYS(read),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(readv),
	SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sched_yield),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(sendmsg),
	SCMP_SYS(sendto),
	SCMP_SYS(stat),
	SCMP_SYS(statx),
	SCMP_SYS(time),
	SCMP_SYS(uname),
	SCMP_SYS(write),
	SCMP_SYS(writev),
};

/* Descriptors that are waited for, connections that are served, and what GnuTLS asks for. */
static const int calls_of_server[] = {
	SCMP_SYS(accept),        SCMP_SYS(accept4),     SCMP_SYS(dup),
	SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl),   SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_pwait2),  SCMP_SYS(epoll_wait),  SCMP_SYS(eventfd2),
	SCMP_SYS(fstatfs),       SCMP_SYS(getdents64),  SCMP_SYS(getpeername),
	SCMP_SYS(getrusage),     SCMP_SYS(getsockname), SCMP_SYS(getsockopt),
	SCMP_SYS(pipe2),         SCMP_SYS(pselect6),    SCMP_SYS(sched_getaffinity),
	SCMP_SYS(select),        SCMP_SYS(sendfile),    SCMP_SYS(setsockopt),
	SCMP_SYS(shutdown),      SCMP_SYS(signalfd4),   SCMP_SYS(sysinfo),
	SCMP_SYS(times),
};

/* What a new thread begins with. */
static const int calls_of_threads[] = { SCMP_SYS(rseq), SCMP_SYS(set_robust_list) };

/* Nothing here has any business with these: whoever calls them is somebody else. */
static const int calls_of_intruders[] = {
	SCMP_SYS(execve),
	SCMP_SYS(execveat),
	SCMP_SYS(finit_module),
	SCMP_SYS(init_module),
	SCMP_SYS(kexec_load),
	SCMP_SYS(mount),
	SCMP_SYS(pivot_root),
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(ptrace),
	SCMP_SYS(setns),
	SCMP_SYS(setresuid),
	SCMP_SYS(setuid),
	SCMP_SYS(unshare),
};

/* bpf(2) on what is open; nothing is loaded and nothing attached. */
static const int bpf_commands[] = {
	BPF_MAP_LOOKUP_ELEM,
	BPF_MAP_UPDATE_ELEM,
	BPF_MAP_DELETE_ELEM,
	BPF_MAP_GET_NEXT_KEY,
	BPF_MAP_LOOKUP_AND_DELETE_ELEM,
	BPF_OBJ_GET_INFO_BY_FD,
	BPF_ITER_CREATE,
};

static int add_all(scmp_filter_ctx filter, uint32_t action, const int *calls, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		int r = seccomp_rule_add(filter, action, calls[i], 0);

		if (r)
			return r;
	}
	return 0;
}

/* @call only if no bit of @forbidden is in its argument @index. */
static int add_without(scmp_filter_ctx filter, int call, unsigned int index, uint64_t forbidden)
{
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 1,
				SCMP_CMP(index, SCMP_CMP_MASKED_EQ, forbidden, 0));
}

static int add_equal(scmp_filter_ctx filter, int call, unsigned int index, uint64_t value)
{
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 1,
				SCMP_CMP(index, SCMP_CMP_EQ, value));
}

/* Files are opened to be read, memory is never executable, signals go to oneself (abort). */
static int add_limited(scmp_filter_ctx filter)
{
	const uint64_t writing = O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
	int r = add_without(filter, SCMP_SYS(openat), 2, writing);

	if (!r)
		r = add_without(filter, SCMP_SYS(open), 1, writing);
	if (!r)
		r = add_without(filter, SCMP_SYS(mmap), 2, PROT_EXEC);
	if (!r)
		r = add_without(filter, SCMP_SYS(mprotect), 2, PROT_EXEC);
	if (!r)
		r = add_equal(filter, SCMP_SYS(tgkill), 0, (uint64_t)getpid());
	return r;
}

static int add_server(scmp_filter_ctx filter)
{
	int r = add_all(filter, SCMP_ACT_ALLOW, calls_of_server, COUNT(calls_of_server));

	for (size_t i = 0; !r && i < COUNT(bpf_commands); i++)
		r = add_equal(filter, SCMP_SYS(bpf), 0, (uint64_t)bpf_commands[i]);
	return r;
}

static int add_attaching(scmp_filter_ctx filter)
{
	static const unsigned long perf_commands[] = { PERF_EVENT_IOC_ENABLE,
						       PERF_EVENT_IOC_DISABLE,
						       PERF_EVENT_IOC_SET_BPF };
	int r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(perf_event_open), 0);

	if (!r)
		r = add_equal(filter, SCMP_SYS(bpf), 0, BPF_LINK_CREATE);
	for (size_t i = 0; !r && i < COUNT(perf_commands); i++)
		r = add_equal(filter, SCMP_SYS(ioctl), 1, perf_commands[i]);
	/* Threads that remove probes; no process. */
	if (!r)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				     SCMP_CMP(0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
	if (!r)
		r = add_all(filter, SCMP_ACT_ALLOW, calls_of_threads, COUNT(calls_of_threads));
	return r;
}

static int add_role(scmp_filter_ctx filter, enum sandbox_role role)
{
	int r = add_all(filter, SCMP_ACT_ALLOW, calls_of_all, COUNT(calls_of_all));

	if (!r)
		r = add_all(filter, SCMP_ACT_KILL_PROCESS, calls_of_intruders,
			    COUNT(calls_of_intruders));
	if (!r)
		r = add_limited(filter);
	if (!r && role != SANDBOX_NAMER)
		r = add_server(filter);
	if (!r && role == SANDBOX_SERVER_ATTACHING)
		r = add_attaching(filter);
	return r;
}

static void cleanup_filter(scmp_filter_ctx *filter)
{
	if (*filter)
		seccomp_release(*filter);
}

int seccomp_enter(enum sandbox_role role, enum sandbox_mode mode)
{
	uint32_t others = mode == SANDBOX_LOG ? SCMP_ACT_LOG : SCMP_ACT_ERRNO(ENOSYS);
	_cleanup_(cleanup_filter) scmp_filter_ctx filter = seccomp_init(others);
	int r;

	if (!filter)
		return -ENOMEM;
	r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1);
	if (!r || r == -EOPNOTSUPP) /* not logged before Linux 4.14 */
		r = add_role(filter, role);
	if (!r)
		r = seccomp_load(filter);
	return r;
}
