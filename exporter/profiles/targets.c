/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/targets.h"

#include <stdbool.h>
#include <string.h>

#include "abi/limits.h"
#include "base/cleanup.h"
#include "base/json.h"

#define HOST_BYTES_MAX 261U /* a name (RFC 1035), a colon, and a port */
#define TARGETS_BYTES_MAX (4U << 20) /* 1023 names of 255 bytes, each escaped, twice, are less */

/* Whether it can be the address of a target: a name or an address, and maybe a port. */
static bool host_is_plain(const char *host)
{
	static const char marks[] = "0123456789abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ.-_:[]";
	size_t len = strspn(host, marks);

	return len && len <= HOST_BYTES_MAX && !host[len];
}

static void target_write(const char *host, const char *workload, struct buffer *out)
{
	buffer_text(out, "{\"targets\":[");
	json_string(out, host);
	buffer_text(out, "],\"labels\":{\"__param_workload\":");
	json_string(out, workload);
	buffer_text(out, ",\"service_name\":");
	json_string(out, workload);
	buffer_text(out, "}}");
}

int targets_page(const struct profiler *profiler, const struct http_request *request,
		 struct http_page *page)
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(TARGETS_BYTES_MAX);
	const char *workloads[TREES_MAX];
	size_t len = profiler_workloads(profiler, workloads);

	if (!host_is_plain(request->host))
		return http_page_text(
			page, 400, "targets have the address in the header Host, which is none\n");
	buffer_char(&out, '[');
	for (size_t i = 0; i < len; i++) {
		buffer_text(&out, i ? ",\n" : "");
		target_write(request->host, workloads[i], &out);
	}
	buffer_text(&out, "]\n");
	return http_page_bytes(page, 200, "application/json", &out);
}
