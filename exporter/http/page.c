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

int http_page_text(struct http_page *page, unsigned int status, const char *text)
{
	_cleanup_(buffer_free) struct buffer bytes = BUFFER_INIT(strlen(text));
	struct http_body *body = NULL;

	buffer_text(&bytes, text);
	if (!bytes.error)
		body = http_body_new(&bytes);
	if (!body)
		return -ENOMEM;
	*page = (struct http_page){
		.status = status,
		.content_type = HTTP_CONTENT_TYPE_PLAIN,
		.body = body,
	};
	return 0;
}
