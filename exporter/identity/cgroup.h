/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The systemd unit and the container that a cgroup path tells. Functions of the text of
 * /proc/PID/cgroup: lines "hierarchy:controllers:path" (cgroups(7)), where hierarchy 0 is version 2
 * and the controller list "name=systemd" is systemd's own tree on version 1.
 */
#ifndef WORKLOAD_IDENTITY_CGROUP_H
#define WORKLOAD_IDENTITY_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

#define CGROUP_UNIT_LEN 288 /* "user@1000/", systemd's UNIT_NAME_MAX and a NUL */
#define CGROUP_CONTAINER_LEN 80

/* Empty strings: there is none. */
struct cgroup_place {
	/*
	 * The service, with its suffix: "nginx.service", "postgresql@15-main.service". Services of
	 * a user's manager (user@1000.service) are "user@1000/nginx.service": that user may name
	 * and make them as he likes. The manager itself, scopes, slices and mounts do not count. An
	 * instance that was made for one connection is given as its template, "sshd@.service"; a
	 * service that systemd-run named ("run-u12.service") is no unit, because its name tells
	 * nothing.
	 */
	char unit[CGROUP_UNIT_LEN];
	/*
	 * First 12 digits of a container's id (ECS: and "-<digits>", which tell the containers of a
	 * task from each other), or the name of an LXC container. The innermost. In the slice or
	 * below the manager of a user that is not root (user-1000.slice), where any cgroup may look
	 * like a container's: "user@1000/0123456789ab".
	 */
	char container[CGROUP_CONTAINER_LEN];
};

/*
 * Never fails: what is not understood is neither unit nor container. At most one of the two is the
 * better name of the workload, and then the other is left empty:
 *
 * - a unit inside a container (systemd as its init) is the container's own affair: container;
 * - a container below a service is the service's if podman split the service's own cgroup for it
 *   (quadlets: .../web.service/libpod-payload-<id>): both are set, and the unit names it;
 * - below any other service (an engine that keeps containers under itself): container.
 */
void cgroup_place_parse(const char *text, struct cgroup_place *out);

#define CGROUP_HIERARCHY_LEN 64

/* How this machine arranges services. */
struct cgroup_hierarchies {
	bool v2;
	unsigned int v1; /* number of the hierarchy of version 1; 0: none */
	char v1_name[CGROUP_HIERARCHY_LEN]; /* its controllers, or "name=systemd" */
};

/*
 * From the text of any process's file: of version 1 the hierarchy of systemd or OpenRC counts, else
 * that of the controller pids or memory, in which container engines have each container.
 */
void cgroup_hierarchies_parse(const char *text, struct cgroup_hierarchies *out);

/* The same of the file of the reader itself; all empty if it cannot be read. */
void cgroup_hierarchies_read(const char *proc_root, struct cgroup_hierarchies *out);

/* "postgresql@15-main.service" → "postgresql@15-main", "sshd@.service" → "sshd". */
void cgroup_unit_workload(const char *unit, char *out, size_t size);

#endif
