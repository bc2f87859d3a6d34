/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "commands/preflight.h"
#include "kernel/refusal.h"
#include "security/privileges.h"

#define BIT(capability) (1ULL << (capability))
#define NEEDED (BIT(CAP_BPF) | BIT(CAP_PERFMON) | BIT(CAP_SYS_PTRACE))

static const struct privileges all = { .known = true, .effective = NEEDED };
static const struct privileges none = { .known = true };

/* --- privileges ----------------------------------------------------------------------------- */

/* A /proc of which only self/status and self/ns/user exist. */
static int read_from(const char *status, const char *namespace, struct privileges *out)
{
	char root[] = "/tmp/preflight_XXXXXX", path[128];
	FILE *file;
	int r;

	cr_assert_not_null(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/self", root);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/self/ns", root);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/self/status", root);
	file = fopen(path, "w");
	fputs(status, file);
	fclose(file);
	if (namespace) {
		snprintf(path, sizeof(path), "%s/self/ns/user", root);
		cr_assert_eq(symlink(namespace, path), 0);
	}
	r = privileges_read(root, out);
	snprintf(path, sizeof(path), "rm -r %s", root);
	cr_assert_eq(system(path), 0);
	return r;
}

Test(privileges, are_the_effective_ones)
{
	struct privileges privileges = { 0 };

	cr_assert_eq(read_from("Name:\tx\nCapPrm:\t000001ffffffffff\nCapEff:\t0000008000080000\n",
			       "user:[4026531837]", &privileges),
		     0);
	cr_expect(privileges.known);
	cr_expect_not(privileges.user_namespace);
	cr_expect(privileges_have(&privileges, CAP_BPF));
	cr_expect_not(privileges_have(&privileges, CAP_PERFMON));
	cr_expect(privileges_have(&privileges, CAP_SYS_PTRACE));
}

Test(privileges, of_a_user_namespace_do_not_count)
{
	struct privileges privileges = { 0 };

	cr_assert_eq(read_from("CapEff:\t000001ffffffffff\n", "user:[4026532000]", &privileges), 0);
	cr_expect(privileges.user_namespace);
	cr_expect_not(privileges_have(&privileges, CAP_BPF));
	cr_expect_not(privileges_implied(&privileges, CAP_BPF));
}

Test(privileges, are_read_where_the_kernel_has_no_user_namespaces)
{
	struct privileges privileges = { 0 };

	cr_assert_eq(read_from("CapEff:\t000001ffffffffff\n", NULL, &privileges), 0);
	cr_expect(privileges_have(&privileges, CAP_BPF));
}

Test(privileges, that_cannot_be_read_are_not_invented)
{
	static const char *const wrong[] = { "", "Name:\tx\n", "CapEff:\tmany\n", "CapEff:\n",
					     "CapEff:\t1ffffffffffffffffff\n" };
	struct privileges privileges = { 0 };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		cr_expect_eq(read_from(wrong[i], NULL, &privileges), -EINVAL, "%s", wrong[i]);
	cr_expect_eq(privileges_read("/nowhere", &privileges), -ENOENT);
	cr_expect_not(privileges.known);
	cr_expect_not(privileges_have(&privileges, CAP_BPF));
}

Test(privileges, cap_sys_admin_implies_bpf_and_perfmon_but_not_ptrace)
{
	struct privileges privileges = { .known = true, .effective = BIT(CAP_SYS_ADMIN) };

	cr_expect(privileges_have(&privileges, CAP_BPF));
	cr_expect(privileges_have(&privileges, CAP_PERFMON));
	cr_expect(privileges_implied(&privileges, CAP_PERFMON));
	cr_expect_not(privileges_have(&privileges, CAP_SYS_PTRACE));
	privileges.effective |= BIT(CAP_BPF);
	cr_expect_not(privileges_implied(&privileges, CAP_BPF));
}

/* --- refusals ------------------------------------------------------------------------------- */

struct words {
	char reason[REFUSAL_REASON_BYTES];
	char remedy[REFUSAL_REMEDY_BYTES];
};

/* The words for @refusal, where what is not set is: nothing known, all privileges held. */
static struct words refused_with(struct refusal refusal, bool btf)
{
	struct words words;

