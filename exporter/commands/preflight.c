/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/preflight.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "identity/proc.h"

#define KERNEL_TYPES "/sys/kernel/btf/vmlinux"
/* PID_NS_INIT_INO of the kernel's linux/nsfs.h: the same number since Linux 3.8. */
#define PID_NAMESPACE_INITIAL "pid:[4026531836]"
#define KTHREADD_PID 2
#define STAT_BYTES 1024
#define ROWS_FIRST 32
#define PROTOCOLS_BYTES (16 * 1024)

#define LOST_WITHOUT_PROC                                                                    \
	"services are named after their thread only, as unit, container and executable are " \
	"unknown"

/* --- asking the machine --------------------------------------------------------------------- */

static bool proc_is_initial(int self_fd)
{
	char link[64];
	ssize_t len = readlinkat(self_fd, "ns/pid", link, sizeof(link) - 1);

	if (len < 0)
		return errno == ENOENT; /* a kernel without PID namespaces has only one */
	link[len] = '\0';
	return strcmp(link, PID_NAMESPACE_INITIAL) == 0;
}

/*
 * kthreadd always exists in the initial PID namespace and is root's: hidepid hides it from every
 * process from which it hides other users. (Process 1 may have a protection of its own.)
 */
static bool proc_shows_others(const char *proc_root)
{
	_cleanup_(cleanup_close) int fd = proc_open(proc_root, KTHREADD_PID);
	char stat[STAT_BYTES];

	return fd >= 0 && proc_file_read(fd, "stat", stat, sizeof(stat), NULL) == 0;
}

/*
 * By /proc/net/protocols, of the network namespace that this process is in: a line for each
 * protocol, with its name, the size of a socket, and how many there are.
 */
static unsigned long multipath_sockets(int self_fd)
{
	char text[PROTOCOLS_BYTES], name[16], *rest = text, *line;
	unsigned long sum = 0, sockets;

	if (self_fd < 0 || proc_file_read(self_fd, "net/protocols", text, sizeof(text), NULL))
		return 0;
	while ((line = strsep(&rest, "\n"))) {
		if (sscanf(line, "%15s %*u %lu", name, &sockets) == 2 &&
		    strncmp(name, "MPTCP", strlen("MPTCP")) == 0)
			sum += sockets;
	}
	return sum;
}

void preflight_machine_read(const char *proc_root, struct preflight_machine *out)
{
	_cleanup_(cleanup_close) int self_fd = proc_open_self(proc_root);
	struct utsname name;

	*out = (struct preflight_machine){
		.btf = access(KERNEL_TYPES, R_OK) == 0,
		.proc_mounted = self_fd >= 0,
		.proc_initial = self_fd >= 0 && proc_is_initial(self_fd),
		.proc_all = proc_shows_others(proc_root),
		.multipath = multipath_sockets(self_fd),
	};
	cgroup_hierarchies_read(proc_root, &out->cgroups);
	if (uname(&name) == 0)
		text_copy(out->release, sizeof(out->release), name.release);
}

/* --- rows ----------------------------------------------------------------------------------- */

static bool rows_grow(struct preflight *preflight)
{
	size_t size = preflight->rows_size ? 2 * preflight->rows_size : ROWS_FIRST;
	struct preflight_row *rows = reallocarray(preflight->rows, size, sizeof(*rows));

	if (!rows)
		return false;
	preflight->rows = rows;
	preflight->rows_size = size;
	return true;
}

/* Appends a row, which is valid until the next one; without memory it is lost, and that an error.
 */
static struct preflight_row *row_add(struct preflight *preflight, enum preflight_section section,
				     const char *name, bool ok)
{
	struct preflight_row *row = &preflight->lost;

	if (preflight->rows_len < preflight->rows_size || rows_grow(preflight))
		row = &preflight->rows[preflight->rows_len++];
	else
		preflight->error = -ENOMEM;
	*row = (struct preflight_row){ .section = section, .ok = ok };
	text_copy(row->name, sizeof(row->name), name);
	return row;
}

static void row_say(struct preflight_row *row, const char *reason, const char *remedy)
{
	text_copy(row->reason, sizeof(row->reason), reason);
	text_copy(row->remedy, sizeof(row->remedy), remedy);
}

