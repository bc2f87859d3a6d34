/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/cgroup.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/units.h"
#include "identity/proc.h"
#include "identity/user.h"

#define COMPONENT_LEN 256 /* NAME_MAX and a NUL: longer ones do not exist */
#define ID_LEN 64 /* hexadecimal digits of a container id: docker, containerd, cri-o, podman */
#define TASK_ID_LEN 32 /* of a task of ECS, whose containers are <id>-<digits> */
#define SHORT_ID_LEN 12
#define UUID_LEN 36
#define SERVICE ".service"
#define USER_LEN 32
#define CGROUP_RANKS 4U
#define CGROUP_TEXT_BYTES 8192

/* State of one walk from the root of a path to its end. */
struct cgroup_walk {
	struct cgroup_place place;
	bool unit_closed; /* the machine's own units cannot follow */
	bool payload; /* the container is podman's part of its service's cgroup */
	bool lxc_parent; /* the last component was the directory of LXC's containers */
	bool user_manager; /* what follows is arranged by the user's own manager */
	char user[USER_LEN]; /* whose slice or manager it is below; empty: no user's */
};

static bool is_hex(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!strchr("0123456789abcdef", text[i]) || !text[i])
			return false;
	}
	return true;
}

static bool is_uuid(const char *text, size_t len)
{
	static const char pattern[] = "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh";

	for (size_t i = 0; len == UUID_LEN && i < len; i++) {
		if (pattern[i] == '-' ? text[i] != '-' : !is_hex(text + i, 1))
			return false;
	}
	return len == UUID_LEN;
}

/* Of "<id>-<digits>", how many characters come before the id's digits; 0: it is something else. */
static size_t task_number_find(const char *text, size_t len)
{
	size_t digits = 0;

	while (digits < len && strchr("0123456789", text[len - 1 - digits]))
		digits++;
	return digits > 0 && digits < len && text[len - 1 - digits] == '-' ? len - 1 - digits : 0;
}

/* Where the @id_len digits begin with which @component ends at @len; NULL: it does not. */
static const char *id_find(const char *component, size_t len, size_t id_len)
{
	const char *id;

	if (len < id_len)
		return NULL;
	id = component + len - id_len;
	if (id > component && id[-1] != '-' && id[-1] != ':')
		return NULL;
	return is_hex(id, id_len) ? id : NULL;
}

/*
 * The short form of the id in "<id>", "docker-<id>.scope", "cri-containerd-<id>.scope",
 * "crio-<id>", "libpod-payload-<id>" or "kubepods-burstable-pod<uid>.slice:cri-containerd:<id>"; of
 * "<id of a task>-<digits>" (ECS), where the containers of a task differ in the digits, with these;
 * of a UUID (Mesos, Garden). False: there is none.
 */
static bool container_id_read(const char *component, char out[static CGROUP_CONTAINER_LEN])
{
	size_t len = strlen(component), number;
	const char *id;

	if (text_has_suffix(component, ".scope"))
		len -= strlen(".scope");
	if (strstr(component, "conmon")) /* conmon only watches a container */
		return false;
	id = is_uuid(component, len) ? component : id_find(component, len, ID_LEN);
	number = id ? len : task_number_find(component, len);
	if (!id)
		id = id_find(component, number, TASK_ID_LEN);
	if (!id)
		return false;
	text_copy_bytes(out, CGROUP_CONTAINER_LEN, id, SHORT_ID_LEN);
	text_copy_bytes(out + SHORT_ID_LEN, CGROUP_CONTAINER_LEN - SHORT_ID_LEN, component + number,
			len - number);
	return true;
}

/* "/lxc/web", "/lxc.payload/web" and "/lxc.payload.web": LXC's containers have names. */
static const char *lxc_name_find(const struct cgroup_walk *walk, const char *component)
{
	if (walk->lxc_parent)
		return component;
	if (text_has_prefix(component, "lxc.payload.") && component[strlen("lxc.payload.")])
		return component + strlen("lxc.payload.");
	return NULL;
}

static bool cgroup_container_step(struct cgroup_walk *walk, const char *component)
{
	bool is_id = container_id_read(component, walk->place.container);
	const char *name = is_id ? NULL : lxc_name_find(walk, component);

	walk->lxc_parent = strcmp(component, "lxc") == 0 || strcmp(component, "lxc.payload") == 0;
	if (name)
		text_copy(walk->place.container, CGROUP_CONTAINER_LEN, name);
	else if (!is_id)
		return false;
	walk->payload = is_id && text_has_prefix(component, "libpod-payload-");
	return true;
}

/*
 * Services with Accept=yes get an instance per connection: a number, since systemd 252 a cookie,
 * and both addresses with their ports. Two IPv4 addresses have six dots, two IPv6 addresses with
 * ports have at least six colons, and nothing else in them is a name.
 */
