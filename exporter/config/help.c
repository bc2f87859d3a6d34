/* SPDX-License-Identifier: Apache-2.0 */
#include "config/help.h"

#include <stddef.h>
#include <string.h>

#include "commands/commands.h"
#include "config/flags.h"
#include "features/features.h"

#define TEXT_COLUMN 36 /* where the help of a flag begins */
#define DEFAULT_END 88 /* its default goes on a line of its own rather than beyond it */

static const char help_head[] =
	"workload_exporter shows, for each service of this machine, how many requests wait, how\n"
	"long they waited and were served, what each thread pool does and what it waits for.\n"
	"Services need no change and no restart: all of it is observed from the kernel with eBPF.\n"
	"\n"
	"Usage: workload_exporter [flags]\n";

static const char help_flags[] = "\n"
				 "Flags (--flag=value or --flag value):\n";

static const char help_pages[] =
	"\n"
	"Pages: PATH (metrics), / (what is attached and watched), /-/healthy (liveness)";

static const char help_tail[] =
	".\n"
	"\n"
	"Privileges: root, or the capabilities CAP_BPF and CAP_PERFMON (to load and attach BPF\n"
	"programs) and CAP_SYS_PTRACE (to identify processes of other users). Without them it\n"
	"says what is missing; \"workload_exporter check\" tells it beforehand. All of them are\n"
	"given up after the start, but for CAP_SYS_PTRACE in a process of its own that only says\n"
	"who a process is. Before Linux 5.19 CAP_BPF stays as well, and with\n"
	"--mutex.backend=uprobe all of them do.\n"
	"\n"
	"Example, for every interface on port 9100 with JSON logs:\n"
	"  sudo workload_exporter --web.listen-address=:9100 --log.format=json\n";

static void help_print_default(const char *value, size_t column, FILE *out)
{
	static const char label[] = "Default: ";

	if (column + 1 + strlen(label) + strlen(value) <= DEFAULT_END)
		fprintf(out, " %s%s", label, value);
	else
		fprintf(out, "\n%*s%s%s", TEXT_COLUMN, "", label, value);
}

static void help_print_flag(const struct flag *flag, FILE *out)
{
	const char *line = flag->help;
	int written = fprintf(out, "  --%s", flag->name);
	size_t len;

	if (flag->metavariable)
		written += fprintf(out, "=%s", flag->metavariable);
	fprintf(out, "%*s", TEXT_COLUMN - written, "");
	for (len = strcspn(line, "\n"); line[len]; len = strcspn(line, "\n")) {
		fprintf(out, "%.*s\n%*s", (int)len, line, TEXT_COLUMN, "");
		line += len + 1;
	}
	fputs(line, out);
	if (flag->fallback)
		help_print_default(flag->fallback, TEXT_COLUMN + len, out);
	fputc('\n', out);
}

/* Of features, a line each. */
static void help_print_pages(FILE *out)
{
	for (size_t id = 0; id < features_len; id++) {
		const struct feature *feature = features_table[id];

		for (size_t i = 0; i < feature->routes_len; i++)
			if (feature->routes[i].title)
				fprintf(out, ",\n%s (%s: %s)", feature->routes[i].path,
					feature->plan.name, feature->routes[i].title);
	}
}

void help_print(const void *values, FILE *out)
{
	struct flags_walk walk = { 0 };

	(void)values;
	fputs(help_head, out);
	commands_print(out);
	fputs(help_flags, out);
	while (flags_next(&walk))
		help_print_flag(walk.flag, out);
	fputs(help_pages, out);
	help_print_pages(out);
	fputs(help_tail, out);
}