	refusal.step = "loading";
	refusal.needs = "Linux 6.3 or later";
	refusal.btf = btf;
	refusal.missing = refusal.missing ? refusal.missing : "";
	refusal.program = refusal.program ? refusal.program : "";
	refusal.log = refusal.log ? refusal.log : "";
	refusal.privileges = refusal.privileges ? refusal.privileges : &all;
	refusal_explain(&refusal, words.reason, words.remedy);
	return words;
}

#define REFUSED(...) refused_with((struct refusal){ __VA_ARGS__ }, true)

static void expect_words(struct words words, const char *reason, const char *remedy)
{
	cr_expect_str_eq(words.reason, reason);
	cr_expect_str_eq(words.remedy, remedy);
}

Test(refusal, names_the_capabilities_that_lack)
{
	const struct privileges bpf = { .known = true, .effective = BIT(CAP_BPF) };
	const struct privileges perfmon = { .known = true, .effective = BIT(CAP_PERFMON) };

	expect_words(REFUSED(.error = -EPERM, .privileges = &none),
		     "loading: not permitted: lacks CAP_BPF and CAP_PERFMON", PRIVILEGES_REMEDY);
	expect_words(REFUSED(.error = -EACCES, .privileges = &bpf),
		     "loading: not permitted: lacks CAP_PERFMON", PRIVILEGES_REMEDY);
	expect_words(REFUSED(.error = -EPERM, .privileges = &perfmon),
		     "loading: not permitted: lacks CAP_BPF", PRIVILEGES_REMEDY);
}

Test(refusal, does_not_blame_a_capability_that_is_held)
{
	struct words words = REFUSED(.error = -EPERM);

	cr_expect_not_null(strstr(words.reason, "although"), "%s", words.reason);
	cr_expect_not_null(strstr(words.remedy, "lockdown"), "%s", words.remedy);
}

Test(refusal, knows_that_a_user_namespace_is_not_enough)
{
	const struct privileges inner = { .known = true,
					  .user_namespace = true,
					  .effective = NEEDED };
	struct words words = REFUSED(.error = -EPERM, .privileges = &inner);

	cr_expect_not_null(strstr(words.reason, "user namespace"), "%s", words.reason);
	cr_expect_str_eq(words.remedy, PRIVILEGES_REMEDY_NAMESPACE);
}

Test(refusal, blames_neither_privileges_nor_the_kernel_where_there_is_too_little_of_something)
{
	static const struct {
		int error;
		const char *reason, *remedy;
	} wants[] = {
		{ -ENOMEM, "loading: Cannot allocate memory", "MemoryMax=" },
		{ -EMFILE, "loading: Too many open files", "LimitNOFILE=" },
		{ -ENFILE, "loading: Too many open files in system", "LimitNOFILE=" },
	};

	for (size_t i = 0; i < sizeof(wants) / sizeof(*wants); i++) {
		struct words words = REFUSED(.error = wants[i].error, .program = "p",
					     .log = "half a log", .missing = "tracepoint x");

		cr_expect_str_eq(words.reason, wants[i].reason);
		cr_expect_not_null(strstr(words.remedy, wants[i].remedy), "%s", words.remedy);
	}
}

Test(refusal, names_hooks_that_the_kernel_does_not_have)
{
	expect_words(REFUSED(.error = -ESRCH, .missing = "tracepoint sk_data_ready"),
		     "loading: this kernel has no tracepoint sk_data_ready",
		     "use Linux 6.3 or later");
}

Test(refusal, asks_for_the_types_of_the_kernel)
{
	struct words words = refused_with((struct refusal){ .error = -ESRCH }, false);

	cr_expect_not_null(strstr(words.reason, "/sys/kernel/btf/vmlinux"), "%s", words.reason);
	cr_expect_str_eq(words.remedy, REFUSAL_REMEDY_BTF);
}

