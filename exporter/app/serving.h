/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the flags to a server that serves: sockets, the web configuration file, the server, and what
 * is logged of them. Logs, as a part of main.c.
 */
#ifndef WORKLOAD_APP_SERVING_H
#define WORKLOAD_APP_SERVING_H

#include "base/log.h"
#include "config/config.h"
#include "http/server.h"

struct serving {
	const struct config *config; /* borrowed, as log */
	const struct log *log;
	int listeners[HTTP_LISTENERS_MAX]; /* until the server takes them over */
	size_t listeners_len;
	struct helper *checker; /* of passwords; NULL without a web configuration file */
	struct guard *guard;
	struct http_server *server;
};

/*
 * Everything that can go wrong for the operator's reasons, before anything expensive: addresses in
 * use, a web configuration file that is broken. Starts the process that compares passwords, which
 * becomes @helper. 0 or -errno, logged; serving_stop releases in any case.
 */
int serving_open(struct serving *serving, const struct config *config, const struct user *helper,
		 const struct log *log);

/* Serves @routes, driven by @loop; both are borrowed. 0 or -errno, logged. */
int serving_start(struct serving *serving, struct loop *loop, const struct http_routes *routes);

/* Clears @serving. Nothing is done for one that is all zeros. */
void serving_stop(struct serving *serving);

#endif
