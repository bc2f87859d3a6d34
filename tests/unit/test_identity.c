/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "identity/cgroup.h"
#include "identity/identity.h"
#include "identity/proc.h"
#include "identity/timens.h"
#include "identity/user.h"

#define ROOT "tests/unit/fixtures/proc"
#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SHORT "0123456789ab"
#define TASK "0123456789abcdef0123456789abcdef"
#define OUTER "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define POD "1b2c3d4e_0000_1111_2222_333344445555"
#define POD_DASHES "1b2c3d4e-0000-1111-2222-333344445555"

struct place_case {
	const char *text;
	const char *unit;
	const char *container;
};

static void expect_places(const struct place_case *cases, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		struct cgroup_place place;

		cgroup_place_parse(cases[i].text, &place);
		cr_expect_str_eq(place.unit, cases[i].unit, "%s: unit `%s`", cases[i].text,
				 place.unit);
		cr_expect_str_eq(place.container, cases[i].container, "%s: container `%s`",
				 cases[i].text, place.container);
	}
}

#define EXPECT_PLACES(cases) expect_places(cases, sizeof(cases) / sizeof(*(cases)))

Test(cgroup, services_are_units_and_scopes_slices_and_managers_are_not)
{
	static const struct place_case cases[] = {
		{ "0::/system.slice/nginx.service\n", "nginx.service", "" },
		{ "0::/system.slice/nginx.service", "nginx.service", "" },
		{ "12:pids:/system.slice/nginx.service\n1:name=systemd:/system.slice/"
		  "nginx.service\n",
		  "nginx.service", "" },
		{ "4:memory:/system.slice/wrong.service\n0::/\n", "", "" },
		{ "0::/\n1:name=systemd:/system.slice/cron.service\n", "cron.service", "" },
		{ "0::/system.slice/delegate.service/worker/1\n", "delegate.service", "" },
		{ "0::/system.slice/a.service/b.service\n", "a.service", "" },
		{ "0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", "", "" },
		{ "0::/user.slice/user-1000.slice/session-3.scope\n", "", "" },
		{ "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-a-1.scope\n", "",
		  "" },
		{ "0::/init.scope\n", "", "" },
		{ "0::/system.slice\n", "", "" },
		{ "0::/system.slice/.service\n", "", "" },
		{ "0::/../../system.slice/nginx.service\n", "nginx.service", "" },
		{ "0::/system.slice/_cpu.service\n", "cpu.service", "" },
		{ "0::/system.slice/gone.service (deleted)\n", "gone.service", "" },
		{ "0::/system.slice/run-u42.service\n", "", "" },
		{ "0::/system.slice/run-r0123456789abcdef0123456789abcdef.service\n", "", "" },
		{ "0::/system.slice/run-p12-i34.service\n", "", "" },
		{ "0::/system.slice/run-postgres.service\n", "run-postgres.service", "" },
		{ "0::/system.slice/run-u.service\n", "run-u.service", "" },
	};

	EXPECT_PLACES(cases);
}

Test(cgroup, an_instance_per_connection_is_its_template_and_other_instances_are_kept)
{
	static const struct place_case cases[] = {
		{ "0::/system.slice/system-sshd.slice/sshd@7-10.0.0.1:22-10.0.0.9:5555.service\n",
		  "sshd@.service", "" },
		{ "0::/system.slice/sshd@7-4711-10.0.0.1:22-10.0.0.9:5555.service\n",
		  "sshd@.service", "" },
		{ "0::/system.slice/sshd@7-10.0.0.1-22-10.0.0.9-5555.service\n", "sshd@.service",
		  "" },
		{ "0::/system.slice/sshd@12-2001:db8::1:22-2001:db8::2:5555.service\n",
		  "sshd@.service", "" },
		{ "0::/system.slice/postgresql@15-main.service\n", "postgresql@15-main.service",
		  "" },
		{ "0::/system.slice/redis@6379.service\n", "redis@6379.service", "" },
		{ "0::/system.slice/web@10.0.0.1.service\n", "web@10.0.0.1.service", "" },
		{ "0::/system.slice/web@1-10.0.0.1:80.service\n", "web@1-10.0.0.1:80.service", "" },
	};

	EXPECT_PLACES(cases);
}

