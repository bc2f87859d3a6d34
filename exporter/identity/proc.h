/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded readers of /proc/PID. Everything in there but the numbers is chosen by the process it
 * describes, so it is hostile: a name may hold any byte, a file may be empty, huge or vanish.
 *
 * All of them take the descriptor of a process's directory. The kernel ties that descriptor to the
 * process, not to its number: once the process is gone every read fails with -ESRCH, so what is
 * read through one descriptor never mixes two processes.
 *
 * 0 or -errno; outputs are untouched on failure. Texts are terminated.
 */
#ifndef WORKLOAD_IDENTITY_PROC_H
#define WORKLOAD_IDENTITY_PROC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_PATH_LEN 4096

/* The part of /proc/PID/stat that is used. Ticks are those of sysconf(_SC_CLK_TCK). */
struct proc_stat {
	uint64_t user_ticks;
	uint64_t system_ticks;
	uint64_t start_ticks; /* since boot, in the reader's time namespace, truncated */
	uint64_t virtual_bytes;
	uint64_t resident_pages;
};

/* Libraries that give a runtime away: bits of proc_libraries_read(). */
#define PROC_LIBRARY_JVM 1U /* libjvm.so */
#define PROC_LIBRARY_CORECLR 2U /* libcoreclr.so */
#define PROC_LIBRARY_PYTHON 4U /* libpython3 */
#define PROC_LIBRARY_RUBY 8U /* libruby */

/* The directory @proc_root/@pid: a descriptor to close, or -errno, -ESRCH if there is none. */
int proc_open(const char *proc_root, pid_t pid);

/* The directory @proc_root/self. */
int proc_open_self(const char *proc_root);

/* The first @size - 1 bytes of the file @name below @dir_fd. @len may be NULL. */
int proc_file_read(int dir_fd, const char *name, char *out, size_t size, size_t *len);

/*
 * Calls @line with each line of the file @name, without its newline, until it returns non-zero or
 * @limit_bytes are read. Lines over 4.5 KiB are cut.
 */
typedef int (*proc_line_fn)(char *line, void *arg);
int proc_lines_read(int dir_fd, const char *name, size_t limit_bytes, proc_line_fn line, void *arg);

/* Path of the executable, without the kernel's " (deleted)"; -ENAMETOOLONG if it does not fit. */
int proc_exe_read(int dir_fd, char *out, size_t size);

/*
 * The path by which the program was executed, as it was given to execve(2): of a script its own,
 * not that of the interpreter, and of a link the link's. The kernel leaves it at the top of the
 * stack (AT_EXECFN, getauxval(3)), apart from what processes overwrite to change their titles. May
 * be relative. Needs the right to trace the process (CAP_SYS_PTRACE suffices, for any user).
 * -ENODATA if it is not to be found; -EBUSY while execve(2) lays out the memory of the process (or
 * if that has no environment, and an equals sign in the path).
 */
int proc_executed_read(int dir_fd, char *out, size_t size);

/*
 * The environment that the program was executed with, each variable ended by a NUL; cut to @size -
 * 1 bytes. The process may have overwritten it since. Needs the same right. -ENODATA if there is
 * none.
 */
int proc_environment_read(int dir_fd, char *out, size_t size, size_t *len);

/* The arguments, each ended by a NUL; cut to @size - 1 bytes. Empty for a zombie: 0 with *@len 0.
 */
int proc_cmdline_read(int dir_fd, char *out, size_t size, size_t *len);

/* Name of the main thread. */
int proc_comm_read(int dir_fd, char *out, size_t size);

/* All of /proc/PID/cgroup that fits; a last line that was cut is left out. */
int proc_cgroup_read(int dir_fd, char *out, size_t size);

/* -EINVAL if the file is not what proc(5) says. */
int proc_stat_read(int dir_fd, struct proc_stat *out);

/*
 * Its real user id, in the reader's user namespace: the user that has started it. The effective one
 * is another's in a program with a set-user-id bit, and so is the owner of the directory, which is
 * also root where a process may not be dumped. -EINVAL if the file is not what proc(5) says.
 */
int proc_uid_read(int dir_fd, uint32_t *uid);

/* Its number in its own pid namespace. -EINVAL if the file is not what proc(5) says. */
int proc_own_number_read(int dir_fd, pid_t *pid);

/* Which PROC_LIBRARY_ are mapped, as far as the first 2 MiB of /proc/PID/maps tell. */
int proc_libraries_read(int dir_fd, unsigned int *libraries);

#endif
