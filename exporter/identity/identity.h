/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of a process: the name of its workload, and what workload_info tells about it.
 */
#ifndef WORKLOAD_IDENTITY_IDENTITY_H
#define WORKLOAD_IDENTITY_IDENTITY_H

#include <stdint.h>
#include <sys/types.h>

#define IDENTITY_NAME_LEN 256
#define IDENTITY_EXE_LEN 512
#define IDENTITY_RUNTIME_LEN 16
#define IDENTITY_UNIT_LEN 288
#define IDENTITY_CONTAINER_LEN 80
#define IDENTITY_USER_LEN 12

/*
 * Terminated, cut where they do not fit, otherwise any bytes but NUL: a caller that writes them out
 * escapes them, and copes with a character cut in two. name and runtime are never empty; empty
 * others mean "not known" or "none".
 */
struct identity {
	char name[IDENTITY_NAME_LEN]; /* label `workload` */
	char exe[IDENTITY_EXE_LEN]; /* path of the executable */
	char runtime[IDENTITY_RUNTIME_LEN]; /* see runtime.h */
	char unit[IDENTITY_UNIT_LEN]; /* see cgroup.h */
	char container[IDENTITY_CONTAINER_LEN]; /* see cgroup.h */
	char user[IDENTITY_USER_LEN]; /* its real user id, decimal */
};

/*
 * Name: the systemd service without its suffix, else the container, else the base name by which the
 * program was executed (of a script its own, of a link the link's: proc_executed_read()), else that
 * of the executable (of its names, the one that the process goes by), else @comm (may be NULL),
 * else /proc's comm, else "unknown". cgroup.h has the rules for units and containers, which a
 * process cannot choose; it can choose its program's name, as by giving its file that name. So a
 * name that is neither a unit nor a container is qualified with its user, unless that is root or an
 * account for services (user.h): "user@1000/redis-server".
 *
 * @pid is one of the pid namespace of @proc_root. It is the right process only if it started at
 * @start_ns, the kernel's task_struct.start_boottime (0: not known, not compared). Field 22 of
 * /proc/PID/stat is that time plus the boottime offset of the reader's time namespace, divided by
 * the nanoseconds of a clock tick and truncated (fs/proc/array.c, nsec_to_clock_t), so two
 * processes that had the same number within one tick (10 ms) are not told apart.
 *
 * -ESRCH: no such process, it has ended and was not waited for, or another one has its number.
 * Other -errno: /proc cannot be used. What cannot be read of a living process (no permission) is
 * left empty: then name may be @comm. @pid may also be a thread; @start_ns is that thread's then. A
 * main thread that has ended, where others live, has no executable: -ESRCH too. -EBUSY: while it
 * was read the process became another program, several times; nothing is known that belongs
 * together.
 */
int identity_read(const char *proc_root, pid_t pid, uint64_t start_ns, const char *comm,
		  struct identity *out);

/*
 * Whether the process whose folder in @proc_root this is started at @start_ns, as above: 0, -ESRCH,
 * other -errno.
 */
int identity_check_start(int dir_fd, const char *proc_root, uint64_t start_ns);

/* The same as identity_read() without the executable, which takes the right to trace the process.
 */
int identity_read_public(const char *proc_root, pid_t pid, uint64_t start_ns, const char *comm,
			 struct identity *out);

/* The identity of a process of @uid that is gone already: named by @comm, else "unknown". */
void identity_from_comm(const char *comm, uint32_t uid, struct identity *out);

#endif