void preflight_add_feature(struct preflight *preflight, const struct feature_status *feature)
{
	row_say(row_add(preflight, PREFLIGHT_FEATURES, feature->name, feature->on), feature->reason,
		feature->remedy);
	preflight->features[preflight->features_len++] = feature;
}

void preflight_add_hook(struct preflight *preflight, const struct probe_row *probe,
			const char *hook, const char *reason)
{
	struct preflight_row *row = row_add(preflight, PREFLIGHT_HOOKS, hook, probe->attached);

	row->feature = probe->feature;
	row->program = probe->probe;
	row_say(row, reason, "");
}

static void privilege_explain(struct preflight_row *row, const struct privileges *privileges,
			      int capability, const char *lost)
{
	if (row->ok)
		row_say(row,
			privileges_implied(privileges, capability) ? "implied by CAP_SYS_ADMIN"
								   : "",
			"");
	else if (!privileges->known)
		row_say(row, "not known: /proc/self/status cannot be read", "mount /proc");
	else if (privileges->user_namespace)
		row_say(row, "what a user namespace grants does not count",
			PRIVILEGES_REMEDY_NAMESPACE);
	else
		row_say(row, lost, PRIVILEGES_REMEDY);
}

void preflight_add_privileges(struct preflight *preflight, const struct privileges *privileges)
{
	static const struct {
		const char *name, *lost;
		int capability;
	} needed[] = {
		{ "CAP_BPF", "not held: no BPF program can be loaded", CAP_BPF },
		{ "CAP_PERFMON", "not held: no program that traces can be loaded", CAP_PERFMON },
		{ "CAP_SYS_PTRACE",
		  "not held: executables of other users' processes cannot be read: their services "
		  "are named after the systemd unit or container, else after the thread, and "
		  "their runtime is unknown",
		  CAP_SYS_PTRACE },
	};

	for (size_t i = 0; i < COUNT(needed); i++) {
		bool held = privileges_have(privileges, needed[i].capability);

		privilege_explain(row_add(preflight, PREFLIGHT_PRIVILEGES, needed[i].name, held),
				  privileges, needed[i].capability, needed[i].lost);
	}
}

/* A feature that is on has all it needs: distributions add parts of later kernels to old ones. */
static void add_kernel_version(struct preflight *preflight, const char *release)
{
	char reason[REFUSAL_REASON_BYTES], remedy[REFUSAL_REMEDY_BYTES] = "";
	struct preflight_row *row = row_add(preflight, PREFLIGHT_KERNEL, "Linux version", true);
	unsigned int major = 0, minor = 0;
	size_t len = (size_t)snprintf(reason, sizeof(reason), "%s", release);

	for (size_t id = 0; id < preflight->features_len; id++) {
		const struct feature_status *feature = preflight->features[id];

		if (feature->on ||
		    text_release_is_since(release, feature->since_major, feature->since_minor))
			continue;
		len += (size_t)snprintf(reason + len, sizeof(reason) - len, "%s %s needs %u.%u",
					row->ok ? ":" : ",", feature->name, feature->since_major,
					feature->since_minor);
		row->ok = false;
		if (feature->since_major > major ||
		    (feature->since_major == major && feature->since_minor > minor)) {
			major = feature->since_major;
			minor = feature->since_minor;
		}
	}
	if (!row->ok)
		snprintf(remedy, sizeof(remedy), "use Linux %u.%u or later", major, minor);
	row_say(row, reason, remedy);
}

static void add_proc(struct preflight *preflight, const struct preflight_machine *machine)
{
	bool ok = machine->proc_mounted && machine->proc_initial && machine->proc_all;
	struct preflight_row *row = row_add(preflight, PREFLIGHT_PROCESSES,
					    "/proc shows all processes", ok);

	if (ok)
		return;
	if (!machine->proc_mounted)
		row_say(row, "not mounted: " LOST_WITHOUT_PROC, "mount /proc");
	else if (!machine->proc_initial)
		row_say(row, "it belongs to another PID namespace: " LOST_WITHOUT_PROC,
			"start in the machine's PID namespace (docker run --pid=host)");
	else
		row_say(row, "hidepid hides processes of other users: " LOST_WITHOUT_PROC,
			"add CAP_SYS_PTRACE, or mount /proc without hidepid");
}