Test(cgroup, containers_of_every_engine_and_driver)
{
	static const struct place_case cases[] = {
		/* docker: version 1 and 2, both drivers */
		{ "12:pids:/docker/" ID "\n1:name=systemd:/docker/" ID "\n", "", SHORT },
		{ "0::/docker/" ID "\n", "", SHORT },
		{ "0::/system.slice/docker-" ID ".scope\n", "", SHORT },
		{ "1:name=systemd:/system.slice/docker-" ID ".scope\n", "", SHORT },
		{ "5:cpu,cpuacct:/docker/" ID "\n", "", SHORT },
		{ "0::/system.slice/docker.service\n", "docker.service", "" },
		{ "0::/system.slice/docker.service/docker/" ID "\n", "", SHORT },
		/* kubernetes: systemd and cgroupfs drivers, containerd and cri-o */
		{ "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD
		  ".slice/cri-containerd-" ID ".scope\n",
		  "", SHORT },
		{ "11:memory:/kubepods.slice/kubepods-pod" POD ".slice/docker-" ID ".scope\n", "",
		  SHORT },
		{ "0::/kubepods/besteffort/pod" POD_DASHES "/" ID "\n", "", SHORT },
		{ "0::/kubepods.slice/kubepods-pod" POD ".slice/crio-" ID ".scope/container\n", "",
		  SHORT },
		{ "0::/kubepods/burstable/pod" POD_DASHES "/crio-" ID "\n", "", SHORT },
		{ "0::/system.slice/containerd.service/kubepods-burstable-pod" POD
		  ".slice:cri-containerd:" ID "\n",
		  "", SHORT },
		/* podman */
		{ "0::/machine.slice/libpod-" ID ".scope/container\n", "", SHORT },
		{ "0::/libpod_parent/libpod-" ID "\n", "", SHORT },
		{ "0::/machine.slice/libpod-conmon-" ID ".scope\n", "", "" },
		{ "0::/system.slice/web.service/libpod-payload-" ID "\n", "web.service", SHORT },
		{ "0::/system.slice/web.service/runtime\n", "web.service", "" },
		/* ECS, where the id of the task is the parent's name, too */
		{ "0::/ecs/" TASK "/" TASK "-1234567890\n", "", SHORT "-1234567890" },
		{ "9:memory:/ecs/" TASK "/" TASK "-12345678\n", "", SHORT "-12345678" },
		{ "0::/ecs.slice/cri-containerd-" TASK "-9.scope\n", "", SHORT "-9" },
		{ "0::/ecs/" TASK "/" ID "\n", "", SHORT },
		{ "0::/ecs/" TASK "\n", "", "" },
		{ "0::/x/" TASK "-12a\n", "", "" },
		{ "0::/x/" TASK "-\n", "", "" },
		{ "0::/x/a" TASK "-1\n", "", "" },
		{ "0::/x/-1\n", "", "" },
		{ "0::/x/123456789012345678901234567890123\n", "", "" },
		/* UUIDs: Mesos, Garden; but no parts of another name */
		{ "0::/mesos/" POD_DASHES "\n", "", "1b2c3d4e-000" },
		{ "1:name=systemd:/garden/" POD_DASHES "/init\n", "", "1b2c3d4e-000" },
		{ "0::/app.slice/snap.firefox-" POD_DASHES ".scope\n", "", "" },
		{ "0::/x/" POD "\n", "", "" },
		{ "0::/x/1b2c3d4e-0000-1111-2222-33334444555g\n", "", "" },
		{ "0::/x/1b2c3d4e-0000-1111-2222-3333444455556\n", "", "" },
		/* LXC */
		{ "0::/lxc.payload.web/system.slice/nginx.service\n", "", "web" },
		{ "0::/lxc.payload/web\n", "", "web" },
		{ "1:name=systemd:/lxc/web/init.scope\n", "", "web" },
		{ "0::/lxc.monitor.web\n", "", "" },
		/* a service in a container, a container in a container */
		{ "0::/docker/" ID "/system.slice/nginx.service\n", "", SHORT },
		{ "0::/docker/" OUTER "/kubelet.slice/cri-containerd-" ID ".scope\n", "", SHORT },
		{ "0::/lxc.payload.web/docker/" ID "\n", "", SHORT },
	};

	EXPECT_PLACES(cases);
}

