/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox, call by call. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "features/feature.h"
#include "helpers/helper.h"
#include "sandboxed.h"

extern const struct feature feature_mutex; /* attaches while it serves */

/*
 * One call with its arguments, and what comes of it in each role. Descriptors and addresses are
 * bad: what the sandbox lets through, the kernel itself refuses.
 */
enum {
	SERVER = 1,
	ATTACHING = 2,
	ASKING = 4, /* a helper to which or from which descriptors go */
	SERVERS = SERVER | ATTACHING | ASKING,
	READER = 8,
	OPENER = 16,
	GIVING = 32, /* an opener, with what it needs for that */
	OPENERS = OPENER | GIVING,
	KEEPER = 64,
	NAMERS = READER | KEEPER,
	ALL = SERVERS | NAMERS | OPENERS,
	PARSER = 128,
	TAKING = 256, /* a parser, with what it needs for that */
	PARSERS = PARSER | TAKING,
	PASSING = ASKING | GIVING | TAKING,
	EVERY = ALL | PARSERS
};

struct attempt {
	const char *what;
	unsigned int roles; /* that may */
	long number, arguments[6];
};

static const struct attempt *attempt;

static int try_attempt(void)
{
	const long *arguments = attempt->arguments;

	return (int)syscall(attempt->number, arguments[0], arguments[1], arguments[2], arguments[3],
			    arguments[4], arguments[5]);
}

#define SOMEWHERE 16L /* an address, and nothing is there */