static bool instance_is_connection(const char *instance, size_t len)
{
	size_t digits = strspn(instance, "0123456789"), dots = 0, colons = 0;

	if (digits == 0 || instance[digits] != '-')
		return false;
	for (size_t i = digits; i < len; i++) {
		dots += instance[i] == '.';
		colons += instance[i] == ':';
		if (!strchr(".:-", instance[i]) && !is_hex(instance + i, 1))
			return false;
	}
	return dots >= 6 || colons >= 6;
}

static bool spans(const char *text, size_t len, const char *accepted)
{
	return strspn(text, accepted) >= len;
}

/* systemd-run's names: run-u12, run-r<32 hexadecimal digits>, run-p12-i34; one per start. */
static bool unit_is_transient(const char *unit)
{
	size_t len = strlen(unit) - strlen(SERVICE);

	if (len < strlen("run-u1") || !text_has_prefix(unit, "run-"))
		return false;
	unit += strlen("run-u");
	len -= strlen("run-u");
	if (unit[-1] == 'u')
		return spans(unit, len, "0123456789");
	if (unit[-1] == 'r')
		return len == 32 && is_hex(unit, len);
	return unit[-1] == 'p' && spans(unit, len, "0123456789-i");
}

static void cgroup_unit_set(struct cgroup_place *place, const char *unit)
{
	const char *instance = strchr(unit, '@');
	size_t len;

	if (unit_is_transient(unit))
		return;
	text_copy(place->unit, sizeof(place->unit), unit);
	if (!instance)
		return;
	instance++;
	len = strlen(instance) - strlen(SERVICE);
	if (instance_is_connection(instance, len))
		text_copy(place->unit + (instance - unit),
			  sizeof(place->unit) - (size_t)(instance - unit), SERVICE);
}

static bool unit_is_service(const char *component)
{
	return text_has_suffix(component, SERVICE) && strlen(component) > strlen(SERVICE) &&
	       component[0] != '@';
}

/* The outermost tells: below it users may call their own cgroups as they like. */
static void cgroup_user_set(struct cgroup_walk *walk, const char *user, size_t len)
{
	if (!walk->user[0])
		text_copy_bytes(walk->user, sizeof(walk->user), user, len);
}

static void cgroup_slice_step(struct cgroup_walk *walk, const char *slice)
{
	const char *user = slice + strlen("user-");
	size_t len;

	if (!text_has_prefix(slice, "user-"))
		return;
	len = strspn(user, "0123456789");
	if (len > 0 && strcmp(user + len, ".slice") == 0)
		cgroup_user_set(walk, user, len);
}

/*
 * Slices lead to units, and user@1000.service to the units of that user's manager. What follows
 * the first other component is up to that unit.
 */
static void cgroup_unit_step(struct cgroup_walk *walk, const char *component)
{
	if (strcmp(component, "..") == 0)
		return;
	if (text_has_suffix(component, ".slice")) {
		cgroup_slice_step(walk, component);
		return;
	}
	if (text_has_prefix(component, "user@") && unit_is_service(component)) {
		cgroup_user_set(walk, component + strlen("user@"),
				strlen(component) - strlen("user@" SERVICE));
		walk->user_manager = true;
		return;
	}
	walk->unit_closed = true;
	/* systemd puts _ before names that the kernel could take for a controller's file. */
	if (component[0] == '_')
		component++;
	if (unit_is_service(component))
		cgroup_unit_set(&walk->place, component);
}

static void cgroup_walk_step(struct cgroup_walk *walk, const char *component)
{
	if (cgroup_container_step(walk, component))
		walk->unit_closed = true;
	else if (!walk->unit_closed && !walk->lxc_parent)
		cgroup_unit_step(walk, component);
}

static void cgroup_place_qualify(struct cgroup_walk *walk)
{
	struct cgroup_place *place = &walk->place;

	if (walk->user_manager)
		user_qualify(walk->user, place->unit, sizeof(place->unit));
	if (walk->user[0] && strcmp(walk->user, "0") != 0)
		user_qualify(walk->user, place->container, sizeof(place->container));
}

static void cgroup_path_walk(struct cgroup_walk *walk, const char *path, size_t len)
{
	static const char deleted[] = " (deleted)"; /* of a zombie whose cgroup was removed */
	const char *end = path + len;
	char component[COMPONENT_LEN];

	if (len > strlen(deleted) && strncmp(end - strlen(deleted), deleted, strlen(deleted)) == 0)
		end -= strlen(deleted);
	while (path < end) {
		const char *slash = memchr(path, '/', (size_t)(end - path));
		size_t component_len = (size_t)((slash ? slash : end) - path);

		if (component_len > 0) {
			text_copy_bytes(component, sizeof(component), path, component_len);
			cgroup_walk_step(walk, component);
		}
		path += component_len + 1;
	}
}

