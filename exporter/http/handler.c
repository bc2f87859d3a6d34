/* SPDX-License-Identifier: Apache-2.0 */
#include "http/handler.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "http/listen.h"
#include "http/response.h"

static uint64_t now_ms(void)
{
	return clock_monotonic_ns() / NS_PER_MS;
}

/* --- answers -------------------------------------------------------------------------------- */

static enum MHD_Result send_text(const struct http_handler *handler, const struct http_turn *turn,
				 unsigned status, const char *text)
{
	return http_respond_text(turn->connection, handler->guard, status, text);
}

/* From now until the request is completed @body counts as being sent, shared or not once. */
static void turn_send(struct http_handler *handler, struct http_turn *turn, struct http_body *body)
{
	turn->body = http_body_ref(body);
	if (!body->senders++)
		handler->sending_bytes += body->bytes.len;
}

static void turn_sent(struct http_handler *handler, struct http_turn *turn)
{
	if (turn->body && !--turn->body->senders)
		handler->sending_bytes -= turn->body->bytes.len;
	http_body_unref(turn->body);
}

static enum MHD_Result send_page(struct http_handler *handler, struct http_turn *turn,
				 const struct http_page *page)
{
	turn_send(handler, turn, page->body);
	return http_respond(turn->connection, handler->guard, page);
}

static enum MHD_Result refuse(struct http_handler *handler, const struct http_turn *turn,
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
		[HTTP_REFUSED_PRIVATE] = { MHD_HTTP_FORBIDDEN,
					   "This page is for clients with a password or "
					   "certificate, or on the same machine: see "
					   "--web.config.file.\n" },
		[HTTP_REFUSED_MAX_REQUESTS] = { MHD_HTTP_SERVICE_UNAVAILABLE,
						"Too many requests at the same time.\n" },
	};

	handler->refused[refusal]++;
	return send_text(handler, turn, answers[refusal].status, answers[refusal].text);
}

/* --- stages --------------------------------------------------------------------------------- */

static void enter_stage(struct http_handler *handler, struct http_connection *record,
			enum http_stage stage)
{
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
	struct http_connection *record = http_record_of(connection);

	query_cut((char *)(uintptr_t)uri);
	if (record && record->stage == HTTP_STAGE_IDLE)
		enter_stage(arg, record, HTTP_STAGE_REQUEST);
	return NULL;
}

void http_handler_completed(void *arg, struct MHD_Connection *connection, void **request,
			    enum MHD_RequestTerminationCode how)
{
	struct http_handler *handler = arg;
	struct http_turn *turn = *request;

	(void)connection;
	(void)how;
	*request = NULL;
	if (!turn)
		return;
	turn_sent(handler, turn);
	enter_stage(handler, turn->record, HTTP_STAGE_IDLE);
	http_turn_free(turn);
	http_turns_wake(&handler->turns, HTTP_WAIT_ROOM);
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

	return http_connections_held(connections, HTTP_STAGE_ANSWER, NULL) <
		       handler->max_requests ||
	       http_connections_end_answer(connections, asking, now_ms());
}

static bool bytes_have_room(const struct http_handler *handler, size_t bytes)
{
	return !handler->sending_bytes || handler->sending_bytes + bytes <= HTTP_SENDING_MAX_BYTES;
}

/* What the headers say and, but for a page that is prompt, the arguments. False: too many. */
static bool request_read(const struct http_turn *turn, const struct http_route *route,
			 struct http_request *request)
{
	request->host = header_of(turn->connection, "Host");
	request->accept = header_of(turn->connection, "Accept");
	request->accept_encoding = header_of(turn->connection, "Accept-Encoding");
	request->scrape_timeout = header_of(turn->connection,
					    "X-Prometheus-Scrape-Timeout-Seconds");
	if (!route->prompt)
		MHD_get_connection_values(turn->connection, MHD_GET_ARGUMENT_KIND, add_argument,
					  request);
	return request->arguments_len <= HTTP_ARGUMENTS_MAX;
}

