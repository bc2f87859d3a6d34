/* SPDX-License-Identifier: Apache-2.0 */
#include "http/landing.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"
#include "http/server.h"

static const char page_head[] =
	"<!DOCTYPE html>\n"
	"<html lang=\"en\">\n"
	"<head>\n"
	"<meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	"<title>workload_exporter</title>\n"
	"<style>\n"
	":root { color-scheme: light dark; }\n"
	"body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto;"
	" padding: 0 1rem; }\n"
	"table { border-collapse: collapse; width: 100%; }\n"
	"th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0;"
	" border-bottom: 1px solid #8884; overflow-wrap: anywhere; }\n"
	"td.no { color: #c33; }\n"
	"small { opacity: .7; }\n"
	"</style>\n"
	"</head>\n"
	"<body>\n"
	"<h1>workload_exporter</h1>\n";

static const char *html_entity(char byte)
{
	switch (byte) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

/* HTML has no control characters, not even as references: they are shown as U+FFFD too. */
static void html_text(struct buffer *out, const char *text)
{
	size_t len;

	for (; text && *text; text += len ? len : 1) {
		len = utf8_length(text);
		if (html_entity(*text))
			buffer_text(out, html_entity(*text));
		else if (!len || (len == 1 && (*text < ' ' || *text == 0x7f)))
			buffer_text(out, UTF8_REPLACEMENT);
		else
			buffer_append(out, text, len);
	}
}

static void landing_cell(struct buffer *out, const char *text)
{
	buffer_text(out, "<td>");
	html_text(out, text);
	buffer_text(out, "</td>");
}

static void landing_links(const char *telemetry_path, struct buffer *out)
{
	buffer_text(out, "<p><a href=\"");
	html_text(out, telemetry_path);
	buffer_text(out,
		    "\">Metrics</a> &middot; <a href=\"" HTTP_HEALTH_PATH "\">Health</a></p>\n");
}

static void landing_version(const struct build_row *build, struct buffer *out)
{
	if (!build)
		return;
	buffer_text(out, "<p>Version ");
	html_text(out, build->version);
	buffer_text(out, " <small>(branch ");
	html_text(out, build->branch);
	buffer_text(out, ", revision ");
	html_text(out, build->revision);
	buffer_text(out, ")</small></p>\n");
}

/* The ports of one workload, in one cell. */
static void landing_ports(const struct snapshot *snapshot, const char *workload, struct buffer *out)
{
	const char *separator = "";

	buffer_text(out, "<td>");
	for (size_t i = 0; i < snapshot->endpoints_len; i++) {
		const struct endpoint_row *row = &snapshot->endpoints[i];

		if (strcmp(row->workload, workload) != 0)
			continue;
		buffer_text(out, separator);
		html_text(out, row->port);
		buffer_printf(out, ": %" PRIu64 " queued, %" PRIu64 " in service", row->queued,
			      row->in_service);
		separator = "<br>";
	}
	buffer_text(out, "</td>");
}

static void landing_workloads(const struct snapshot *snapshot, struct buffer *out)
{
	buffer_printf(out, "<h2>Workloads (%zu)</h2>\n", snapshot->workloads_len);
	if (!snapshot->workloads_len) {
		buffer_text(out, "<p>No process listens on TCP, or none was found.</p>\n");
		return;
	}
	buffer_text(out, "<table>\n<tr><th>Workload</th><th>Runtime</th><th>Processes</th>"
			 "<th>Ports</th></tr>\n");
	for (size_t i = 0; i < snapshot->workloads_len; i++) {
		const struct workload_row *row = &snapshot->workloads[i];

		buffer_text(out, "<tr>");
		landing_cell(out, row->workload);
		landing_cell(out, row->runtime);
		buffer_printf(out, "<td>%" PRIu64 "</td>", row->processes);
		landing_ports(snapshot, row->workload, out);
		buffer_text(out, "</tr>\n");
	}
	buffer_text(out, "</table>\n");
}

static void landing_probes(const struct snapshot *snapshot, struct buffer *out)
{
	buffer_text(out, "<h2>Probes</h2>\n<table>\n"
			 "<tr><th>Feature</th><th>Probe</th><th>Attached</th></tr>\n");
	for (size_t i = 0; i < snapshot->probes_len; i++) {
		const struct probe_row *row = &snapshot->probes[i];

		buffer_text(out, "<tr>");
		landing_cell(out, row->feature);
		landing_cell(out, row->probe);
		buffer_text(out, row->attached ? "<td>yes</td>" : "<td class=\"no\">no</td>");
		buffer_text(out, "</tr>\n");
	}
	buffer_text(out, "</table>\n");
}

int landing_render(const struct snapshot *snapshot, const char *telemetry_path, struct buffer *out)
{
	buffer_text(out, page_head);
	landing_version(snapshot->build, out);
	landing_links(telemetry_path, out);
	landing_workloads(snapshot, out);
	landing_probes(snapshot, out);
	buffer_text(out, "</body>\n</html>\n");
	return out->error;
}