/* @user: whose it is as far as other hierarchies have told, of systemd's also what this one tells.
 */
static void cgroup_path_parse(const char *path, size_t len, char user[static USER_LEN],
			      struct cgroup_place *out)
{
	struct cgroup_walk walk = { 0 };

	text_copy(walk.user, sizeof(walk.user), user);
	cgroup_path_walk(&walk, path, len);
	if (walk.place.container[0] && !walk.payload)
		walk.place.unit[0] = '\0';
	cgroup_place_qualify(&walk);
	text_copy(user, USER_LEN, walk.user);
	*out = walk.place;
}

/* The path of a line, or NULL. *@preferred: the hierarchy that systemd arranges. */
static const char *cgroup_line_path(const char *line, size_t len, bool *preferred)
{
	const char *controllers = memchr(line, ':', len), *path;

	if (!controllers)
		return NULL;
	controllers++;
	path = memchr(controllers, ':', len - (size_t)(controllers - line));
	if (!path)
		return NULL;
	*preferred = text_has_prefix(line, "0::") || text_has_prefix(controllers, "name=systemd:");
	return path + 1;
}

/* The first line of systemd's hierarchies, or of the others, that tells something. */
static bool cgroup_lines_search(const char *text, bool want_preferred, char user[static USER_LEN],
				struct cgroup_place *out)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		bool preferred;
		const char *path = cgroup_line_path(text, len, &preferred);

		if (path && preferred == want_preferred) {
			cgroup_path_parse(path, len - (size_t)(path - text), user, out);
			if (out->container[0] || (preferred && out->unit[0]))
				return true;
		}
		text += len;
		text += *text == '\n';
	}
	return false;
}

void cgroup_place_parse(const char *text, struct cgroup_place *out)
{
	char user[USER_LEN] = "";

	/* Without systemd on version 1 only the controllers' hierarchies know the container. */
	if (cgroup_lines_search(text, true, user, out))
		return;
	if (!cgroup_lines_search(text, false, user, out))
		*out = (struct cgroup_place){ 0 };
	out->unit[0] = '\0';
}

/* Whether @wanted is one of the comma-separated @controllers. */
static bool controllers_have(const char *controllers, size_t len, const char *wanted)
{
	while (len > 0) {
		const char *comma = memchr(controllers, ',', len);
		size_t part = comma ? (size_t)(comma - controllers) : len;

		if (part == strlen(wanted) && strncmp(controllers, wanted, part) == 0)
			return true;
		part += comma != NULL;
		controllers += part;
		len -= part;
	}
	return false;
}

/* By how well it tells one service from another: an index into the table, or its length. */
static size_t controllers_rank(const char *controllers, size_t len)
{
	static const char *const best[] = { "name=systemd", "name=openrc", "pids", "memory" };
	size_t i = 0;

	while (i < CGROUP_RANKS && !controllers_have(controllers, len, best[i]))
		i++;
	_Static_assert(COUNT(best) == CGROUP_RANKS, "a rank without a name");
	return i;
}

void cgroup_hierarchies_parse(const char *text, struct cgroup_hierarchies *out)
{
	size_t best = CGROUP_RANKS;

	*out = (struct cgroup_hierarchies){ 0 };
	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		size_t len = strcspn(text, "\n"), rank;
		const char *end = text + len, *controllers, *path;
		uint64_t id;

		controllers = text;
		if (text_parse_u64(&controllers, &id) < 0 || *controllers++ != ':')
			continue;
		path = memchr(controllers, ':', (size_t)(end - controllers));
		if (!path || id > UINT32_MAX)
			continue;
		out->v2 |= id == 0;
		rank = controllers_rank(controllers, (size_t)(path - controllers));
		if (id == 0 || rank >= best)
			continue;
		best = rank;
		out->v1 = (unsigned int)id;
		text_copy_bytes(out->v1_name, sizeof(out->v1_name), controllers,
				(size_t)(path - controllers));
	}
}

void cgroup_hierarchies_read(const char *proc_root, struct cgroup_hierarchies *out)
{
	_cleanup_(cleanup_close) int fd = proc_open_self(proc_root);
	char text[CGROUP_TEXT_BYTES];

	*out = (struct cgroup_hierarchies){ 0 };
	if (fd >= 0 && proc_cgroup_read(fd, text, sizeof(text)) == 0)
		cgroup_hierarchies_parse(text, out);
}

void cgroup_unit_workload(const char *unit, char *out, size_t size)
{
	size_t len = strlen(unit);

	if (text_has_suffix(unit, SERVICE))
		len -= strlen(SERVICE);
	if (len > 1 && unit[len - 1] == '@')
		len--;
	text_copy_bytes(out, size, unit, len);
}