Test(refusal, quotes_the_last_lines_of_the_verifier)
{
	struct words words = REFUSED(.error = -EACCES, .program = "requests_read",
				     .log = "0: (bf) r6 = r1\n1: (79) r1 = *(u64 *)(r6 +0)\n"
					    "R1 invalid mem access 'scalar'\n"
					    "processed 2 insns (limit 1000000)\n");

	cr_expect_str_eq(words.reason,
			 "loading: the verifier of this kernel refuses requests_read: "
			 "0: (bf) r6 = r1 | 1: (79) r1 = *(u64 *)(r6 +0) | "
			 "R1 invalid mem access 'scalar'");
	cr_expect_not_null(strstr(words.remedy, "Linux 6.3"), "%s", words.remedy);
}

Test(refusal, says_the_error_where_nothing_else_is_known)
{
	const struct privileges unknown = { 0 };

	cr_expect_str_eq(REFUSED(.error = -ENOMEM).reason, "loading: Cannot allocate memory");
	expect_words(REFUSED(.error = -EPERM, .privileges = &unknown),
		     "loading: Operation not permitted", PRIVILEGES_REMEDY);
}

Test(refusal, keeps_the_end_of_a_log_without_end)
{
	char tail[32], line[400];

	refusal_log_tail("", tail, sizeof(tail));
	cr_expect_str_empty(tail);
	refusal_log_tail("\n\n\n", tail, sizeof(tail));
	cr_expect_str_empty(tail);
	refusal_log_tail("a\n\nb\nc\nd", tail, sizeof(tail));
	cr_expect_str_eq(tail, "b | c | d");
	memset(line, 'x', sizeof(line));
	memcpy(line + sizeof(line) - 5, "end\n", 5);
	refusal_log_tail(line, tail, sizeof(tail));
	cr_expect_eq(strlen(tail), sizeof(tail) - 1);
	cr_expect_str_eq(tail + sizeof(tail) - 4, "end");
	refusal_log_tail("a line that does not fit\nanother line\nthe last", tail, sizeof(tail));
	cr_expect_str_eq(tail, "t fit | another line | the last");
}

/* --- the check ------------------------------------------------------------------------------ */

#define FEATURES 4

struct check {
	struct feature_status features[FEATURES];
	struct preflight preflight;
};

/* For _cleanup_(check_free). */
static void check_free(struct check **check)
{
	preflight_free(&(*check)->preflight);
	free(*check);
}

static struct check *check_new(bool discovery, bool requests, bool threads)
{
	struct check *check = calloc(1, sizeof(*check));
	const bool on[FEATURES] = { discovery, requests, threads, threads };
	static const char *const names[FEATURES] = { "discovery", "requests", "threads", "mutex" };

	cr_assert_not_null(check);
	check->preflight.version = "1.0";
	for (int id = 0; id < FEATURES; id++) {
		check->features[id] = (struct feature_status){ .name = names[id],
							       .on = on[id],
							       .supports = id == 0,
							       .optional = id == 3,
							       .since_major = id == 1 ? 6 : 5,
							       .since_minor = id == 1 ? 3 : 15 };
		if (!on[id])
			text_copy(check->features[id].reason, REFUSAL_REASON_BYTES, "refused");
		preflight_add_feature(&check->preflight, &check->features[id]);
	}
	return check;
}

static enum preflight_result result_of(bool discovery, bool requests, bool threads)
{
	_cleanup_(check_free) struct check *check = check_new(discovery, requests, threads);

	return preflight_result(&check->preflight);
}

Test(preflight, result_is_all_some_or_none)
{
	cr_expect_eq(result_of(true, true, true), PREFLIGHT_ALL);
	cr_expect_eq(result_of(true, false, true), PREFLIGHT_SOME);
	cr_expect_eq(result_of(true, true, false), PREFLIGHT_SOME);
	cr_expect_eq(result_of(true, false, false), PREFLIGHT_NONE);
	cr_expect_eq(result_of(false, false, false), PREFLIGHT_NONE);
}

/* The row of @name, which must be there. */
static const struct preflight_row *row_of(const struct check *check, const char *name)
{
	for (size_t i = 0; i < check->preflight.rows_len; i++)
		if (strcmp(check->preflight.rows[i].name, name) == 0)
			return &check->preflight.rows[i];
	cr_assert_fail("no row %s", name);
	return NULL;
}

