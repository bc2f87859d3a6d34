/* SPDX-License-Identifier: Apache-2.0 */
#include "http/landing.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"

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

static void html_text(struct buffer *out, const char *text)
{
	static const char marks[] = "&<>\"'";
	static const char *const entities[] = { "&amp;", "&lt;", "&gt;", "&quot;", "&#39;" };
	size_t len;

	for (; text && *text; text += len ? len : 1) {
		const char *mark = strchr(marks, *text);

		len = utf8_length(text);
		if (mark)
			buffer_text(out, entities[mark - marks]);
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

static void landing_links(const struct http_routes *routes, struct buffer *out)
{
	const char *before = "<nav>";

	for (size_t i = 0; i < routes->len; i++) {
		if (!routes->rows[i].title)
			continue;
		buffer_printf(out, "%s<a href=\"", before);
		html_text(out, routes->rows[i].path);
		buffer_text(out, "\">");
		html_text(out, routes->rows[i].title);
		buffer_text(out, "</a>");
		before = " ";
	}
	buffer_text(out, "</nav>\n");
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

static void landing_name(const char *name, struct buffer *out)
{
	buffer_text(out, "<td class=\"name\">");
	html_text(out, name);
	buffer_text(out, "</td>");
}

static void landing_identity(const struct workload_row *row, struct buffer *out)
{
	landing_name(row->workload, out);
	buffer_text(out, "<td>");
	html_text(out, row->runtime);
	buffer_text(out, "</td>");
	landing_number(out, row->processes);
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

/* A line for each of its ports, which begin at @endpoints, or one without; how many it has. */
static size_t landing_workload(const struct workload_row *row, const struct endpoint_row *endpoints,
			       size_t endpoints_len, struct buffer *out)
{
	size_t ports = 0;

	buffer_text(out, row->processes ? "<tbody>\n<tr>" : "<tbody class=\"gone\">\n<tr>");
	landing_identity(row, out);
	for (; ports < endpoints_len && strcmp(endpoints[ports].workload, row->workload) == 0;
	     ports++) {
		if (ports)
			buffer_text(out, "</tr>\n<tr><td colspan=\"3\"></td>");
		landing_endpoint(&endpoints[ports], out);
	}
	buffer_text(out, ports ? "</tr>\n</tbody>\n" : "<td colspan=\"4\"></td></tr>\n</tbody>\n");
	return ports;
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

		while (at < snapshot->endpoints_len &&
		       strcmp(snapshot->endpoints[at].workload, row->workload) < 0)
			at++;
		at += landing_workload(row, snapshot->endpoints + at, snapshot->endpoints_len - at,
				       out);
	}
	buffer_text(out, "</table></div>\n");
}

/* A line for each feature, whose probes follow each other. */
static void landing_probes(const struct snapshot *snapshot, struct buffer *out)
{
	const char *feature = "";

	if (!snapshot->probes_len)
		return;
	buffer_text(out, "<h2>Probes</h2>\n<div class=\"scroll\"><table>\n"
			 "<thead><tr><th>Feature</th><th>Attached, and <span class=\"no\">missing"
			 "</span></th></tr></thead>\n");
	for (size_t i = 0; i < snapshot->probes_len; i++) {
		const struct probe_row *probe = &snapshot->probes[i];

		if (strcmp(probe->feature, feature) != 0) {
			buffer_text(out, i ? "</td></tr></tbody>\n<tbody><tr>" : "<tbody><tr>");
			landing_name(probe->feature, out);
			buffer_text(out, "<td>");
		} else {
			buffer_text(out, ", ");
		}
		feature = probe->feature;
		buffer_text(out, probe->attached ? "<span>" : "<span class=\"no\">");
		html_text(out, probe->probe);
		buffer_text(out, "</span>");
	}
	buffer_text(out, "</td></tr></tbody>\n</table></div>\n");
}

int landing_render(const struct snapshot *snapshot, const struct http_routes *routes,
		   struct buffer *out)
{
	buffer_text(out, page_head);
	landing_version(snapshot->build, out);
	landing_links(routes, out);
	landing_workloads(snapshot, out);
	landing_probes(snapshot, out);
	buffer_text(out, "</body>\n</html>\n");
	return out->error;
}
