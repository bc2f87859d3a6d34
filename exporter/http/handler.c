/* SPDX-License-Identifier: Apache-2.0 */
#include "http/handler.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"

#define ROOM_WAIT_NS (1000 * NS_PER_MS) /* for room for a page; then 503 */

/* A request, from its headers until it is answered or given up. */
struct turn {
	uint64_t arrived_ns; /* when it was admitted; 0: not yet */
	enum http_wait wait;
	bool admitted;
	struct http_body *body; /* of the page that is being sent: a reference; NULL: none */
};

static uint64_t now_ms(void)
{
	return clock_monotonic_ns() / NS_PER_MS;
}

/* --- answers -------------------------------------------------------------------------------- */

static bool add_header(struct MHD_Response *response, const char *name, const char *value)
{
	return !value || MHD_add_response_header(response, name, value) == MHD_YES;
}

/* Those of the web configuration file; nosniff is ours in any case. */
static bool add_configured_headers(const struct http_handler *handler,
				   struct MHD_Response *response)
{
	for (int header = 0; header < WEB_HEADERS; header++)
		if (header != WEB_HEADER_CONTENT_TYPE_OPTIONS &&
		    !add_header(response, web_header_name(header),
				guard_header(handler->guard, header)))
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
static enum MHD_Result send_response(const struct http_handler *handler,
				     struct MHD_Connection *connection,
				     const struct http_page *page, struct MHD_Response *response)
{
	enum MHD_Result result = MHD_NO;

	if (!response)
		return MHD_NO;
	if (add_header(response, "Content-Type", page->content_type) &&
	    add_header(response, "Content-Encoding", page->content_encoding) &&
	    add_header(response, "Vary", page->vary) && add_configured_headers(handler, response) &&
	    add_status_headers(response, page->status))
		result = MHD_queue_response(connection, page->status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result send_text(const struct http_handler *handler,
				 struct MHD_Connection *connection, unsigned status,
				 const char *text)
{
	struct http_page page = { .status = status, .content_type = HTTP_CONTENT_TYPE_PLAIN };

	/* The text is constant: libmicrohttpd only reads it. */
	return send_response(handler, connection, &page,
			     MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
							     MHD_RESPMEM_PERSISTENT));
}

static void release_body(void *body)
{
	http_body_unref(body);
}

/* From now until the request is completed @body counts as being sent, shared or not once. */
static void turn_send(struct http_handler *handler, struct turn *turn, struct http_body *body)
{
	turn->body = http_body_ref(body);
	handler->page_bytes = body->bytes.len;
	if (!body->senders++)
		handler->sending_bytes += body->bytes.len;
}

static void turn_sent(struct http_handler *handler, struct turn *turn)
{
	if (turn->body && !--turn->body->senders)
		handler->sending_bytes -= turn->body->bytes.len;
	http_body_unref(turn->body);
}

/* The body is shared, not copied; HEAD gets it too, for the length, and is sent none of it. */
static enum MHD_Result send_page(struct http_handler *handler, struct MHD_Connection *connection,
				 struct turn *turn, const struct http_page *page)
{
	struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
		page->body->bytes.len, page->body->bytes.data, release_body, page->body);

	turn_send(handler, turn, page->body);
	if (!response)
		http_body_unref(page->body);
	return send_response(handler, connection, page, response);
}

static enum MHD_Result refuse(struct http_handler *handler, struct MHD_Connection *connection,
			      enum http_refusal refusal)
{
	static const struct {
		unsigned status;
		const char *text;
	} answers[HTTP_REFUSALS] = {
		[HTTP_REFUSED_CONFIG_BROKEN] = { MHD_HTTP_INTERNAL_SERVER_ERROR,
						 "The web configuration is broken; see the "
						 "log.\n" },
		[HTTP_REFUSED_RATE_LIMIT] = { MHD_HTTP_TOO_MANY_REQUESTS, "Too many requests.\n" },
		[HTTP_REFUSED_PASSWORDS_BUSY] = { MHD_HTTP_TOO_MANY_REQUESTS,
						  "Too many passwords to check.\n" },
		[HTTP_REFUSED_UNAUTHORIZED] = { MHD_HTTP_UNAUTHORIZED, "Unauthorized.\n" },
		[HTTP_REFUSED_MAX_REQUESTS] = { MHD_HTTP_SERVICE_UNAVAILABLE,
						"Too many requests at the same time.\n" },
	};

	handler->refused[refusal]++;
	return send_text(handler, connection, answers[refusal].status, answers[refusal].text);
}

/* --- stages --------------------------------------------------------------------------------- */

static struct http_connection *record_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static const struct http_origin *origin_of(struct MHD_Connection *connection)
{
	static const struct http_origin nowhere = { 0 };
	const struct http_connection *record = record_of(connection);

	return record ? &record->origin : &nowhere;
}

static void turn_wait(struct http_handler *handler, struct turn *turn, enum http_wait wait)
{
	handler->waiting[turn->wait]--;
	handler->waiting[wait]++;
	turn->wait = wait;
}

static void enter_stage(struct http_handler *handler, struct MHD_Connection *connection,
			enum http_stage stage)
{
	struct http_connection *record = record_of(connection);