static int page_too_many_arguments(struct http_page *page)
{
	return http_page_text(page, MHD_HTTP_BAD_REQUEST, "Too many query arguments.\n");
}

/*
 * -EAGAIN if there is no room for the page: what is being sent already may be sent to more clients,
 * but another must not be made. Answers are ended one at a time until there is room: what one holds
 * is free once it is closed, in the next run.
 */
static int make_page(struct http_handler *handler, const struct http_turn *turn,
		     const struct http_route *route, struct http_page *page)
{
	const struct http_origin *asking = &turn->record->origin;
	struct http_request request = {
		.arrived_ns = turn->arrived_ns,
		.made_only = !bytes_have_room(handler, handler->page_bytes) ||
			     (handler->turns.waiting[HTTP_WAIT_ROOM] &&
			      http_connections_poorer_wait(handler->connections, asking)),
	};
	int r;

	if (!answers_have_room(handler, asking))
		return -EAGAIN;
	if (!request_read(turn, route, &request))
		return page_too_many_arguments(page);
	r = route->page(route->arg, &request, page);
	if (r == -EAGAIN && !http_connections_are_closing(handler->connections))
		http_connections_end_answer(handler->connections, asking, now_ms());
	return r;
}

/* The others look again: which of them goes first, and what gives way to it, may be another. */
static void stop_waiting(struct http_handler *handler, struct http_turn *turn)
{
	http_turn_wait(turn, HTTP_WAIT_NOTHING);
	enter_stage(handler, turn->record, HTTP_STAGE_ANSWER);
	http_turns_wake(&handler->turns, HTTP_WAIT_ROOM);
}

static enum MHD_Result send_failure(const struct http_handler *handler,
				    const struct http_turn *turn)
{
	return send_text(handler, turn, MHD_HTTP_SERVICE_UNAVAILABLE,
			 "The page could not be made; see the log.\n");
}

/* The request waits no more: what @r says, or @page. */
static enum MHD_Result finish(struct http_handler *handler, struct http_turn *turn, int r,
			      const struct http_page *page)
{
	stop_waiting(handler, turn);
	if (r == -EAGAIN)
		return refuse(handler, turn, HTTP_REFUSED_MAX_REQUESTS);
	return r ? send_failure(handler, turn) : send_page(handler, turn, page);
}

/*
 * A page is not asked for when its request comes but in the run after it: the first request then
 * pays for a snapshot, which is younger than all requests that wait and answers all of them. A
 * final call that queues no response is made again in the next run, at once.
 */
static enum MHD_Result wait_for_run(struct http_handler *handler, struct http_turn *turn)
{
	turn->arrived_ns = clock_monotonic_ns();
	enter_stage(handler, turn->record, HTTP_STAGE_WAIT);
	http_turn_wait(turn, HTTP_WAIT_RUN);
	return MHD_YES;
}

static enum MHD_Result answer_page(struct http_handler *handler, struct http_turn *turn,
				   const struct http_route *route)
{
	struct http_page page = { 0 };
	int r;

	if (http_turn_line_up(turn, handler->connections))
		return MHD_YES;
	r = make_page(handler, turn, route, &page);
	if (r == -EAGAIN && http_turn_wait_for_room(turn, handler->connections))
		return MHD_YES;
	if (!r)
		handler->page_bytes = page.body->bytes.len;
	return finish(handler, turn, r, &page);
}

/* Its page is there; room to send it is looked for now. */
static enum MHD_Result send_later(struct http_handler *handler, struct http_turn *turn)
{
	const struct http_origin *asking = &turn->record->origin;
	const struct http_body *body = turn->page.body;
	bool fits = body->senders || bytes_have_room(handler, body->bytes.len);
	struct http_page page;

