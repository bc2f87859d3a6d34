/* SPDX-License-Identifier: Apache-2.0 */
/* The command `workload_exporter check`: what this machine allows, told by trying it. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <sysexits.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/command.h"
#include "base/units.h"
#include "commands/preflight.h"
#include "features/features.h"
#include "kernel/loader.h"
#include "security/privileges.h"
#include "version.h"

#define CHECK_BYTES (256 * 1024)

static void check_gather(const struct loader *loader, const struct privileges *privileges,
			 const char *proc_root, struct preflight *preflight)
{
	struct preflight_machine machine;
	const struct probe_row *probes;
	size_t len;

	preflight->version = VERSION;
	for (size_t id = 0; id < features_len; id++)
		preflight_add_feature(preflight, loader_feature(loader, id));
	probes = loader_probes(loader, &len);
	for (size_t i = 0; i < len; i++)
		preflight_add_hook(preflight, &probes[i], loader_probe_hook(loader, i),
				   loader_probe_reason(loader, i));
	preflight_add_privileges(preflight, privileges);
	preflight_machine_read(proc_root, &machine);
	preflight_add_machine(preflight, &machine);
}

static int check_print(const struct preflight *preflight, bool json)
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(CHECK_BYTES);
	int r = json ? preflight_render_json(preflight, &out)
		     : preflight_render_table(preflight, &out);

	if (r) {
		fprintf(stderr, "check: %s\n", strerror(-r));
		return EX_OSERR;
	}
	fwrite(out.data, 1, out.len, stdout);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "check: cannot write: %s\n", strerror(errno));
		return EX_IOERR;
	}
	return (int)preflight_result(preflight);
}

struct check_settings {
	bool json;
};

/*
 * Loads and attaches what the exporter would, and removes it again; the answer is written to
 * standard output.
 */
static int check_run(const struct command_call *call)
{
	_cleanup_(preflight_free) struct preflight preflight = { 0 };
	const struct check_settings *settings = call->settings;
	struct privileges privileges = { 0 };
	struct loader_options options = { .privileges = &privileges, .proc_root = call->proc_root };
	struct loader *loader = NULL;
	int r;

	privileges_read(call->proc_root, &privileges); /* where unknown, reasons say less */
	features_plan(&options, ~0U);
	r = loader_new(&options, &loader);
	if (r) {
		fprintf(stderr, "check: cannot load: %s\n", strerror(-r));
		return EX_OSERR;
	}
	check_gather(loader, &privileges, call->proc_root, &preflight);
	r = check_print(&preflight, settings->json);
	loader_free(loader);
	return r;
}

static const struct flag check_flags[] = {
	COMMAND_FLAG("json", NULL, NULL, FLAG_SWITCH(check_settings, json),
		     "The same as one JSON object, for machines."),
};

const struct command command_check = {
	.name = "check",
	.summary = "What this machine allows, and what to do",
	.about = "Tells what the exporter could measure here: every feature and hook is really "
		 "loaded and\n"
		 "attached, as at the start of the exporter, and removed again; then the "
		 "privileges, the\n"
		 "kernel and /proc. Of everything: yes or no, the reason, and what to do.\n",
	.exit_codes = "0 all default features work, 1 some do not, 2 nothing can be measured;\n"
		      "64 wrong arguments, 71 out of memory, 74 the answer could not be "
		      "written.\n",
	.flags = check_flags,
	.flags_len = COUNT(check_flags),
	.settings_bytes = sizeof(struct check_settings),
	.run = check_run,
};