	if (record)
		http_connections_stage(handler->connections, record, stage, now_ms());
}

/*
 * libmicrohttpd keeps a record for each argument of a query, and when a connection's memory ends it
 * closes it without an answer. So it is shown no more of them than it takes to refuse them. The
 * text is in the connection's own buffer, and has not been read yet.
 */
static void query_cut(char *uri)
{
	size_t arguments = 0;

	while (*uri && arguments <= HTTP_ARGUMENTS_MAX)
		arguments += *uri++ == '&';
	*uri = '\0';
}

/* A client that asks again has as long for its headers as a new one. */
void *http_handler_begun(void *arg, const char *uri, struct MHD_Connection *connection)
{
	const struct http_connection *record = record_of(connection);

	query_cut((char *)(uintptr_t)uri);
	if (record && record->stage == HTTP_STAGE_IDLE)
		enter_stage(arg, connection, HTTP_STAGE_REQUEST);
	return NULL;
}

void http_handler_completed(void *arg, struct MHD_Connection *connection, void **request,
			    enum MHD_RequestTerminationCode how)
{
	struct http_handler *handler = arg;
	struct turn *turn = *request;

	(void)how;
	if (turn) {
		handler->waiting[turn->wait]--;
		turn_sent(handler, turn);
	}
	free(turn);
	*request = NULL;
	enter_stage(handler, connection, HTTP_STAGE_IDLE);
}

/* --- pages ---------------------------------------------------------------------------------- */

static enum MHD_Result add_argument(void *arg, enum MHD_ValueKind kind, const char *name,
				    const char *value)
{
	struct http_request *request = arg;

	(void)kind;
	if (request->arguments_len < HTTP_ARGUMENTS_MAX)
		request->arguments[request->arguments_len] =
			(struct http_argument){ name, value ? value : "" };
	request->arguments_len++;
	return MHD_YES;
}

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
	const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);

	return value ? value : "";
}

/*
 * Whether one more page may be sent. Where there are as many as there may be the one that gives way
 * to @asking is ended.
 */
static bool answers_have_room(struct http_handler *handler, const struct http_origin *asking)
{
	struct http_connections *connections = handler->connections;

	return connections->stage_len[HTTP_STAGE_ANSWER] < handler->max_requests ||
	       http_connections_end_answer(connections, asking, now_ms());
}

static bool bytes_have_room(const struct http_handler *handler)
{
	return !handler->sending_bytes ||
	       handler->sending_bytes + handler->page_bytes <= HTTP_SENDING_MAX_BYTES;
}

/*
 * -EAGAIN if there is no room for the page: what is being sent already may be sent to more clients,
 * but another must not be made. Answers are ended one at a time until there is room: what one holds
 * is free once it is closed, in the next run.
 */
static int make_page(struct http_handler *handler, struct MHD_Connection *connection,
		     const struct turn *turn, http_page_fn ask, struct http_page *page)
{
	const struct http_origin *asking = origin_of(connection);
	struct http_request request = {
		.accept = header_of(connection, "Accept"),
		.accept_encoding = header_of(connection, "Accept-Encoding"),
		.scrape_timeout = header_of(connection, "X-Prometheus-Scrape-Timeout-Seconds"),
		.arrived_ns = turn->arrived_ns,
		.made_only = !bytes_have_room(handler) ||
			     (handler->waiting[HTTP_WAIT_ROOM] &&
			      http_connections_poorer_wait(handler->connections, asking)),
	};
	int r;

	if (!answers_have_room(handler, asking))
		return -EAGAIN;
	MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_argument, &request);
	if (request.arguments_len > HTTP_ARGUMENTS_MAX)
		return http_page_text(page, MHD_HTTP_BAD_REQUEST, "Too many query arguments.\n");
	r = ask(handler->arg, &request, page);
	if (r == -EAGAIN && !http_connections_are_closing(handler->connections))
		http_connections_end_answer(handler->connections, asking, now_ms());
	return r;
}

/*
 * A page is not asked for when its request comes but in the run after it: whoever asks first then
 * pays for a snapshot, which is younger than all requests that wait and answers all of them. A
 * final call that queues no response is made again in the next run, at once.
 */
static enum MHD_Result answer_page(struct http_handler *handler, struct MHD_Connection *connection,
				   struct turn *turn, http_page_fn ask)
{
	struct http_page page = { 0 };
	int r;

	if (!turn->arrived_ns) {
		turn->arrived_ns = clock_monotonic_ns();
		enter_stage(handler, connection, HTTP_STAGE_WAIT);
		turn_wait(handler, turn, HTTP_WAIT_RUN);
		return MHD_YES;
	}
	r = make_page(handler, connection, turn, ask, &page);
	if (r == -EAGAIN && clock_monotonic_ns() - turn->arrived_ns < ROOM_WAIT_NS) {
		turn_wait(handler, turn, HTTP_WAIT_ROOM);
		return MHD_YES;
	}
	turn_wait(handler, turn, HTTP_WAIT_NOTHING);
	enter_stage(handler, connection, HTTP_STAGE_ANSWER);
	if (r == -EAGAIN)
		return refuse(handler, connection, HTTP_REFUSED_MAX_REQUESTS);
	if (r)
		return send_text(handler, connection, MHD_HTTP_SERVICE_UNAVAILABLE,
				 "The page could not be made; see the log.\n");
	return send_page(handler, connection, turn, &page);
}