static const struct preflight_machine good_machine = {
	.release = "6.18.1",
	.btf = true,
	.proc_mounted = true,
	.proc_initial = true,
	.proc_all = true,
	.cgroups = { .v2 = true },
};

Test(preflight, compares_the_kernel_with_what_is_off)
{
	static const struct {
		const char *release, *reason, *remedy;
		bool requests;
	} cases[] = {
		{ "6.1.0-28-amd64", "6.1.0-28-amd64: requests needs 6.3", "use Linux 6.3 or later",
		  false },
		{ "6.3.0", "6.3.0", "", false },
		{ "10.0", "10.0", "", false },
		{ "5.14.0-el9", "5.14.0-el9", "", true }, /* parts of later kernels are in it */
		{ "strange", "strange", "", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_(check_free) struct check *check = check_new(true, cases[i].requests,
								      true);
		struct preflight_machine machine = good_machine;
		const struct preflight_row *row;

		text_copy(machine.release, sizeof(machine.release), cases[i].release);
		preflight_add_machine(&check->preflight, &machine);
		row = row_of(check, "Linux version");
		cr_expect_str_eq(row->reason, cases[i].reason);
		cr_expect_str_eq(row->remedy, cases[i].remedy);
		cr_expect_eq(row->ok, !*cases[i].remedy);
	}
}

Test(preflight, says_what_of_multipath_tcp_is_not_measured)
{
	_cleanup_(check_free) struct check *check = check_new(true, true, true);
	struct preflight_machine machine = good_machine;
	const struct preflight_row *row;

	preflight_add_machine(&check->preflight, &machine);
	row = row_of(check, "plain TCP to listeners of Multipath TCP");
	cr_expect(row->ok);
	cr_expect_str_empty(row->reason);
	machine.multipath = 7;
	check->preflight.rows_len = 0;
	preflight_add_machine(&check->preflight, &machine);
	row = row_of(check, "plain TCP to listeners of Multipath TCP");
	cr_expect(row->ok);
	cr_expect(strstr(row->reason, ": 7;"), "%s", row->reason);
}

Test(refusal, knows_that_the_oldest_kernel_depends_on_the_machine)
{
	cr_expect_eq(refusal_oldest_minor("x86_64"), 15);
	cr_expect_eq(refusal_oldest_minor("aarch64"), 18);
}

Test(preflight, names_every_feature_that_a_kernel_is_too_old_for)
{
	_cleanup_(check_free) struct check *check = check_new(false, false, false);
	struct preflight_machine machine = good_machine;

	text_copy(machine.release, sizeof(machine.release), "5.10.0");
	preflight_add_machine(&check->preflight, &machine);
	cr_expect_str_eq(row_of(check, "Linux version")->reason,
			 "5.10.0: discovery needs 5.15, requests needs 6.3, "
			 "threads needs 5.15, mutex needs 5.15");
	cr_expect_str_eq(row_of(check, "Linux version")->remedy, "use Linux 6.3 or later");
}

/* What the row of /proc says holds @word; NULL: it says yes. */
static void expect_proc(bool mounted, bool initial, bool all_processes, const char *word)
{
	_cleanup_(check_free) struct check *check = check_new(true, true, true);
	struct preflight_machine machine = good_machine;
	const struct preflight_row *row;

	machine.proc_mounted = mounted;
	machine.proc_initial = initial;
	machine.proc_all = all_processes;
	preflight_add_machine(&check->preflight, &machine);
	row = row_of(check, "/proc shows all processes");
	cr_expect_eq(row->ok, !word);
	cr_expect_not_null(strstr(row->reason, word ? word : ""), "%s", row->reason);
	cr_expect_eq(!*row->remedy, !word);
}

Test(preflight, says_why_processes_are_not_visible)
{
	expect_proc(true, true, true, NULL);
	expect_proc(false, false, false, "not mounted");
	expect_proc(true, false, true, "PID namespace");
	expect_proc(true, true, false, "hidepid");
}

static void expect_cgroups(bool v2, unsigned int v1, const char *v1_name, const char *reason)
{
	_cleanup_(check_free) struct check *check = check_new(true, true, true);
	struct preflight_machine machine = good_machine;
	const struct preflight_row *row;

	machine.cgroups = (struct cgroup_hierarchies){ .v2 = v2, .v1 = v1 };
	text_copy(machine.cgroups.v1_name, sizeof(machine.cgroups.v1_name), v1_name);
	preflight_add_machine(&check->preflight, &machine);
	row = row_of(check, "cgroups tell services apart");
	cr_expect_eq(row->ok, v2 || v1);
	cr_expect_not_null(strstr(row->reason, reason), "%s", row->reason);
	cr_expect_eq(!*row->remedy, row->ok);
}

Test(preflight, says_by_which_cgroups_services_are_told_apart)
{
	expect_cgroups(true, 0, "", "by version 2");
	expect_cgroups(false, 9, "name=systemd", "by version 1, name=systemd");
	expect_cgroups(true, 9, "name=systemd", "by version 2 and version 1, name=systemd");
	expect_cgroups(false, 0, "", "belongs to the init system");
}

Test(preflight, table_has_a_line_per_answer_and_what_to_do)
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(65536);
	_cleanup_(check_free) struct check *check = check_new(true, false, true);
	struct preflight_machine machine = good_machine;
	const struct probe_row probe = { "requests", "requests_read", 0 };

	preflight_add_hook(&check->preflight, &probe, "tp_btf/sock_recv_length", "its\x1b[1m end");
	preflight_add_privileges(&check->preflight, &none);
	machine.btf = false;
	preflight_add_machine(&check->preflight, &machine);
	cr_assert_eq(preflight_render_table(&check->preflight, &out), 0);
	buffer_char(&out, '\0');
	cr_expect_not_null(strstr(out.data, "workload_exporter 1.0 on Linux 6.18.1\n"));
	cr_expect_not_null(
		strstr(out.data, "tp_btf/sock_recv_length (requests_read)  no   its [1m"));
	cr_expect_not_null(strstr(out.data, "do: " PRIVILEGES_REMEDY "\n"));
	cr_expect_not_null(strstr(out.data, "do: " REFUSAL_REMEDY_BTF "\n"));
	cr_expect_not_null(strstr(out.data, "\nSome default features do not work.\n"));
}