	if (http_turn_line_up(turn, handler->connections))
		return MHD_YES;
	if (fits && answers_have_room(handler, asking)) {
		page = http_turn_take_page(turn);
		return finish(handler, turn, 0, &page);
	}
	if (!fits && !http_connections_are_closing(handler->connections))
		http_connections_end_answer(handler->connections, asking, now_ms());
	if (http_turn_wait_for_room(turn, handler->connections))
		return MHD_YES;
	page = http_turn_take_page(turn);
	http_body_unref(page.body);
	return finish(handler, turn, -EAGAIN, NULL);
}

/* What has become of a page that was to come later. */
static enum MHD_Result answer_later(struct http_handler *handler, struct http_turn *turn)
{
	switch (turn->end) {
	case HTTP_LATER_OPEN:
		return MHD_YES;
	case HTTP_LATER_ANSWERED:
		return send_later(handler, turn);
	case HTTP_LATER_FAILED:
		return finish(handler, turn, -EIO, NULL);
	case HTTP_LATER_EXPIRED:
		handler->connections->expired++;
		stop_waiting(handler, turn);
		return send_text(handler, turn, MHD_HTTP_SERVICE_UNAVAILABLE,
				 "The answer did not come in time.\n");
	case HTTP_LATER_DISPLACED:
		return finish(handler, turn, -EAGAIN, NULL);
	case HTTP_LATER_GONE:
		break;
	}
	return MHD_NO;
}

/* Its page may come later. */
static enum MHD_Result ask_later(struct http_handler *handler, struct http_turn *turn,
				 const struct http_route *route)
{
	struct http_request request = { .later = &turn->later, .arrived_ns = turn->arrived_ns };
	struct http_page page = { 0 };
	struct http_turn *victim;
	int r = -EAGAIN;

	if (!request_read(turn, route, &request))
		return finish(handler, turn, page_too_many_arguments(&page), &page);
	if (http_turns_have_room(&handler->turns, route, &turn->record->origin, &victim))
		r = route->page(route->arg, &request, &page);
	if (r < 0)
		return finish(handler, turn, r, NULL);
	http_turn_late(turn, route);
	if (r != HTTP_LATER) {
		http_turn_answered(turn, &page);
		return send_later(handler, turn);
	}
	if (victim)
		http_turn_displace(victim);
	enter_stage(handler, turn->record, HTTP_STAGE_LATER);
	http_turn_wait(turn, HTTP_WAIT_LATER);
	http_turns_wake(&handler->turns, HTTP_WAIT_ROOM); /* none lets it go first any more */
	return MHD_YES;
}

/* Its body counts neither as a page that is being sent nor as what a page takes. */
static enum MHD_Result answer_promptly(struct http_handler *handler, const struct http_turn *turn,
				       const struct http_route *route)
{
	struct http_request request = { .arrived_ns = clock_monotonic_ns() };
	struct http_page page = { 0 };
	int r;

	request_read(turn, route, &request);
	r = route->page(route->arg, &request, &page);
	return r ? send_failure(handler, turn)
		 : http_respond(turn->connection, handler->guard, &page);
}

/* Whether @turn may have a page that is private, given that the guard has let it in. */
static bool may_have_private(const struct http_handler *handler, const struct http_turn *turn)
{
	const struct http_connection *record = turn->record;

	return guard_has_users(handler->guard) ||
	       (record->tls && web_tls_authenticates(record->tls)) || http_is_loopback(record->fd);
}

static enum MHD_Result answer(struct http_handler *handler, struct http_turn *turn,
			      const char *path, const char *method)
{
	const struct http_route *route = http_routes_find(&handler->routes, path);

	if (!route)
		return send_text(handler, turn, MHD_HTTP_NOT_FOUND, "Not found.\n");
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return send_text(handler, turn, MHD_HTTP_METHOD_NOT_ALLOWED,
				 "Only GET and HEAD.\n");
	if (route->access == HTTP_PRIVATE && !may_have_private(handler, turn))
		return refuse(handler, turn, HTTP_REFUSED_PRIVATE);
	if (route->prompt)
		return answer_promptly(handler, turn, route);
	if (!turn->arrived_ns)
		return wait_for_run(handler, turn);
	if (turn->route)
		return answer_later(handler, turn);
	if (route->later_ms)
		return ask_later(handler, turn, route);
	return answer_page(handler, turn, route);
}

