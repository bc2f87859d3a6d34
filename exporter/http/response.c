/* SPDX-License-Identifier: Apache-2.0 */
#include "http/response.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static bool add_header(struct MHD_Response *response, const char *name, const char *value)
{
	return !value || MHD_add_response_header(response, name, value) == MHD_YES;
}

/* Those of the web configuration file; nosniff is ours in any case. */
static bool add_configured_headers(const struct guard *guard, struct MHD_Response *response)
{
	for (int header = 0; header < WEB_HEADERS; header++)
		if (header != WEB_HEADER_CONTENT_TYPE_OPTIONS &&
		    !add_header(response, web_header_name(header), guard_header(guard, header)))
			return false;
	return add_header(response, "X-Content-Type-Options", "nosniff");
}

/* What the status itself demands. */
static bool add_status_headers(struct MHD_Response *response, unsigned status)
{
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		return add_header(response, "Allow", "GET, HEAD");
	if (status == MHD_HTTP_UNAUTHORIZED)
		return add_header(response, "WWW-Authenticate",
				  "Basic realm=\"workload_exporter\", charset=\"UTF-8\"");
	if (status == MHD_HTTP_TOO_MANY_REQUESTS)
		return add_header(response, "Retry-After", "1");
	return true;
}

/* Adds the headers of @page, queues and releases @response, which may be NULL: no memory. */
static enum MHD_Result respond(struct MHD_Connection *connection, const struct guard *guard,
			       const struct http_page *page, struct MHD_Response *response)
{
	enum MHD_Result result = MHD_NO;

	if (!response)
		return MHD_NO;
	if (add_header(response, "Content-Type", page->content_type) &&
	    add_header(response, "Content-Encoding", page->content_encoding) &&
	    add_header(response, "Vary", page->vary) && add_configured_headers(guard, response) &&
	    add_status_headers(response, page->status))
		result = MHD_queue_response(connection, page->status, response);
	MHD_destroy_response(response);
	return result;
}

static void release_body(void *body)
{
	http_body_unref(body);
}

enum MHD_Result http_respond(struct MHD_Connection *connection, const struct guard *guard,
			     const struct http_page *page)
{
	struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
		page->body->bytes.len, page->body->bytes.data, release_body, page->body);

	if (!response)
		http_body_unref(page->body);
	return respond(connection, guard, page, response);
}

enum MHD_Result http_respond_text(struct MHD_Connection *connection, const struct guard *guard,
				  unsigned int status, const char *text)
{
	const struct http_page page = { .status = status, .content_type = HTTP_CONTENT_TYPE_PLAIN };

	/* libmicrohttpd only reads the text. */
	return respond(connection, guard, &page,
		       MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
						       MHD_RESPMEM_PERSISTENT));
}