/* No fault of the machine, and so never one here: but a client that speaks it is not measured. */
static void add_multipath(struct preflight *preflight, unsigned long sockets)
{
	struct preflight_row *row = row_add(preflight, PREFLIGHT_KERNEL,
					    "plain TCP to listeners of Multipath TCP", true);
	char reason[REFUSAL_REASON_BYTES];

	if (!sockets)
		return;
	snprintf(
		reason, sizeof(reason),
		"sockets of Multipath TCP in this network namespace: %lu; connections whose client "
		"speaks it too are counted (multipath_tcp), not measured",
		sockets);
	row_say(row, reason, "");
}

static void add_cgroups(struct preflight *preflight, const struct cgroup_hierarchies *cgroups)
{
	bool ok = cgroups->v2 || cgroups->v1;
	struct preflight_row *row = row_add(preflight, PREFLIGHT_PROCESSES,
					    "cgroups tell services apart", ok);
	char reason[REFUSAL_REASON_BYTES];

	if (!ok) {
		row_say(row,
			"none are mounted: units and containers are unknown, and a service belongs "
			"to the init system that listened for it",
			"mount cgroups, version 2");
		return;
	}
	snprintf(reason, sizeof(reason), "by %s%s%s%s", cgroups->v2 ? "version 2" : "",
		 cgroups->v2 && cgroups->v1 ? " and " : "", cgroups->v1 ? "version 1, " : "",
		 cgroups->v1_name);
	row_say(row, reason, "");
}

void preflight_add_machine(struct preflight *preflight, const struct preflight_machine *machine)
{
	struct preflight_row *row;

	text_copy(preflight->release, sizeof(preflight->release), machine->release);
	add_kernel_version(preflight, machine->release);
	row = row_add(preflight, PREFLIGHT_KERNEL, "types of the kernel (BTF)", machine->btf);
	if (machine->btf)
		row_say(row, KERNEL_TYPES, "");
	else
		row_say(row, "not in " KERNEL_TYPES, REFUSAL_REMEDY_BTF);
	add_multipath(preflight, machine->multipath);
	add_proc(preflight, machine);
	if (machine->proc_mounted)
		add_cgroups(preflight, &machine->cgroups);
}

enum preflight_result preflight_result(const struct preflight *preflight)
{
	bool all = true, measures = false;

	for (size_t id = 0; id < preflight->features_len; id++) {
		const struct feature_status *feature = preflight->features[id];

		if (feature->optional)
			continue;
		all &= feature->on;
		measures |= feature->on && !feature->supports;
	}
	return all ? PREFLIGHT_ALL : measures ? PREFLIGHT_SOME : PREFLIGHT_NONE;
}

void preflight_free(struct preflight *preflight)
{
	free(preflight->rows);
	*preflight = (struct preflight){ 0 };
}

/* --- table ---------------------------------------------------------------------------------- */

static int row_label(const struct preflight_row *row, char *out, size_t size)
{
	return row->program ? snprintf(out, size, "%s (%s)", row->name, row->program)
			    : snprintf(out, size, "%s", row->name);
}

