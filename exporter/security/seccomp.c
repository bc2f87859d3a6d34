/* SPDX-License-Identifier: Apache-2.0 */
#include "security/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/units.h"

/* What every role but the parser goes on using: memory, time, files that are read, and the way out.
 */
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
	SCMP_SYS(fstat),
	SCMP_SYS(fstatfs),
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
	SCMP_SYS(restart_syscall),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sched_yield),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(stat),
	SCMP_SYS(statx),
	SCMP_SYS(time),
	SCMP_SYS(uname),
	SCMP_SYS(write),
	SCMP_SYS(writev),
};

/*
 * In place of those: what malloc(3) of glibc and musl calls, pthread_once(3), the clock where it is
 * no function of the vDSO, and the way out. Nothing is opened, and no other descriptor is made.
 */
static const int calls_of_parser[] = {
	SCMP_SYS(brk),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(close),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(fstat),
	SCMP_SYS(futex),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(madvise),
	SCMP_SYS(mremap),
	SCMP_SYS(munmap),
	SCMP_SYS(newfstatat),
	SCMP_SYS(pread64),
	SCMP_SYS(read),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sysinfo),
	SCMP_SYS(write),
};

/* Descriptors that are waited for, connections that are served, and what GnuTLS asks for. */
static const int calls_of_server[] = {
	SCMP_SYS(accept),
	SCMP_SYS(accept4),
	SCMP_SYS(dup),
	SCMP_SYS(epoll_create1),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_pwait2),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(eventfd2),
	SCMP_SYS(getdents64),
	SCMP_SYS(getpeername),
	SCMP_SYS(getrusage),
	SCMP_SYS(getsockname),
	SCMP_SYS(getsockopt),
	SCMP_SYS(pipe2),
	SCMP_SYS(pselect6),
	SCMP_SYS(sched_getaffinity),
	SCMP_SYS(select),
	SCMP_SYS(sendfile),
	SCMP_SYS(shutdown),
	SCMP_SYS(signalfd4),
	SCMP_SYS(sysinfo),
	SCMP_SYS(times),
};

/* Processes that are started and ended, and what they need to enter a narrower sandbox. */
static const int calls_of_keeper[] = {
	SCMP_SYS(close_range),     SCMP_SYS(pidfd_open), SCMP_SYS(rseq),   SCMP_SYS(seccomp),
	SCMP_SYS(set_robust_list), SCMP_SYS(setrlimit),  SCMP_SYS(waitid),
};

/* Nothing here has any business with these: a process that calls them was taken over. */
static const int calls_of_intruders[] = {
	SCMP_SYS(execve),      SCMP_SYS(execveat),          SCMP_SYS(finit_module),
	SCMP_SYS(init_module), SCMP_SYS(kexec_load),        SCMP_SYS(mount),
	SCMP_SYS(pivot_root),  SCMP_SYS(process_vm_writev), SCMP_SYS(ptrace),
	SCMP_SYS(setns),       SCMP_SYS(setresuid),         SCMP_SYS(setuid),
	SCMP_SYS(unshare),
};

#define CALL(name, ...) SANDBOX_CALL(SCMP_SYS(name), __VA_ARGS__)

#define WRITING (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))

/* Not MSG_FASTOPEN, by which even a listener that was shut down connects (net/ipv4/tcp.c). */
#define SENDING (MSG_DONTWAIT | MSG_MORE | MSG_NOSIGNAL)

/*
 * Files are opened to be read; memory is never executable; what is sent goes to the connected peer;
 * no descriptor sends signals (F_SETOWN, F_SETSIG, F_NOTIFY, leases).
 */
static const struct sandbox_call limited_of_all[] = {
	CALL(fcntl, INT_IS(1, F_GETFD)),       CALL(fcntl, INT_IS(1, F_GETFL)),
	CALL(fcntl, INT_IS(1, F_SETFD)),       CALL(mmap, WITHOUT(2, PROT_EXEC)),
	CALL(mprotect, WITHOUT(2, PROT_EXEC)), CALL(open, WITHOUT(1, WRITING)),
	CALL(openat, WITHOUT(2, WRITING)),     CALL(sendto, INT_NONE_BUT(3, SENDING), IS(4, 0)),
};

static const struct sandbox_call limited_of_parser[] = {
	CALL(mmap, WITHOUT(2, PROT_EXEC)),
	CALL(mprotect, WITHOUT(2, PROT_EXEC)),
};

/*
 * bpf(2) on what is open: nothing is loaded and nothing attached. Options of sockets: those of
 * libmicrohttpd and http/, and not TCP_FASTOPEN_CONNECT or TCP_ULP. An address that sendmsg(2) is
 * given is in memory, which no filter sees.
 */
static const struct sandbox_call limited_of_server[] = {
	CALL(bpf, INT_IS(0, BPF_ITER_CREATE)),
	CALL(bpf, INT_IS(0, BPF_MAP_DELETE_ELEM)),
	CALL(bpf, INT_IS(0, BPF_MAP_LOOKUP_ELEM)),
	CALL(bpf, INT_IS(0, BPF_MAP_UPDATE_ELEM)),
	CALL(bpf, INT_IS(0, BPF_OBJ_GET_INFO_BY_FD)),
	CALL(fcntl, INT_IS(1, F_DUPFD_CLOEXEC)),
	CALL(fcntl, INT_IS(1, F_SETFL), WITHOUT(2, O_ASYNC)),
	CALL(sendmsg, INT_NONE_BUT(2, SENDING)),
	CALL(setsockopt, INT_IS(1, IPPROTO_TCP), INT_IS(2, TCP_CORK)),
	CALL(setsockopt, INT_IS(1, IPPROTO_TCP), INT_IS(2, TCP_NODELAY)),
	CALL(setsockopt, INT_IS(1, SOL_SOCKET), INT_IS(2, SO_LINGER)),
	CALL(setsockopt, INT_IS(1, SOL_SOCKET), INT_IS(2, SO_SNDBUF)),
};

