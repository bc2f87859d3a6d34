/* SPDX-License-Identifier: Apache-2.0 */
#include "app/check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <sysexits.h>

#include "app/preflight.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "config/config.h"
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

int check_run(int argc, char *const *argv, const char *proc_root)
{
	_cleanup_(preflight_free) struct preflight preflight = { 0 };
	struct privileges privileges = { 0 };
	struct loader_options options = { .privileges = &privileges, .proc_root = proc_root };
	struct loader *loader = NULL;
	bool json = false;
	int r = config_check_parse(&json, argc, argv, stdout, stderr);

	if (r)
		return r > 0 ? EXIT_SUCCESS : EX_USAGE;
	privileges_read(proc_root, &privileges); /* where unknown, reasons say less */
	features_plan(&options, ~0U);
	r = loader_new(&options, &loader);
	if (r) {
		fprintf(stderr, "check: cannot load: %s\n", strerror(-r));
		return EX_OSERR;
	}
	check_gather(loader, &privileges, proc_root, &preflight);
	r = check_print(&preflight, json);
	loader_free(loader);
	return r;
}