Test(preflight, table_tells_of_limits_where_all_works)
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(65536);
	_cleanup_(check_free) struct check *check = check_new(true, true, true);
	const struct privileges admin = { .known = true, .effective = BIT(CAP_SYS_ADMIN) };

	preflight_add_privileges(&check->preflight, &admin);
	preflight_add_machine(&check->preflight, &good_machine);
	preflight_render_table(&check->preflight, &out);
	buffer_char(&out, '\0');
	cr_expect_not_null(strstr(out.data, "yes  implied by CAP_SYS_ADMIN\n"));
	cr_expect_not_null(strstr(out.data, "after the thread"));
	cr_expect_not_null(strstr(out.data, "\nAll default features work, within the limits"));
}

/* Linux 7 needs spares: of room for 64 rows 60 were taken. */
Test(preflight, no_row_is_lost_however_many_there_are)
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(1 << 20);
	_cleanup_(check_free) struct check *check = check_new(true, true, true);
	char names[1000][24], label[32];

	for (int i = 0; i < 1000; i++) {
		const struct probe_row probe = { "threads", names[i], .attached = 1 };

		snprintf(names[i], sizeof(names[i]), "program %d", i);
		preflight_add_hook(&check->preflight, &probe, "tp_btf/sched_switch", "");
	}
	cr_expect_eq(preflight_render_table(&check->preflight, &out), 0);
	buffer_char(&out, '\0');
	for (int i = 0; i < 1000; i++) {
		snprintf(label, sizeof(label), "(program %d) ", i);
		cr_expect_not_null(strstr(out.data, label), "%s", label);
	}
}

Test(json, strings_are_escaped)
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(4096);

	json_string(&out, "a\"b\\c\n\x01\x7f\xc3\xa9\xff");
	buffer_char(&out, '\0');
	cr_expect_str_eq(out.data, "\"a\\\"b\\\\c\\u000a\\u0001\\u007f\xc3\xa9\xef\xbf\xbd\"");
}