static const struct attempt attempts[] = {
	{ "send", ALL, SYS_sendto, { -1, 0, 0, MSG_NOSIGNAL | MSG_DONTWAIT } },
	{ "send, and more comes", ALL, SYS_sendto, { -1, 0, 0, MSG_NOSIGNAL | MSG_MORE } },
	{ "sendto an address", 0, SYS_sendto, { -1, 0, 0, MSG_NOSIGNAL, SOMEWHERE, 16 } },
	{ "sendto, MSG_FASTOPEN", 0, SYS_sendto, { -1, 0, 0, MSG_FASTOPEN } },
	{ "sendto, MSG_OOB", 0, SYS_sendto, { -1, 0, 0, MSG_OOB } },
	{ "sendmsg", SERVERS | PASSING, SYS_sendmsg, { -1, SOMEWHERE, MSG_NOSIGNAL } },
	{ "sendmsg, MSG_FASTOPEN", 0, SYS_sendmsg, { -1, SOMEWHERE, MSG_FASTOPEN } },
	{ "sendmmsg", 0, SYS_sendmmsg, { -1, SOMEWHERE, 1, 0 } },
	{ "recv", ALL, SYS_recvfrom, { -1, SOMEWHERE, 1, MSG_TRUNC } },
	{ "recvmsg, which brings descriptors", PASSING, SYS_recvmsg, { -1, SOMEWHERE, 0 } },
	{ "recvmsg, MSG_ERRQUEUE", 0, SYS_recvmsg, { -1, SOMEWHERE, MSG_ERRQUEUE } },
	{ "recvmmsg", 0, SYS_recvmmsg, { -1, SOMEWHERE, 1, 0 } },
	{ "connect", 0, SYS_connect, { -1, SOMEWHERE, 16 } },
	{ "bind", 0, SYS_bind, { -1, SOMEWHERE, 16 } },
	{ "listen", 0, SYS_listen, { -1, 1 } },
	{ "shutdown", SERVERS, SYS_shutdown, { -1, SHUT_RDWR } },
	{ "accept4", SERVERS, SYS_accept4, { -1, 0, 0, SOCK_CLOEXEC } },
	{ "TCP_NODELAY", SERVERS, SYS_setsockopt, { -1, IPPROTO_TCP, TCP_NODELAY } },
	{ "TCP_CORK", SERVERS, SYS_setsockopt, { -1, IPPROTO_TCP, TCP_CORK } },
	{ "SO_LINGER", SERVERS, SYS_setsockopt, { -1, SOL_SOCKET, SO_LINGER } },
	{ "SO_SNDBUF", SERVERS, SYS_setsockopt, { -1, SOL_SOCKET, SO_SNDBUF } },
	{ "TCP_FASTOPEN_CONNECT", 0, SYS_setsockopt, { -1, IPPROTO_TCP, TCP_FASTOPEN_CONNECT } },
	{ "TCP_FASTOPEN", 0, SYS_setsockopt, { -1, IPPROTO_TCP, TCP_FASTOPEN } },
	{ "TCP_ULP", 0, SYS_setsockopt, { -1, IPPROTO_TCP, TCP_ULP } },
	{ "SO_ATTACH_BPF", 0, SYS_setsockopt, { -1, SOL_SOCKET, SO_ATTACH_BPF } },
	{ "SO_LINGER's number at another level", 0, SYS_setsockopt, { -1, SOL_IP, SO_LINGER } },
	{ "ftruncate", 0, SYS_ftruncate, { -1, 0 } },
	{ "F_GETFD", ALL, SYS_fcntl, { -1, F_GETFD } },
	{ "F_SETFD", ALL, SYS_fcntl, { -1, F_SETFD, FD_CLOEXEC } },
	{ "F_GETFL", ALL, SYS_fcntl, { -1, F_GETFL } },
	{ "F_SETFL, O_NONBLOCK", SERVERS, SYS_fcntl, { -1, F_SETFL, O_RDWR | O_NONBLOCK } },
	{ "F_SETFL, O_ASYNC", 0, SYS_fcntl, { -1, F_SETFL, O_ASYNC } },
	{ "F_DUPFD_CLOEXEC", SERVERS, SYS_fcntl, { -1, F_DUPFD_CLOEXEC } },
	{ "F_SETOWN", 0, SYS_fcntl, { -1, F_SETOWN, 1 } },
	{ "F_SETOWN_EX", 0, SYS_fcntl, { -1, F_SETOWN_EX, SOMEWHERE } },
	{ "F_SETSIG", 0, SYS_fcntl, { -1, F_SETSIG, SIGKILL } },
	{ "F_SETLEASE", 0, SYS_fcntl, { -1, F_SETLEASE, F_RDLCK } },
	{ "F_NOTIFY", 0, SYS_fcntl, { -1, F_NOTIFY, DN_ACCESS } },
	{ "FIOASYNC", 0, SYS_ioctl, { -1, FIOASYNC, SOMEWHERE } },
	{ "FIOSETOWN", 0, SYS_ioctl, { -1, FIOSETOWN, SOMEWHERE } },
	{ "SIOCSPGRP", 0, SYS_ioctl, { -1, SIOCSPGRP, SOMEWHERE } },
	{ "TIOCSTI", 0, SYS_ioctl, { -1, TIOCSTI, SOMEWHERE } },
	{ "PERF_EVENT_IOC_SET_BPF", ATTACHING, SYS_ioctl, { -1, PERF_EVENT_IOC_SET_BPF } },
	{ "PERF_EVENT_IOC_ENABLE", ATTACHING, SYS_ioctl, { -1, PERF_EVENT_IOC_ENABLE } },
	{ "PERF_EVENT_IOC_SET_OUTPUT", 0, SYS_ioctl, { -1, PERF_EVENT_IOC_SET_OUTPUT, -1 } },
	{ "an event of a process",
	  ATTACHING,
	  SYS_perf_event_open,
	  { SOMEWHERE, 1, -1, -1, PERF_FLAG_FD_CLOEXEC } },
	{ "an event of a process, its -1 of 32 bits",
	  ATTACHING,
	  SYS_perf_event_open,
	  { SOMEWHERE, 1, 0xffffffff, 0xffffffff, PERF_FLAG_FD_CLOEXEC } },
	{ "an event of a CPU",
	  0,
	  SYS_perf_event_open,
	  { SOMEWHERE, -1, 0, -1, PERF_FLAG_FD_CLOEXEC } },
	{ "an event of a cgroup",
	  0,
	  SYS_perf_event_open,
	  { SOMEWHERE, 1, -1, -1, PERF_FLAG_FD_CLOEXEC | PERF_FLAG_PID_CGROUP } },
	{ "BPF_LINK_CREATE", ATTACHING, SYS_bpf, { BPF_LINK_CREATE, 0, 0 } },
	{ "BPF_PROG_LOAD", 0, SYS_bpf, { BPF_PROG_LOAD, 0, 0 } },
	{ "BPF_MAP_CREATE", 0, SYS_bpf, { BPF_MAP_CREATE, 0, 0 } },
	{ "BPF_MAP_GET_FD_BY_ID", 0, SYS_bpf, { BPF_MAP_GET_FD_BY_ID, 0, 0 } },
	{ "BPF_PROG_ATTACH", 0, SYS_bpf, { BPF_PROG_ATTACH, 0, 0 } },
	{ "BPF_OBJ_PIN", 0, SYS_bpf, { BPF_OBJ_PIN, 0, 0 } },
	{ "a thread in a mount namespace of its own",
	  0,
	  SYS_clone,
	  { CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_NEWNS } },
	{ "a user namespace", 0, SYS_clone, { CLONE_NEWUSER | SIGCHLD } },
	{ "openat to read", ALL, SYS_openat, { -1, SOMEWHERE, O_RDONLY | O_PATH | O_CLOEXEC } },
	{ "openat to write", 0, SYS_openat, { -1, SOMEWHERE, O_RDWR } },
	{ "openat to make", 0, SYS_openat, { -1, SOMEWHERE, O_CREAT } },
	{ "openat2", 0, SYS_openat2, { -1, SOMEWHERE, SOMEWHERE, 24 } },
	{ "io_uring", 0, SYS_io_uring_setup, { 1, SOMEWHERE } },
	{ "code", 0, SYS_mprotect, { 0, 4096, PROT_READ | PROT_EXEC } },
	{ "no code", EVERY, SYS_mprotect, { 1, 4096, PROT_READ } },
	{ "pread", EVERY, SYS_pread64, { -1, SOMEWHERE, 1, 0 } },
	{ "fstat", EVERY, SYS_fstat, { -1, SOMEWHERE } },
	{ "lseek", ALL, SYS_lseek, { -1, 0, SEEK_SET } },
	{ "the name of a descriptor", ALL, SYS_readlinkat, { -1, SOMEWHERE, SOMEWHERE, 1 } },
	{ "a signal that ends", KEEPER, SYS_pidfd_send_signal, { -1, SIGKILL, 0, 0 } },
	{ "a signal that is made up", 0, SYS_pidfd_send_signal, { -1, SIGKILL, SOMEWHERE, 0 } },
	{ "another signal", 0, SYS_pidfd_send_signal, { -1, SIGTERM, 0, 0 } },
	{ "own limits", KEEPER, SYS_prlimit64, { 0, RLIMIT_CORE, 0, SOMEWHERE } },
	{ "another's limits", 0, SYS_prlimit64, { 1, RLIMIT_CORE, 0, SOMEWHERE } },
	{ "a name", KEEPER, SYS_prctl, { PR_SET_NAME, SOMEWHERE } },
	{ "not to be dumped", KEEPER, SYS_prctl, { PR_SET_DUMPABLE, 0 } },
	{ "to be dumped", 0, SYS_prctl, { PR_SET_DUMPABLE, 1 } },
	{ "to end with the parent", KEEPER, SYS_prctl, { PR_SET_PDEATHSIG, SIGKILL } },
	{ "to be traced", 0, SYS_prctl, { PR_SET_PTRACER, -1 } },
	{ "another executable", 0, SYS_prctl, { PR_SET_MM, PR_SET_MM_EXE_FILE, -1 } },
	{ "capabilities for programs", 0, SYS_prctl, { PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE } },
	{ "memory of others",
	  NAMERS | OPENERS,
	  SYS_process_vm_readv,
	  { 1, SOMEWHERE, 1, SOMEWHERE, 1, 1 } },
};