#define USER_1000 "/user.slice/user-1000.slice"
#define MANAGER_1000 USER_1000 "/user@1000.service"

Test(cgroup, what_users_arrange_for_themselves_is_theirs_and_nobody_else_s)
{
	static const struct place_case cases[] = {
		{ "0::" MANAGER_1000 "/app.slice/sshd.service\n", "user@1000/sshd.service", "" },
		{ "0::/../.." MANAGER_1000 "/app.slice/sshd.service\n", "user@1000/sshd.service",
		  "" },
		{ "12:pids:" MANAGER_1000 "\n1:name=systemd:" MANAGER_1000
		  "/app.slice/sshd.service\n",
		  "user@1000/sshd.service", "" },
		{ "0::" MANAGER_1000 "/sshd@7-10.0.0.1:22-10.0.0.9:5555.service\n",
		  "user@1000/sshd@.service", "" },
		{ "0::" MANAGER_1000 "/app.slice/run-u42.service\n", "", "" },
		/* the outermost counts */
		{ "0::" MANAGER_1000 "/user-0.slice/user@0.service/sshd.service\n",
		  "user@1000/sshd.service", "" },
		{ "0::" MANAGER_1000 "/system.slice/sshd.service\n", "user@1000/sshd.service", "" },
		{ "0::/user.slice/user-0.slice/user@0.service/sshd.service\n",
		  "user@0/sshd.service", "" },
		{ "0::/../user@1000.service/sshd.service\n", "user@1000/sshd.service", "" },
		/* a session's cgroup is the system's, and so is a unit in the slice of a user */
		{ "0::" USER_1000 "/session-3.scope/sshd.service\n", "", "" },
		{ "0::" USER_1000 "/user-runtime-dir@1000.service\n",
		  "user-runtime-dir@1000.service", "" },
		{ "0::/user-web.slice/web.service\n", "web.service", "" },
		/* rootless containers, and what looks like one */
		{ "0::/user.slice/user-1.slice/user@1.service/user.slice/docker-" ID ".scope\n", "",
		  "user@1/" SHORT },
		{ "0::" MANAGER_1000 "/user.slice/libpod-" ID ".scope/container\n", "",
		  "user@1000/" SHORT },
		{ "0::" MANAGER_1000 "/web.service/libpod-payload-" ID "\n",
		  "user@1000/web.service", "user@1000/" SHORT },
		{ "0::" MANAGER_1000 "/lxc.payload.web/system.slice/nginx.service\n", "",
		  "user@1000/web" },
		{ "0::" USER_1000 "/session-3.scope/lxc/web\n", "", "user@1000/web" },
		{ "4:memory:/docker/" ID "\n1:name=systemd:" USER_1000 "/session-3.scope\n", "",
		  "user@1000/" SHORT },
		{ "0::/user.slice/user-0.slice/session-1.scope/docker/" ID "\n", "", SHORT },
		{ "0::/user-web.slice/docker-" ID ".scope\n", "", SHORT },
		{ "0::/docker/" ID "/user.slice/user-1000.slice/user@1000.service/a.service\n", "",
		  SHORT },
	};

	EXPECT_PLACES(cases);
}

