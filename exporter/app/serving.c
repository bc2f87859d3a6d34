/* SPDX-License-Identifier: Apache-2.0 */
#include "app/serving.h"

#include <string.h>
#include <unistd.h>

#include "app/systemd.h"
#include "http/listen.h"

#define ERROR_BYTES 512

static int listen_on_passed(struct serving *serving)
{
	char error[ERROR_BYTES];
	int len = systemd_take_listeners(serving->listeners, HTTP_LISTENERS_MAX, error,
					 sizeof(error));

	if (len < 0) {
		log_error(serving->log, "--web.systemd-socket: %s", error);
		return len;
	}
	serving->listeners_len = (size_t)len;
	return 0;
}

static int listen_on_addresses(struct serving *serving)
{
	char error[ERROR_BYTES];

	for (size_t i = 0; i < serving->config->listen_len; i++) {
		const struct config_address *address = &serving->config->listen[i];
		int fd = http_listen(address->host, address->port, error, sizeof(error));

		if (fd < 0) {
			log_error(serving->log, "%s", error);
			return fd;
		}
		serving->listeners[serving->listeners_len++] = fd;
	}
	return 0;
}

static void say_change(void *arg, bool broken, const char *text)
{
	const struct serving *serving = arg;

	log_line(serving->log, broken ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "%s", text);
}

/* The checker of passwords first: it is a process, which should inherit as little as can be. */
static int guard_start(struct serving *serving, const struct user *helper)
{
	struct guard_options options = {
		.path = serving->config->web_config_file,
		.say = say_change,
		.arg = serving,
	};
	char error[ERROR_BYTES] = "";
	int r = options.path ? checker_start(helper, &serving->checker) : 0;

	if (r) {
		log_error(serving->log, "cannot start the process that compares passwords: %s",
			  strerror(-r));
		return r;
	}
	options.checker = serving->checker;
	r = guard_new(&options, &serving->guard, error, sizeof(error));
	if (r)
		log_error(serving->log, "--web.config.file: %s", *error ? error : strerror(-r));
	else if (guard_has_tls(serving->guard))
		log_info(serving->log, "TLS is on, with HTTP/1.1; HTTP/2 is not available");
	return r;
}

int serving_open(struct serving *serving, const struct config *config, const struct user *helper,
		 const struct log *log)
{
	int r;

	*serving = (struct serving){ .config = config, .log = log };
	r = config->systemd_socket ? listen_on_passed(serving) : listen_on_addresses(serving);
	return r ? r : guard_start(serving, helper);
}

static void say_listener(const struct serving *serving, int fd)
{
	char address[HTTP_ADDRESS_BYTES];

	http_listen_address(fd, address, sizeof(address));
	log_info(serving->log, "listening on %s://%s/, metrics at %s",
		 guard_has_tls(serving->guard) ? "https" : "http", address,
		 serving->config->telemetry_path);
}

int serving_start(struct serving *serving, struct loop *loop, const struct http_routes *routes)
{
	const struct config *config = serving->config;
	struct http_server_options options = {
		.listeners_len = serving->listeners_len,
		.loop = loop,
		.guard = serving->guard,
		.checker = serving->checker,
		.routes = *routes,
		.max_requests = config->max_requests ? config->max_requests : SIZE_MAX,
	};
	int r;

	memcpy(options.listeners, serving->listeners, sizeof(options.listeners));
	serving->listeners_len = 0;
	r = http_server_start(&options, &serving->server);
	if (r) {
		log_error(serving->log, "cannot serve: %s", strerror(-r));
		return r;
	}
	for (size_t i = 0; i < options.listeners_len; i++)
		say_listener(serving, options.listeners[i]);
	return 0;
}

void serving_stop(struct serving *serving)
{
	http_server_stop(serving->server);
	for (size_t i = 0; i < serving->listeners_len; i++)
		close(serving->listeners[i]);
	guard_free(serving->guard);
	helper_stop(serving->checker);
	*serving = (struct serving){ 0 };
}