static const struct needs *attaching[2]; /* what feature mutex needs, and NULL */
static const struct sandbox_call passing_calls[] = { HELPER_PASSING_CALLS };
static const struct needs passing = { .calls = passing_calls, .calls_len = 2 };
static const struct needs *const passes[] = { &passing, NULL };

static void expect_attempt(enum sandbox_role role, const struct needs *const *needs,
			   unsigned int bit)
{
	int status = status_with(role, SANDBOX_ON, needs, try_attempt);
	bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
	bool refused = killed || (WIFEXITED(status) && WEXITSTATUS(status) == ENOSYS);

	cr_expect(killed || WIFEXITED(status), "%s: status %#x", attempt->what, (unsigned)status);
	cr_expect_eq(refused, !(attempt->roles & bit), "%s: status %#x of role %d", attempt->what,
		     (unsigned)status, role);
}

Test(sandbox, calls_are_let_through_by_their_arguments)
{
	attaching[0] = feature_mutex.needs;

	for (size_t i = 0; i < sizeof(attempts) / sizeof(*attempts); i++) {
		attempt = &attempts[i];
		expect_attempt(SANDBOX_SERVER, NULL, SERVER);
		expect_attempt(SANDBOX_SERVER, attaching, ATTACHING);
		expect_attempt(SANDBOX_SERVER, passes, ASKING);
		expect_attempt(SANDBOX_NAMER, NULL, READER);
		expect_attempt(SANDBOX_OPENER, NULL, OPENER);
		expect_attempt(SANDBOX_OPENER, passes, GIVING);
		expect_attempt(SANDBOX_PARSER, NULL, PARSER);
		expect_attempt(SANDBOX_PARSER, passes, TAKING);
		expect_attempt(SANDBOX_KEEPER, NULL, KEEPER);
	}
}