/* --- requests ------------------------------------------------------------------------------- */

static enum MHD_Result refuse_by_verdict(struct http_handler *handler, const struct http_turn *turn,
					 enum guard_verdict verdict)
{
	static const enum http_refusal refusals[] = {
		[GUARD_LIMITED] = HTTP_REFUSED_RATE_LIMIT,
		[GUARD_BUSY] = HTTP_REFUSED_PASSWORDS_BUSY,
		[GUARD_UNAUTHORIZED] = HTTP_REFUSED_UNAUTHORIZED,
		[GUARD_BROKEN] = HTTP_REFUSED_CONFIG_BROKEN,
	};

	return refuse(handler, turn, refusals[verdict]);
}

static bool request_has_body(const struct http_turn *turn)
{
	return strspn(header_of(turn->connection, "Content-Length"), "0") !=
		       strlen(header_of(turn->connection, "Content-Length")) ||
	       *header_of(turn->connection, "Transfer-Encoding");
}

static bool is_open(const struct http_handler *handler, const char *path)
{
	const struct http_route *route = http_routes_find(&handler->routes, path);

	return route && route->access == HTTP_OPEN;
}

/* With the headers only: an answer now ends the connection without reading on. */
static enum MHD_Result begin_turn(struct http_handler *handler, struct MHD_Connection *connection,
				  const char *path, const char *method, void **request)
{
	struct http_turn *turn = http_turn_new(&handler->turns, connection);
	enum guard_verdict verdict = GUARD_ADMIT;

	*request = turn;
	if (!turn)
		return MHD_NO;
	if (!is_open(handler, path))
		verdict = guard_enter(handler->guard, header_of(turn->connection, "Authorization"));
	if (verdict != GUARD_ADMIT)
		return refuse_by_verdict(handler, turn, verdict);
	if (!request_has_body(turn))
		return MHD_YES;
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return send_text(handler, turn, MHD_HTTP_METHOD_NOT_ALLOWED,
				 "Only GET and HEAD.\n");
	return send_text(handler, turn, MHD_HTTP_CONTENT_TOO_LARGE,
			 "Requests have no body here.\n");
}

/*
 * GUARD_WAIT queues no response: the final call is made again when a password has been compared.
 * Once it is made in the next run: libmicrohttpd reads on where a connection was suspended in the
 * first one, and closes it if the client sends no more.
 */
static enum guard_verdict check_turn(struct http_handler *handler, struct http_turn *turn,
				     const char *path)
{
	enum guard_verdict verdict;

	if (turn->admitted || is_open(handler, path))
		return GUARD_ADMIT;
	verdict = guard_check(handler->guard, header_of(turn->connection, "Authorization"),
			      &turn->record->origin);
	if (verdict != GUARD_WAIT) {
		http_turn_wait(turn, HTTP_WAIT_NOTHING);
	} else if (turn->wait == HTTP_WAIT_NOTHING) {
		enter_stage(handler, turn->record, HTTP_STAGE_CHECK);
		http_turn_wait(turn, HTTP_WAIT_RUN);
	} else {
		http_turn_wait(turn, HTTP_WAIT_CHECK);
	}
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
	struct http_turn *turn = *request;
	enum guard_verdict verdict;

	(void)version;
	(void)upload;
	if (!turn)
		return begin_turn(handler, connection, path, method, request);
	if (*upload_bytes || http_turn_is_over(turn))
		return MHD_NO;
	verdict = check_turn(handler, turn, path);
	if (verdict == GUARD_WAIT)
		return MHD_YES;
	if (verdict != GUARD_ADMIT)
		return refuse_by_verdict(handler, turn, verdict);
	return answer(handler, turn, path, method);
}
