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
	"h1 { margin-bottom: 0; } h2 { margin-top: 2rem; } p { margin: .25rem 0; }\n"
	"nav { margin-top: 1rem; } nav a { margin-right: 1rem; }\n"
	".scroll { overflow-x: auto; }\n"
	"table { border-collapse: collapse; width: 100%; }\n"
	"th, td { text-align: left; vertical-align: top; padding: .25rem 1.5rem .25rem 0; }\n"
	"th:last-child, td:last-child { padding-right: 0; }\n"
	"table.fit { width: auto; }\n"
	"th { white-space: nowrap; font-weight: 600; opacity: .7; }\n"
	"tbody { border-top: 1px solid #8884; }\n"
	".n { text-align: right; font-variant-numeric: tabular-nums; }\n"
	".name { font-weight: 600; overflow-wrap: anywhere; min-width: 8rem; }\n"
	".gone { opacity: .5; } .no { color: #c33; font-weight: 600; }\n"
	"small { opacity: .7; }\n"
	"</style>\n"
	"</head>\n"
	"<body>\n"
	"<h1>workload_exporter</h1>\n"
	"<p>What the services of this machine wait for, seen from the kernel.</p>\n";

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

static void html_text(struct buffer *out, const char *text)
{
	size_t len;

	for (; text && *text; text += len ? len : 1) {
		len = utf8_length(text);
		if (html_entity(*text))
			buffer_text(out, html_entity(*text));
		else if (!len)
			buffer_text(out, UTF8_REPLACEMENT);
		else
			buffer_append(out, text, len);
	}
}

static void landing_number(struct buffer *out, uint64_t number)
{
	buffer_printf(out, "<td class=\"n\">%" PRIu64 "</td>", number);
}

static void landing_links(const char *telemetry_path, struct buffer *out)
{
	buffer_text(out, "<nav><a href=\"");
	html_text(out, telemetry_path);
	buffer_text(out, "\">Metrics</a> <a href=\"" HTTP_HEALTH_PATH "\">Health</a></nav>\n");
}

static void landing_version(const struct build_row *build, struct buffer *out)
{
	if (!build)
		return;
	buffer_text(out, "<p><small>Version ");
	html_text(out, build->version);
	buffer_text(out, " (branch ");
	html_text(out, build->branch);
	buffer_text(out, ", revision ");
	html_text(out, build->revision);
	buffer_text(out, ")</small></p>\n");
}

/* The cells of a workload, which stand once beside all of its @ports. */
static void landing_identity(const struct workload_row *row, size_t ports, struct buffer *out)
{
	size_t span = ports ? ports : 1;

	buffer_printf(out, "<td class=\"name\" rowspan=\"%zu\">", span);
	html_text(out, row->workload);
	buffer_printf(out, "</td><td rowspan=\"%zu\">", span);
	html_text(out, row->runtime);
	buffer_printf(out, "</td><td class=\"n\" rowspan=\"%zu\">%" PRIu64 "</td>", span,
		      row->processes);
}

static void landing_endpoint(const struct endpoint_row *row, struct buffer *out)
{
	buffer_text(out, "<td class=\"n\">");
	html_text(out, row->port);
	buffer_text(out, "</td>");
	landing_number(out, row->connections);
	landing_number(out, row->queued);
	landing_number(out, row->in_service);
}

/* Its lines: one for each of its @ports, which begin at @endpoints. */
static void landing_workload(const struct workload_row *row, const struct endpoint_row *endpoints,
			     size_t ports, struct buffer *out)
{
	buffer_text(out, row->processes ? "<tbody>\n<tr>" : "<tbody class=\"gone\">\n<tr>");
	landing_identity(row, ports, out);
	for (size_t i = 0; i < ports; i++) {
		if (i)
			buffer_text(out, "</tr>\n<tr>");
		landing_endpoint(&endpoints[i], out);
	}
	buffer_text(out, ports ? "</tr>\n</tbody>\n" : "<td colspan=\"4\"></td></tr>\n</tbody>\n");
}

/* How many of the endpoints from @first on are those of @workload. */
static size_t landing_ports(const struct snapshot *snapshot, size_t first, const char *workload)
{
	size_t end = first;

	while (end < snapshot->endpoints_len &&
	       strcmp(snapshot->endpoints[end].workload, workload) == 0)
		end++;
	return end - first;
}

/* Both are sorted by workload, but not every workload has a port, nor need each be listed. */
static void landing_workloads(const struct snapshot *snapshot, struct buffer *out)
{
	size_t at = 0;

	buffer_printf(out, "<h2>Services (%zu)</h2>\n", snapshot->workloads_len);
	if (!snapshot->workloads_len) {
		buffer_text(out, "<p>No process listens on TCP, or none was found.</p>\n");
		return;
	}
	buffer_text(out, "<div class=\"scroll\"><table>\n<thead><tr><th>Workload</th>"
			 "<th>Runtime</th><th class=\"n\">Processes</th><th class=\"n\">Port</th>"
			 "<th class=\"n\">Connections</th><th class=\"n\">Queued</th>"
			 "<th class=\"n\">In service</th></tr></thead>\n");
	for (size_t i = 0; i < snapshot->workloads_len; i++) {
		const struct workload_row *row = &snapshot->workloads[i];
		size_t ports;

		while (at < snapshot->endpoints_len &&
		       strcmp(snapshot->endpoints[at].workload, row->workload) < 0)
			at++;
		ports = landing_ports(snapshot, at, row->workload);
		landing_workload(row, snapshot->endpoints + at, ports, out);
		at += ports;
	}
	buffer_text(out, "</table></div>\n");
}

/* How many of the probes from @first on are of its feature; @attached of them are in place. */
static size_t landing_feature_len(const struct snapshot *snapshot, size_t first, size_t *attached)
{
	const char *feature = snapshot->probes[first].feature;
	size_t end = first;

	*attached = 0;
	for (; end < snapshot->probes_len && strcmp(snapshot->probes[end].feature, feature) == 0;
	     end++)
		*attached += snapshot->probes[end].attached;
	return end - first;
}

static void landing_feature(const struct probe_row *probes, size_t len, size_t attached,
			    struct buffer *out)
{
	const char *separator = "";

	buffer_text(out, "<tbody><tr><td class=\"name\">");
	html_text(out, probes[0].feature);
	buffer_printf(out, "</td><td class=\"n\">%zu of %zu</td><td class=\"no\">", attached, len);
	for (size_t i = 0; i < len; i++) {
		if (probes[i].attached)
			continue;
		buffer_text(out, separator);
		html_text(out, probes[i].probe);
		separator = ", ";
	}
	buffer_text(out, "</td></tr></tbody>\n");
}

static void landing_probes(const struct snapshot *snapshot, struct buffer *out)
{
	size_t len, attached;

	if (!snapshot->probes_len)
		return;
	buffer_text(out, "<h2>Probes</h2>\n<div class=\"scroll\"><table class=\"fit\">\n"
			 "<thead><tr><th>Feature</th><th class=\"n\">Attached</th>"
			 "<th>Missing</th></tr></thead>\n");
	for (size_t i = 0; i < snapshot->probes_len; i += len) {
		len = landing_feature_len(snapshot, i, &attached);
		landing_feature(&snapshot->probes[i], len, attached, out);
	}
	buffer_text(out, "</table></div>\n");
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