#define PROCESS_FLAGS (CSIGNAL | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID)

/*
 * Processes like itself: no thread, nothing shared, no namespace; limits of its own only; and no
 * signal but the one that ends.
 */
static const struct sandbox_call limited_of_keeper[] = {
	CALL(clone, NONE_BUT(0, PROCESS_FLAGS)),
	CALL(pidfd_send_signal, INT_IS(1, SIGKILL), IS(2, 0), INT_IS(3, 0)),
	CALL(prctl, INT_IS(0, PR_SET_DUMPABLE), IS(1, 0)),
	CALL(prctl, INT_IS(0, PR_SET_NAME)),
	CALL(prctl, INT_IS(0, PR_SET_NO_NEW_PRIVS)),
	CALL(prctl, INT_IS(0, PR_SET_PDEATHSIG), IS(1, SIGKILL)),
	CALL(prctl, INT_IS(0, PR_SET_SECCOMP)), /* where libseccomp does not know seccomp(2) */
	CALL(prlimit64, INT_IS(0, 0)),
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

static int add_limited(scmp_filter_ctx filter, const struct sandbox_call *rows, size_t len)
{
	int r = 0;

	for (size_t i = 0; !r && i < len; i++) {
		struct scmp_arg_cmp compared[SANDBOX_CONDITIONS_MAX];

		for (unsigned int j = 0; j < rows[i].len; j++)
			compared[j] = (struct scmp_arg_cmp){
				.arg = rows[i].conditions[j].argument,
				.op = SCMP_CMP_MASKED_EQ,
				.datum_a = rows[i].conditions[j].mask,
				.datum_b = rows[i].conditions[j].value,
			};
		r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rows[i].number, rows[i].len,
					   compared);
	}
	return r;
}

/* Signals go to oneself (abort). */
static int add_own_signals(scmp_filter_ctx filter)
{
	const struct sandbox_call own[] = { CALL(tgkill, INT_IS(0, getpid())) };

	return add_limited(filter, own, COUNT(own));
}

/* Memory of other processes is what a namer reads, and of a JVM an opener; no other process does.
 */
static int add_reading(scmp_filter_ctx filter, enum sandbox_role role)
{
	bool reads = role == SANDBOX_NAMER || role == SANDBOX_OPENER || role == SANDBOX_KEEPER;

	return seccomp_rule_add(filter, reads ? SCMP_ACT_ALLOW : SCMP_ACT_KILL_PROCESS,
				SCMP_SYS(process_vm_readv), 0);
}

static int add(scmp_filter_ctx filter, const int *calls, size_t calls_len,
	       const struct sandbox_call *limited, size_t limited_len)
{
	int r = add_all(filter, SCMP_ACT_ALLOW, calls, calls_len);

	return r ? r : add_limited(filter, limited, limited_len);
}

#define ADD(filter, calls, limited) add(filter, calls, COUNT(calls), limited, COUNT(limited))

static int add_role(scmp_filter_ctx filter, enum sandbox_role role)
{
	int r = role == SANDBOX_PARSER ? ADD(filter, calls_of_parser, limited_of_parser)
				       : ADD(filter, calls_of_all, limited_of_all);

	if (!r)
		r = add_all(filter, SCMP_ACT_KILL_PROCESS, calls_of_intruders,
			    COUNT(calls_of_intruders));
	if (!r)
		r = add_own_signals(filter);
	if (!r)
		r = add_reading(filter, role);
	if (!r && role == SANDBOX_KEEPER)
		r = ADD(filter, calls_of_keeper, limited_of_keeper);
	if (!r && role == SANDBOX_SERVER)
		r = ADD(filter, calls_of_server, limited_of_server);
	return r;
}

static void cleanup_filter(scmp_filter_ctx *filter)
{
	if (*filter)
		seccomp_release(*filter);
}

int seccomp_enter(enum sandbox_role role, enum sandbox_mode mode, const struct needs *const *needs)
{
	uint32_t others = mode == SANDBOX_LOG ? SCMP_ACT_LOG : SCMP_ACT_ERRNO(ENOSYS);
	_cleanup_(cleanup_filter) scmp_filter_ctx filter = seccomp_init(others);
	int r;

	if (!filter)
		return -ENOMEM;
	r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1);
	if (!r || r == -EOPNOTSUPP) /* not logged before Linux 4.14 */
		r = add_role(filter, role);
	for (; !r && needs && *needs; needs++)
		r = add_limited(filter, (*needs)->calls, (*needs)->calls_len);
	if (!r)
		r = seccomp_load(filter);
	return r;
}

int seccomp_enter_strict(void)
{
	static const int calls[] = {
		SCMP_SYS(read),       SCMP_SYS(write),        SCMP_SYS(exit),
		SCMP_SYS(exit_group), SCMP_SYS(rt_sigreturn), SCMP_SYS(restart_syscall),
	};
	/* Never freed: once it is loaded memory cannot be given back. */
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int r = filter ? add_all(filter, SCMP_ACT_ALLOW, calls, COUNT(calls)) : -ENOMEM;

	return r ? r : seccomp_load(filter);
}

char *seccomp_call_name(int number)
{
	return seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
}
