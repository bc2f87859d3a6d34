/* SPDX-License-Identifier: Apache-2.0 */
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
#include "security/sandbox.h"

extern const struct feature feature_mutex; /* attaches while it serves */

#define ENTERED 100 /* exit codes of the child: an errno, or one of these */
#define NOT_ENTERED 101

typedef int (*try_fn)(void);

/* What waitpid() says of a process that enters the sandbox and then tries this. */
static int status_with(enum sandbox_role role, enum sandbox_mode mode,
		       const struct needs *const *needs, try_fn try)
{
	pid_t pid = fork();
	int status = 0;

	cr_assert_geq(pid, 0);
	if (!pid) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || sandbox_enter(role, mode, needs))
			_exit(NOT_ENTERED);
		errno = 0;
		_exit(try() < 0 ? errno : ENTERED);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static int status_after(enum sandbox_role role, enum sandbox_mode mode, try_fn try)
{
	return status_with(role, mode, NULL, try);
}

#define EXPECT_ERRNO(role, try, error)                                              \
	do {                                                                        \
		int _status = status_after(role, SANDBOX_ON, try);                  \
		cr_expect(WIFEXITED(_status) && WEXITSTATUS(_status) == (error),    \
			  #try " of " #role ": status %#x", (unsigned int)_status); \
	} while (0)
#define EXPECT_WORKS(role, try) EXPECT_ERRNO(role, try, ENTERED)
#define EXPECT_ENDS(role, try)                                                      \
	do {                                                                        \
		int _status = status_after(role, SANDBOX_ON, try);                  \
		cr_expect(WIFSIGNALED(_status) && WTERMSIG(_status) == SIGSYS,      \
			  #try " of " #role ": status %#x", (unsigned int)_status); \
	} while (0)
/* Refused by the kernel's bpf(2) itself: bad attributes, or no privilege to begin with. */
#define EXPECT_BPF_ANSWERS(role)                                                               \
	do {                                                                                   \
		int _status = status_after(role, SANDBOX_ON, try_bpf);                         \
		int _error = WEXITSTATUS(_status);                                             \
		cr_expect(WIFEXITED(_status) && (_error == EINVAL || _error == EPERM),         \
			  "bpf(%d) of " #role ": status %#x", bpf_command, (unsigned)_status); \
	} while (0)

static int try_read(void)
{
	char byte;
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : (int)read(fd, &byte, 1);
}

static int try_write(void)
{
	return open("/dev/null", O_WRONLY);
}

static int try_create(void)
{
	return open("/tmp", O_TMPFILE | O_RDWR, 0600);
}

static int try_truncate(void)
{
	return open("/dev/null", O_RDONLY | O_TRUNC);
}

static int try_unlink(void)
{
	return unlink("/tmp/there is no such file");
}

static int try_execute(void)
{
	return execl("/bin/true", "true", (char *)NULL);
}

static int try_trace(void)
{
	return (int)ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
}

static int try_fork(void)
{
	return (int)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static int try_connect(void)
{
	return socket(AF_INET, SOCK_STREAM, 0);
}

static int try_local_socket(void)
{
	return socket(AF_UNIX, SOCK_DGRAM, 0);
}

static int try_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
			       MAP_FAILED
		       ? -1
		       : 0;
}

static int try_load(void)
{
	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, NULL, 0);
}

/* The command that the child of a test tries next: a try has no argument. */
static int bpf_command;

/* Attributes of no length and at no address: the kernel itself never does anything with them. */
static int try_bpf(void)
{
	return (int)syscall(SYS_bpf, bpf_command, NULL, 0);
}

static int try_kill(void)
{
	return kill(getppid(), 0);
}

static int try_raise_limit(void)
{
	struct rlimit core;

	/* getrlimit(2) is not on the list: prlimit64 is how an intruder would ask as well. */
	return getrlimit(RLIMIT_CORE, &core);
}

static int try_be_dumped(void)
{
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static int try_abort(void)
{
	abort();
}

Test(sandbox, files_can_be_read_and_not_be_written)
{
	EXPECT_WORKS(SANDBOX_SERVER, try_read);
	EXPECT_WORKS(SANDBOX_NAMER, try_read);
	EXPECT_ERRNO(SANDBOX_SERVER, try_write, ENOSYS);
	EXPECT_ERRNO(SANDBOX_NAMER, try_write, ENOSYS);
	EXPECT_ERRNO(SANDBOX_SERVER, try_create, ENOSYS);
	EXPECT_ERRNO(SANDBOX_SERVER, try_truncate, ENOSYS);
	EXPECT_ERRNO(SANDBOX_SERVER, try_unlink, ENOSYS);
}

Test(sandbox, what_only_an_intruder_does_ends_the_process)
{
	EXPECT_ENDS(SANDBOX_SERVER, try_execute);
	EXPECT_ENDS(SANDBOX_NAMER, try_execute);
	EXPECT_ENDS(SANDBOX_SERVER, try_trace);
	EXPECT_ENDS(SANDBOX_NAMER, try_trace);
}

Test(sandbox, there_is_no_new_process_no_new_code_and_no_way_out)
{
	EXPECT_ERRNO(SANDBOX_SERVER, try_fork, ENOSYS);
	EXPECT_ERRNO(SANDBOX_SERVER, try_connect, ENOSYS);
	EXPECT_ERRNO(SANDBOX_SERVER, try_local_socket, ENOSYS);
	EXPECT_ERRNO(SANDBOX_SERVER, try_code, ENOSYS);
	EXPECT_ERRNO(SANDBOX_SERVER, try_kill, ENOSYS);
	EXPECT_ERRNO(SANDBOX_SERVER, try_raise_limit, ENOSYS);
	EXPECT_ERRNO(SANDBOX_SERVER, try_be_dumped, ENOSYS);
}

static int try_fork_and_wait(void)
{
	siginfo_t info;
	pid_t pid = fork();
	int fd;

	if (!pid)
		_exit(prctl(PR_SET_PDEATHSIG, SIGKILL) ||
		      sandbox_enter(SANDBOX_NAMER, SANDBOX_ON, NULL));
	fd = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0 || waitid(P_PIDFD, (id_t)fd, &info, WEXITED))
		return -1;
	errno = info.si_status;
	return info.si_code == CLD_EXITED && !info.si_status ? 0 : -1;
}

static int try_share_memory(void)
{
	return (int)syscall(SYS_clone, CLONE_VM | SIGCHLD, NULL, NULL, NULL, NULL);
}

Test(sandbox, a_keeper_starts_processes_that_enter_a_narrower_one_and_does_little_else)
{
	EXPECT_WORKS(SANDBOX_KEEPER, try_read);
	EXPECT_WORKS(SANDBOX_KEEPER, try_fork_and_wait);
	EXPECT_ERRNO(SANDBOX_KEEPER, try_share_memory, ENOSYS);
	EXPECT_ERRNO(SANDBOX_KEEPER, try_write, ENOSYS);
	EXPECT_ERRNO(SANDBOX_KEEPER, try_connect, ENOSYS);
	EXPECT_ERRNO(SANDBOX_KEEPER, try_kill, ENOSYS);
	EXPECT_ERRNO(SANDBOX_KEEPER, try_load, ENOSYS);
	EXPECT_ENDS(SANDBOX_KEEPER, try_execute);
	EXPECT_ENDS(SANDBOX_KEEPER, try_trace);
	EXPECT_ERRNO(SANDBOX_NAMER, try_fork, ENOSYS);
}

Test(sandbox, maps_can_be_read_and_no_program_be_loaded)
{
	static const int used[] = { BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM, BPF_MAP_DELETE_ELEM,
				    BPF_OBJ_GET_INFO_BY_FD, BPF_ITER_CREATE };

	EXPECT_ERRNO(SANDBOX_SERVER, try_load, ENOSYS);
	for (size_t i = 0; i < sizeof(used) / sizeof(*used); i++) {
		bpf_command = used[i];
		EXPECT_BPF_ANSWERS(SANDBOX_SERVER);
		EXPECT_ERRNO(SANDBOX_NAMER, try_bpf, ENOSYS);
	}
}

/*
 * One call with its arguments, and what comes of it in each role. Descriptors and addresses are
 * bad: what the sandbox lets through, the kernel itself refuses.
 */
enum { SERVER = 1, ATTACHING = 2, SERVERS = 3, READER = 4, KEEPER = 8, NAMERS = 12, ALL = 15 };

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
	{ "sendmsg", SERVERS, SYS_sendmsg, { -1, SOMEWHERE, MSG_NOSIGNAL } },
	{ "sendmsg, MSG_FASTOPEN", 0, SYS_sendmsg, { -1, SOMEWHERE, MSG_FASTOPEN } },
	{ "sendmmsg", 0, SYS_sendmmsg, { -1, SOMEWHERE, 1, 0 } },
	{ "recv", ALL, SYS_recvfrom, { -1, SOMEWHERE, 1, MSG_TRUNC } },
	{ "recvmsg, which brings descriptors", 0, SYS_recvmsg, { -1, SOMEWHERE, 0 } },
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
	{ "no code", ALL, SYS_mprotect, { 1, 4096, PROT_READ } },
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
	{ "memory of others", NAMERS, SYS_process_vm_readv, { 1, SOMEWHERE, 1, SOMEWHERE, 1, 1 } },
};

static const struct needs *attaching[2]; /* what feature mutex needs, and NULL */

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
		expect_attempt(SANDBOX_NAMER, NULL, READER);
		expect_attempt(SANDBOX_KEEPER, NULL, KEEPER);
	}
}

