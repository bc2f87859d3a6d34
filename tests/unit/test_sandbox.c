/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "security/sandbox.h"

#define ENTERED 100 /* exit codes of the child: an errno, or one of these */
#define NOT_ENTERED 101

typedef int (*try_fn)(void);

/* What waitpid() says of a process that enters the sandbox and then tries this. */
static int status_after(enum sandbox_role role, enum sandbox_mode mode, try_fn try)
{
	pid_t pid = fork();
	int status = 0;

	cr_assert_geq(pid, 0);
	if (!pid) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || sandbox_enter(role, mode))
			_exit(NOT_ENTERED);
		errno = 0;
		_exit(try() < 0 ? errno : ENTERED);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return status;
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
	return (int)syscall(SYS_bpf, 5 /* BPF_PROG_LOAD */, NULL, 0);
}

static int try_look_up(void)
{
	return (int)syscall(SYS_bpf, 1 /* BPF_MAP_LOOKUP_ELEM */, NULL, 0);
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

Test(sandbox, maps_can_be_read_and_no_program_be_loaded)
{
	EXPECT_ERRNO(SANDBOX_SERVER, try_load, ENOSYS);
	/* EINVAL or EPERM, but from the kernel's bpf(2) itself. */
	cr_expect_neq(WEXITSTATUS(status_after(SANDBOX_SERVER, SANDBOX_ON, try_look_up)), ENOSYS);
	EXPECT_ERRNO(SANDBOX_NAMER, try_look_up, ENOSYS);
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
