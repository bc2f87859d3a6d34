/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "features/feature.h"
#include "helpers/helper.h"
#include "helpers/passing.h"
#include "sandboxed.h"

extern const struct feature feature_mutex; /* attaches while it serves */

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

static int try_memory(void)
{
	char *block = malloc(64 << 20), *larger = block ? realloc(block, 96 << 20) : NULL;
	char *pages = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!larger || pages == MAP_FAILED || mprotect(pages, 4096, PROT_READ | PROT_WRITE) ||
	    madvise(pages, 4096, MADV_DONTNEED) || munmap(pages, 8192))
		return -1;
	free(larger);
	return 0;
}

static int passes_to_parser[2]; /* a file comes through it */

/* As helpers/passing.c: a descriptor comes, is read, and goes back. */
static int try_parse(void)
{
	struct passed passed;
	struct stat stat;
	char text[8], answer = 'a';

	if (passing_receive(passes_to_parser[1], text, sizeof(text), 0, &passed) != 1 ||
	    passed.fd < 0 || fstat(passed.fd, &stat) || pread(passed.fd, text, 1, 0) != 1 ||
	    passing_send(passes_to_parser[1], &answer, 1, MSG_NOSIGNAL, passed.fd) != 1)
		return -1;
	return close(passed.fd);
}

static const struct sandbox_call passing_calls[] = { HELPER_PASSING_CALLS };
static const struct needs passing = { .calls = passing_calls, .calls_len = 2 };
static const struct needs *const passes[] = { &passing, NULL };

static int status_of_parser(enum sandbox_role role, const struct needs *const *needs)
{
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), status;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, passes_to_parser), 0);
	cr_assert_eq(passing_send(passes_to_parser[0], "q", 1, 0, file), 1);
	status = status_with(role, SANDBOX_ON, needs, try_parse);
	close(file);
	close(passes_to_parser[0]);
	close(passes_to_parser[1]);
	return status;
}

Test(sandbox, a_parser_has_memory_and_reads_what_it_is_given)
{
	int status = status_of_parser(SANDBOX_PARSER, passes);

	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == ENTERED, "%#x", (unsigned)status);
	status = status_of_parser(SANDBOX_PARSER, NULL);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == ENOSYS, "%#x", (unsigned)status);
	EXPECT_WORKS(SANDBOX_PARSER, try_memory);
	EXPECT_ERRNO(SANDBOX_PARSER, try_read, ENOSYS);
	EXPECT_ERRNO(SANDBOX_PARSER, try_local_socket, ENOSYS);
	EXPECT_ERRNO(SANDBOX_PARSER, try_fork, ENOSYS);
	EXPECT_ERRNO(SANDBOX_PARSER, try_code, ENOSYS);
	EXPECT_ENDS(SANDBOX_PARSER, try_execute);
	EXPECT_ENDS(SANDBOX_PARSER, try_trace);
}

Test(sandbox, an_opener_reads_files_and_passes_them_on)
{
	int status = status_of_parser(SANDBOX_OPENER, passes);

	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == ENTERED, "%#x", (unsigned)status);
	EXPECT_WORKS(SANDBOX_OPENER, try_read);
	EXPECT_ERRNO(SANDBOX_OPENER, try_write, ENOSYS);
	EXPECT_ENDS(SANDBOX_OPENER, try_execute);
}

/* Where a filter is entered below another both are asked: a keeper is given what its child needs.
 */
static int try_parse_below(void)
{
	return sandbox_enter(SANDBOX_PARSER, SANDBOX_ON, passes) ? -1 : try_parse();
}

static int try_parse_below_and_wait(void)
{
	siginfo_t info;
	pid_t pid = fork();

	if (!pid)
		sandboxed_exit(try_parse_below() ? 1 : 0);
	if (pid < 0 || waitid(P_PID, (id_t)pid, &info, WEXITED))
		return -1;
	errno = ENOSYS;
	return info.si_code == CLD_EXITED && !info.si_status ? 0 : -1;
}

Test(sandbox, a_parser_works_below_its_keeper)
{
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), status;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, passes_to_parser), 0);
	cr_assert_eq(passing_send(passes_to_parser[0], "q", 1, 0, file), 1);
	status = status_with(SANDBOX_KEEPER, SANDBOX_ON, passes, try_parse_below_and_wait);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == ENTERED, "%#x", (unsigned)status);
	close(file);
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
	const struct needs *const attaching[] = { feature_mutex.needs, NULL };
	int other = listen_somewhere(&elsewhere);
	int without = status_of_listener(SANDBOX_OFF, NULL);

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