static struct sockaddr_in elsewhere;
static int listener;

static int listen_somewhere(struct sockaddr_in *address)
{
	socklen_t len = sizeof(*address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	cr_assert_eq(bind(fd, (struct sockaddr *)address, sizeof(*address)), 0);
	cr_assert_eq(listen(fd, 1), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)address, &len), 0);
	return fd;
}

static int try_listener_that_connects(void)
{
	char byte = 0;
	struct iovec text = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = { .msg_name = &elsewhere,
				  .msg_namelen = sizeof(elsewhere),
				  .msg_iov = &text,
				  .msg_iovlen = 1 };

	if (shutdown(listener, SHUT_RDWR))
		return -1;
	if (sendto(listener, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&elsewhere,
		   sizeof(elsewhere)) >= 0)
		return 0;
	if (sendmsg(listener, &message, MSG_FASTOPEN | MSG_NOSIGNAL) >= 0)
		return 0;
	return (int)sendmsg(listener, &message, MSG_NOSIGNAL);
}

/* Whether a socket has connected to @fd. */
static bool has_been_called(int fd)
{
	int caller;

	cr_assert_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	caller = accept(fd, NULL, NULL);
	if (caller >= 0)
		close(caller);
	return caller >= 0;
}

static int status_of_listener(enum sandbox_mode mode, const struct needs *const *needs)
{
	struct sockaddr_in own;
	int status;

	listener = listen_somewhere(&own);
	status = status_with(SANDBOX_SERVER, mode, needs, try_listener_that_connects);
	close(listener);
	cr_assert(WIFEXITED(status), "status %#x", (unsigned int)status);
	return WEXITSTATUS(status);
}

