/* SPDX-License-Identifier: Apache-2.0 */
#include "http/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct http_body *http_body_new(struct buffer *bytes)
{
	struct http_body *body = malloc(sizeof(*body));

	if (!body)
		return NULL;
	body->bytes = *bytes;
	body->references = 1;
	body->senders = 0;
	*bytes = (struct buffer)BUFFER_INIT(bytes->max);
	return body;
}

struct http_body *http_body_ref(struct http_body *body)
{
	body->references++;
	return body;
}

void http_body_unref(struct http_body *body)
{
	if (!body || --body->references)
		return;
	buffer_free(&body->bytes);
	free(body);
}

int http_page_bytes(struct http_page *page, unsigned int status, const char *content_type,
		    struct buffer *bytes)
{
	struct http_body *body = bytes->error ? NULL : http_body_new(bytes);

	if (!body)
		return bytes->error ? bytes->error : -ENOMEM;
	*page = (struct http_page){
		.status = status,
		.content_type = content_type,
		.body = body,
	};
	return 0;
}

int http_page_text(struct http_page *page, unsigned int status, const char *text)
{
	_cleanup_(buffer_free) struct buffer bytes = BUFFER_INIT(strlen(text));

	buffer_text(&bytes, text);
	return http_page_bytes(page, status, HTTP_CONTENT_TYPE_PLAIN, &bytes);
}
