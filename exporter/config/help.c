/* SPDX-License-Identifier: Apache-2.0 */
#include "config/help.h"

#include <stddef.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "commands/commands.h"
#include "config/flags.h"
#include "features/features.h"

#define TEXT_COLUMN 36 /* where the help of a flag begins */
#define DEFAULT_END 88 /* its default goes on a line of its own rather than beyond it */
#define TEXT_COLUMNS 54 /* of a text that is made: its lines are broken here */
#define TEXT_BYTES (LOADER_FEATURES_MAX * 80)

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
	"who a process is. Before Linux 5.19 CAP_BPF stays as well";

static const char help_example[] =
	".\n"
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

/* Turns spaces into ends of lines, so that none is longer than TEXT_COLUMNS unless a word is. */
static void help_break(char *text)
{
	char *line = text, *space = NULL;

	for (char *at = text; *at; at++) {
		if (*at == ' ')
			space = at;
		if (at - line >= TEXT_COLUMNS && space) {
			*space = '\n';
			line = space + 1;
			space = NULL;
		}
	}
}

static void help_collectors(struct buffer *out)
{
	const char *before = "";

	for (size_t id = 0; id < features_len; id++) {
		const struct feature *feature = features_table[id];

		if (!feature->collector)
			continue;
		buffer_printf(out, "%s%s", before, feature->plan.name);
		if (feature->hint)
			buffer_printf(out, " (%s)", feature->hint);
		before = ", ";
	}
}

/* The help of a flag as it is printed, with a NUL behind it: a view of @out, or of the flag. */
static const char *help_text(const struct flag *flag, struct buffer *out)
{
	const char *place = strstr(flag->help, FLAG_COLLECTORS);

	if (!place)
		return flag->help;
	buffer_append(out, flag->help, (size_t)(place - flag->help));
	help_collectors(out);
	buffer_text(out, place + strlen(FLAG_COLLECTORS));
	buffer_char(out, '\0');
	if (out->error)
		return flag->help;
	help_break(out->data);
	return out->data;
}

static void help_print_flag(const struct flag *flag, FILE *out)
{
	_cleanup_(buffer_free) struct buffer text = BUFFER_INIT(TEXT_BYTES);
	const char *line = help_text(flag, &text);
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

/* Those that are off unless asked for, and keep the capabilities of the start. */
static void help_print_keeping(FILE *out)
{
	for (size_t id = 0; id < features_len; id++) {
		const struct feature *feature = features_table[id];

		if (feature->off && feature->needs && feature->needs->capabilities_len)
			fprintf(out, ", and with\n--%s.backend=%s all of them do",
				feature->plan.name, feature->plan.backends[0].label);
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
	help_print_keeping(out);
	fputs(help_example, out);
}