Test(cgroup, what_is_not_understood_is_nothing)
{
	static const struct place_case cases[] = {
		{ "", "", "" },
		{ "\n\n\n", "", "" },
		{ "0::", "", "" },
		{ "0:", "", "" },
		{ ":::::", "", "" },
		{ "0:://///\n", "", "" },
		{ "nonsense\n0::/system.slice/a.service\n", "a.service", "" },
		{ "0::/lxc\n", "", "" },
		{ "0::/lxc.payload.\n", "", "" },
		{ "0::/docker/0123456789ABCDEF" ID "\n", "", "" },
		{ "0::/x" ID "\n", "", "" },
	};

	EXPECT_PLACES(cases);
}

Test(cgroup, of_version_1_the_hierarchy_of_the_init_system_counts_then_those_of_containers)
{
	static const struct {
		const char *text;
		bool v2;
		unsigned int v1;
		const char *name;
	} cases[] = {
		{ "0::/init.scope\n", true, 0, "" },
		{ "12:pids:/\n3:cpu,cpuacct:/\n1:name=systemd:/init.scope\n", false, 1,
		  "name=systemd" },
		{ "12:pids:/\n1:name=systemd:/\n0::/\n", true, 1, "name=systemd" },
		{ "9:name=openrc:/nginx\n4:pids:/nginx\n", false, 9, "name=openrc" },
		{ "5:cpu,cpuacct:/a\n4:blkio,memory:/a\n3:rdma,pids:/a\n", false, 3, "rdma,pids" },
		{ "5:cpu:/a\n4:blkio,memory:/a\n", false, 4, "blkio,memory" },
		{ "5:cpu:/a\n4:memory_pids:/a\n3:name=elogind:/1\n", false, 0, "" },
		{ "", false, 0, "" },
		{ "::\n:name=systemd:/\n7:pids\n99999999999:pids:/\nx", false, 0, "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct cgroup_hierarchies found;

		cgroup_hierarchies_parse(cases[i].text, &found);
		cr_expect_eq(found.v2, cases[i].v2, "%s", cases[i].text);
		cr_expect_eq(found.v1, cases[i].v1, "%s: %u", cases[i].text, found.v1);
		cr_expect_str_eq(found.v1_name, cases[i].name);
	}
}

Test(cgroup, the_label_of_a_unit_is_its_name_without_suffix)
{
	char name[64];

	cgroup_unit_workload("nginx.service", name, sizeof(name));
	cr_expect_str_eq(name, "nginx");
	cgroup_unit_workload("postgresql@15-main.service", name, sizeof(name));
	cr_expect_str_eq(name, "postgresql@15-main");
	cgroup_unit_workload("sshd@.service", name, sizeof(name));
	cr_expect_str_eq(name, "sshd");
	cgroup_unit_workload("user@1000/sshd@.service", name, sizeof(name));
	cr_expect_str_eq(name, "user@1000/sshd");
	cgroup_unit_workload("nginx.service", name, 4);
	cr_expect_str_eq(name, "ngi");
}

/* start_boottime of the fixtures: 123456 ticks of 10 ms and a bit. */
#define START_NS 1234569999999ULL

Test(identity, a_process_is_named_by_unit_then_container_then_executable_then_comm)
{
	static const struct {
		pid_t pid;
		const char *name, *exe, *runtime, *unit, *container;
	} cases[] = {
		{ 100, "nginx", "/nonexistent/sbin/nginx", "unknown", "nginx.service", "" },
		{ 101, "a) b", "/nonexistent/opt/a) b", "unknown", "", "" },
		{ 102, "user@1000/foo", "/nonexistent/jvm/bin/java-wrapper", "jvm",
		  "user@1000/foo.service", "" },
		{ 103, SHORT, "/nonexistent/redis-server", "unknown", "", SHORT },
		{ 106, "go", "../../elf/go", "go", "", "" },
		{ 107, "native", "../../elf/native", "native", "", "" },
		{ 108, "script", "../../elf/script", "unknown", "", "" },
		{ 109, "python3.11", "/nonexistent/bin/python3.11", "python", "", "" },
		{ 110, "uwsgi", "/nonexistent/bin/uwsgi", "python", "", "" },
		{ 111, "server", "/nonexistent/bin/server", "ruby", "", "" },
		{ 112, "Api", "/nonexistent/app/Api", "dotnet", "", "" },
		{ 113, "node_exporter", "/nonexistent/bin/node_exporter", "unknown", "", "" },
		/* executed as a script, also by a 32-bit interpreter */
		{ 114, "gunicorn", "/nonexistent/bin/python3.11", "python", "", "" },
		{ 115, "run.py", "/nonexistent/bin/python3.11", "python", "", "" },
		/* as what cannot be read, a descriptor, what has no end, and no name */
		{ 116, "python3.11", "/nonexistent/bin/python3.11", "python", "", "" },
		{ 117, "python3.11", "/nonexistent/bin/python3.11", "python", "", "" },
		{ 118, "python3.11", "/nonexistent/bin/python3.11", "python", "", "" },
		{ 119, "python3.11", "/nonexistent/bin/python3.11", "python", "", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct identity identity;

		cr_assert_eq(identity_read(ROOT, cases[i].pid, START_NS, "the-comm", &identity), 0,
			     "pid %d", (int)cases[i].pid);
		cr_expect_str_eq(identity.name, cases[i].name);
		cr_expect_str_eq(identity.exe, cases[i].exe);
		cr_expect_str_eq(identity.runtime, cases[i].runtime, "pid %d: %s",
				 (int)cases[i].pid, identity.runtime);
		cr_expect_str_eq(identity.unit, cases[i].unit);
		cr_expect_str_eq(identity.container, cases[i].container);
	}
}

Test(identity, what_people_start_by_themselves_is_named_with_them_and_nothing_else_is)
{
	static const struct {
		pid_t pid;
		const char *name, *user;
	} cases[] = {
		{ 120, "user@1000/redis-server", "1000" }, /* with a thread that is called "Uid:" */
		{ 121, "apache2", "1001" }, /* the system's unit, whatever its user */
		{ 122, "redis-server", "0" }, /* root's, in the session of a login user */
		{ 123, "redis-server", "106" }, /* an account for services, without units */
		{ 124, "user@1000/sshd", "0" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct identity identity;

		cr_assert_eq(identity_read(ROOT, cases[i].pid, START_NS, "sshd", &identity), 0);
		cr_expect_str_eq(identity.name, cases[i].name, "pid %d: %s", (int)cases[i].pid,
				 identity.name);
		cr_expect_str_eq(identity.user, cases[i].user);
	}
}

Test(identity, users_are_people_or_made_for_services)
{
	static const uint32_t services[] = { 0, 1, 999, 61184, 65519, 65534, 65535 };
	static const uint32_t people[] = { 1000, 60001, 61183, 65536, 100000, UINT32_MAX - 1 };

	for (size_t i = 0; i < sizeof(services) / sizeof(*services); i++)
		cr_expect_not(user_is_login(services[i]), "%u", services[i]);
	for (size_t i = 0; i < sizeof(people) / sizeof(*people); i++)
		cr_expect(user_is_login(people[i]), "%u", people[i]);
}

Test(identity, a_qualified_name_is_cut_at_its_end)
{
	char name[16] = "redis-server", nothing[16] = "", all[4] = "abc";

	user_qualify("1000", name, sizeof(name));
	cr_expect_str_eq(name, "user@1000/redis");
	user_qualify("1000", nothing, sizeof(nothing));
	cr_expect_str_eq(nothing, "");
	user_qualify("1000", all, sizeof(all));
	cr_expect_str_eq(all, "use");
}

/* Process 104 has no executable: it has ended, and was not waited for. */
Test(identity, a_process_without_an_executable_is_gone)
{
	struct identity identity = { .name = "before" };

	cr_expect_eq(identity_read(ROOT, 104, START_NS, "the-comm", &identity), -ESRCH);
	cr_expect_str_eq(identity.name, "before");
}

Test(identity, who_may_not_see_the_executable_knows_the_comm)
{
	struct identity identity;

	cr_assert_eq(identity_read_public(ROOT, 104, START_NS, "the-comm", &identity), 0);
	cr_expect_str_eq(identity.name, "the-comm");
	cr_expect_str_eq(identity.exe, "");
	cr_expect_str_eq(identity.runtime, "unknown");
	cr_assert_eq(identity_read_public(ROOT, 104, 0, NULL, &identity), 0);
	cr_expect_str_eq(identity.name, "bare");
	cr_assert_eq(identity_read_public(ROOT, 120, START_NS, "sshd", &identity), 0);
	cr_expect_str_eq(identity.name, "user@1000/sshd");
	cr_expect_str_eq(identity.user, "1000");
}

Test(identity, a_number_that_was_used_again_is_another_process)
{
	struct identity identity = { .name = "before" };

	cr_expect_eq(identity_read(ROOT, 100, 1234550000000ULL, "x", &identity), -ESRCH);
	cr_expect_eq(identity_read(ROOT, 100, 1234570000000ULL, "x", &identity), -ESRCH);
	cr_expect_eq(identity_read(ROOT, 999, START_NS, "x", &identity), -ESRCH);
	cr_expect_eq(identity_read(ROOT, 105, START_NS, "x", &identity), -EINVAL);
	cr_expect_str_eq(identity.name, "before");
	cr_expect_eq(identity_read(ROOT, 100, 1234560000000ULL, "x", &identity), 0);
}

Test(identity, the_reader_s_time_namespace_shifts_the_start_time)
{
	struct identity identity;

	/* 123.45 s after boot, seen 100 s earlier */
	cr_expect_eq(identity_read("tests/unit/fixtures/proc_timens", 7, 123456000000ULL, "x",
				   &identity),
		     0);
	cr_expect_eq(
		identity_read("tests/unit/fixtures/proc_timens", 7, 23456000000ULL, "x", &identity),
		-ESRCH);
}

Test(timens, clocks_are_off_by_the_offsets_of_the_reader_s_own_namespace)
{
	struct timens timens = { 1, 1 };

	timens_read("tests/unit/fixtures/proc_timens", &timens);
	cr_expect_eq(timens.monotonic_ns, -50000000000LL + 5);
	cr_expect_eq(timens.boottime_ns, -100000000000LL);
	/* whose children only are in another one */
	timens_read("tests/unit/fixtures/proc_timens_children", &timens);
	cr_expect_eq(timens.monotonic_ns, 0);
	cr_expect_eq(timens.boottime_ns, 0);
	timens = (struct timens){ 1, 1 };
	timens_read("tests/unit/fixtures/nothing", &timens);
	cr_expect_eq(timens.monotonic_ns, 0);
	cr_expect_eq(timens.boottime_ns, 0);
}

Test(identity, this_process_is_itself)
{
	_cleanup_(cleanup_close) int fd = proc_open("/proc", getpid());
	const uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
	struct identity identity;
	struct proc_stat stat;
	uint64_t start_ns;

	cr_assert_eq(proc_stat_read(fd, &stat), 0);
	start_ns = stat.start_ticks * (1000000000ULL / hz) + 1;
	cr_assert_eq(identity_read("/proc", getpid(), start_ns, "comm", &identity), 0);
	cr_expect_str_eq(identity.runtime, "native");
	cr_expect_eq(identity.exe[0], '/');
	cr_expect_neq(identity.name[0], '\0');
	cr_expect_eq(identity_read("/proc", getpid(), start_ns + 1000000000ULL, "comm", &identity),
		     -ESRCH);
}

Test(identity, a_process_that_is_gone_is_named_by_its_comm)
{
	struct identity identity;

	identity_from_comm("worker", 0, &identity);
	cr_expect_str_eq(identity.name, "worker");
	cr_expect_str_eq(identity.runtime, "unknown");
	identity_from_comm("", 0, &identity);
	cr_expect_str_eq(identity.name, "unknown");
	identity_from_comm("sshd", 1000, &identity);
	cr_expect_str_eq(identity.name, "user@1000/sshd");
	cr_expect_str_eq(identity.user, "1000");
}