Test(sandbox, a_listener_that_was_shut_down_connects_to_nobody)
{
	int other = listen_somewhere(&elsewhere);
	int without = status_of_listener(SANDBOX_OFF, NULL);

	attaching[0] = feature_mutex.needs;
	if (without == EOPNOTSUPP)
		cr_skip_test("net.ipv4.tcp_fastopen is off: nobody can");
	cr_expect_eq(without, ENTERED);
	cr_expect(has_been_called(other), "so it can be done");
	cr_expect_eq(status_of_listener(SANDBOX_ON, NULL), EPIPE);
	cr_expect_eq(status_of_listener(SANDBOX_ON, attaching), EPIPE);
	cr_expect_not(has_been_called(other));
	close(other);
}

Test(sandbox, a_program_that_aborts_still_ends)
{
	int status = status_after(SANDBOX_SERVER, SANDBOX_ON, try_abort);

	cr_expect(WIFSIGNALED(status));
	cr_expect_eq(WTERMSIG(status), SIGABRT);
	cr_expect_not(WCOREDUMP(status));
}

Test(sandbox, to_find_out_what_lacks_other_calls_can_work_but_not_those_of_an_intruder)
{
	int status = status_after(SANDBOX_SERVER, SANDBOX_LOG, try_connect);

	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == ENTERED);
	status = status_after(SANDBOX_SERVER, SANDBOX_LOG, try_execute);
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}

Test(sandbox, it_can_be_left_off)
{
	int status = status_after(SANDBOX_SERVER, SANDBOX_OFF, try_write);

	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == ENTERED);
}