static enum MHD_Result answer(struct http_handler *handler, struct MHD_Connection *connection,
			      struct turn *turn, const char *path, const char *method)
{
	bool metrics = strcmp(path, handler->telemetry_path) == 0, landing = strcmp(path, "/") == 0;

	if (!metrics && !landing && strcmp(path, HTTP_HEALTH_PATH) != 0)
		return send_text(handler, connection, MHD_HTTP_NOT_FOUND, "Not found.\n");
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return send_text(handler, connection, MHD_HTTP_METHOD_NOT_ALLOWED,
				 "Only GET and HEAD.\n");
	if (metrics || landing)
		return answer_page(handler, connection, turn,
				   metrics ? handler->metrics : handler->landing);
	return send_text(handler, connection, MHD_HTTP_OK, "Healthy\n");
}

/* --- requests ------------------------------------------------------------------------------- */

static enum MHD_Result refuse_by_verdict(struct http_handler *handler,
					 struct MHD_Connection *connection,
					 enum guard_verdict verdict)
{
	switch (verdict) {
	case GUARD_LIMITED:
		return refuse(handler, connection, HTTP_REFUSED_RATE_LIMIT);
	case GUARD_BUSY:
		return refuse(handler, connection, HTTP_REFUSED_PASSWORDS_BUSY);
	case GUARD_UNAUTHORIZED:
		return refuse(handler, connection, HTTP_REFUSED_UNAUTHORIZED);
	default:
		return refuse(handler, connection, HTTP_REFUSED_CONFIG_BROKEN);
	}
}

static bool request_has_body(struct MHD_Connection *connection)
{
	return strspn(header_of(connection, "Content-Length"), "0") !=
		       strlen(header_of(connection, "Content-Length")) ||
	       *header_of(connection, "Transfer-Encoding");
}

static bool is_open(const struct http_handler *handler, const char *path)
{
	return handler->health_open && strcmp(path, HTTP_HEALTH_PATH) == 0;
}

/* With the headers only: an answer now ends the connection without reading on. */
static enum MHD_Result begin_turn(struct http_handler *handler, struct MHD_Connection *connection,
				  const char *path, const char *method, void **request)
{
	enum guard_verdict verdict = GUARD_ADMIT;

	*request = calloc(1, sizeof(struct turn));
	if (!*request)
		return MHD_NO;
	handler->waiting[HTTP_WAIT_NOTHING]++;
	if (!is_open(handler, path))
		verdict = guard_enter(handler->guard, header_of(connection, "Authorization"));
	if (verdict != GUARD_ADMIT)
		return refuse_by_verdict(handler, connection, verdict);
	if (!request_has_body(connection))
		return MHD_YES;
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return send_text(handler, connection, MHD_HTTP_METHOD_NOT_ALLOWED,
				 "Only GET and HEAD.\n");
	return send_text(handler, connection, MHD_HTTP_CONTENT_TOO_LARGE,
			 "Requests have no body here.\n");
}

/* GUARD_WAIT queues no response: the final call is made again until there is a verdict. */
static enum guard_verdict check_turn(struct http_handler *handler,
				     struct MHD_Connection *connection, struct turn *turn,
				     const char *path)
{
	enum guard_verdict verdict;

	if (turn->admitted || is_open(handler, path))
		return GUARD_ADMIT;
	verdict = guard_check(handler->guard, header_of(connection, "Authorization"),
			      origin_of(connection));
	if (verdict == GUARD_WAIT && turn->wait != HTTP_WAIT_CHECK)
		enter_stage(handler, connection, HTTP_STAGE_CHECK);
	turn_wait(handler, turn, verdict == GUARD_WAIT ? HTTP_WAIT_CHECK : HTTP_WAIT_NOTHING);
	turn->admitted = verdict == GUARD_ADMIT;
	return verdict;
}

/*
 * libmicrohttpd calls twice: with the headers, then with the whole request.
 */
enum MHD_Result http_handler_request(void *arg, struct MHD_Connection *connection, const char *path,
				     const char *method, const char *version, const char *upload,
				     size_t *upload_bytes, void **request)
{
	struct http_handler *handler = arg;
	enum guard_verdict verdict;

	(void)version;
	(void)upload;
	if (!*request)
		return begin_turn(handler, connection, path, method, request);
	if (*upload_bytes)
		return MHD_NO;
	verdict = check_turn(handler, connection, *request, path);
	if (verdict == GUARD_WAIT)
		return MHD_YES;
	if (verdict != GUARD_ADMIT)
		return refuse_by_verdict(handler, connection, verdict);
	return answer(handler, connection, *request, path, method);
}