/* The kernel's own words may hold anything; a terminal is shown none of its control bytes. */
static void table_text(struct buffer *out, const char *text)
{
	for (; *text; text++)
		buffer_char(out, (unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text);
}

static void table_row(struct buffer *out, const struct preflight_row *row, int width)
{
	char label[2 * PREFLIGHT_NAME_BYTES];

	row_label(row, label, sizeof(label));
	buffer_printf(out, "  %-*s  %s", width, label, row->ok ? "yes" : "no");
	if (*row->reason) {
		buffer_text(out, row->ok ? "  " : "   ");
		table_text(out, row->reason);
	}
	if (*row->remedy) {
		buffer_printf(out, "\n  %-*s       do: ", width, "");
		table_text(out, row->remedy);
	}
	buffer_char(out, '\n');
}

static void table_section(const struct preflight *preflight, enum preflight_section section,
			  struct buffer *out, int width)
{
	static const char *const titles[PREFLIGHT_SECTIONS] = {
		[PREFLIGHT_FEATURES] = "Features",     [PREFLIGHT_HOOKS] = "Hooks (programs)",
		[PREFLIGHT_PRIVILEGES] = "Privileges", [PREFLIGHT_KERNEL] = "Kernel",
		[PREFLIGHT_PROCESSES] = "Processes",
	};

	buffer_printf(out, "\n%s\n", titles[section]);
	for (size_t i = 0; i < preflight->rows_len; i++)
		if (preflight->rows[i].section == section)
			table_row(out, &preflight->rows[i], width);
}

static bool preflight_has_limits(const struct preflight *preflight)
{
	for (size_t i = 0; i < preflight->rows_len; i++)
		if (!preflight->rows[i].ok)
			return true;
	return false;
}

int preflight_render_table(const struct preflight *preflight, struct buffer *out)
{
	static const char *const results[] = {
		[PREFLIGHT_ALL] = "All default features work",
		[PREFLIGHT_SOME] = "Some default features do not work",
		[PREFLIGHT_NONE] = "Nothing can be measured",
	};
	enum preflight_result result = preflight_result(preflight);
	char label[2 * PREFLIGHT_NAME_BYTES];
	int width = 0;

	for (size_t i = 0; i < preflight->rows_len; i++) {
		int len = row_label(&preflight->rows[i], label, sizeof(label));

		width = len > width ? len : width;
	}
	buffer_printf(out, "workload_exporter %s on Linux %s\n", preflight->version,
		      preflight->release);
	for (int section = 0; section < PREFLIGHT_SECTIONS; section++)
		table_section(preflight, section, out, width);
	buffer_printf(out, "\n%s%s.\n", results[result],
		      result == PREFLIGHT_ALL && preflight_has_limits(preflight)
			      ? ", within the limits named above"
			      : "");
	return preflight->error ? preflight->error : out->error;
}

/* --- JSON ----------------------------------------------------------------------------------- */

static void json_member(struct buffer *out, const char *name, const char *text)
{
	buffer_printf(out, "\"%s\":", name);
	json_string(out, text);
	buffer_char(out, ',');
}

static void json_row(struct buffer *out, const struct preflight_row *row)
{
	buffer_char(out, '{');
	if (row->feature)
		json_member(out, "feature", row->feature);
	if (row->program)
		json_member(out, "program", row->program);
	json_member(out, "name", row->name);
	json_member(out, "reason", row->reason);
	json_member(out, "remedy", row->remedy);
	buffer_printf(out, "\"ok\":%s}", row->ok ? "true" : "false");
}

static void json_section(const struct preflight *preflight, enum preflight_section section,
			 struct buffer *out)
{
	static const char *const names[PREFLIGHT_SECTIONS] = {
		[PREFLIGHT_FEATURES] = "features",     [PREFLIGHT_HOOKS] = "hooks",
		[PREFLIGHT_PRIVILEGES] = "privileges", [PREFLIGHT_KERNEL] = "kernel",
		[PREFLIGHT_PROCESSES] = "processes",
	};
	const char *comma = "";

	buffer_printf(out, "\"%s\":[", names[section]);
	for (size_t i = 0; i < preflight->rows_len; i++) {
		if (preflight->rows[i].section != section)
			continue;
		buffer_text(out, comma);
		json_row(out, &preflight->rows[i]);
		comma = ",";
	}
	buffer_text(out, "],");
}

int preflight_render_json(const struct preflight *preflight, struct buffer *out)
{
	static const char *const results[] = {
		[PREFLIGHT_ALL] = "all",
		[PREFLIGHT_SOME] = "some",
		[PREFLIGHT_NONE] = "none",
	};
	enum preflight_result result = preflight_result(preflight);

	buffer_char(out, '{');
	json_member(out, "version", preflight->version);
	json_member(out, "release", preflight->release);
	json_member(out, "result", results[result]);
	for (int section = 0; section < PREFLIGHT_SECTIONS; section++)
		json_section(preflight, section, out);
	buffer_printf(out, "\"exit_code\":%d}\n", result);
	return preflight->error ? preflight->error : out->error;
}
