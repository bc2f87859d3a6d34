/* SPDX-License-Identifier: Apache-2.0 */
/* The command `workload_exporter web-config check FILE`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "web/guard.h"

#define ERROR_BYTES 512

static int web_config_run(const struct command_call *call)
{
	struct guard_options options = { .path = call->operand };
	struct guard *guard = NULL;
	char error[ERROR_BYTES] = "";
	int r = guard_new(&options, &guard, error, sizeof(error));

	if (r)
		fprintf(stderr, "%s\n", *error ? error : strerror(-r));
	else
		printf("%s is good: %s\n", call->operand,
		       guard_has_tls(guard) ? "with TLS" : "without TLS");
	guard_free(guard);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

const struct command command_web_config = {
	.name = "web-config check",
	.operand = "FILE",
	.summary = "Whether FILE is good for\n--web.config.file",
	.about = "Tells whether FILE, with the certificates and keys that it names, is good for\n"
		 "--web.config.file.\n",
	.exit_codes = "0 it is, 1 it is not (one line says why), 64 wrong arguments,\n"
		      "71 out of memory.\n",
	.run = web_config_run,
};
