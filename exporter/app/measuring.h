/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that measures, as the exporter and its commands that measure start it: what is loaded, what
 * is watched, and the part of the loop that keeps both up to date. What is made of it is their own.
 *
 * Logs, as a part of main.c. One thread.
 */
#ifndef WORKLOAD_APP_MEASURING_H
#define WORKLOAD_APP_MEASURING_H

#include <stdbool.h>
#include <stdint.h>

#include "app/confine.h"
#include "base/log.h"
#include "base/loop.h"
#include "collect/collector.h"
#include "config/config.h"
#include "features/features.h"
#include "kernel/doorbell.h"
#include "kernel/kernel.h"
#include "kernel/loader.h"
#include "model/ledger.h"
#include "registry/registry.h"
#include "security/privileges.h"

/* Zeroed: nothing has begun. */
struct measuring {
	const struct config *config; /* borrowed, as log */
	const struct log *log;
	struct confine_options confine;
	struct confinement confinement;
	struct privileges privileges;
	struct loop *loop; /* for others as well, once it has started */
	struct loader *loader;
	struct kernel kernel;
	struct features features;
	struct ledger *ledger;
	struct registry registry;
	struct collector collector;
	struct doorbell_reader doorbell;
	struct loop_watch namer, bell;
	struct loop_job refresh;
	bool rung; /* the doorbell: the registry is to be refreshed */
	uint64_t refreshed_ns; /* when it was, after a ring */
};

/* These return 0 or -errno, logged; measuring_stop() releases in any case. */

/*
 * First of all: whether enough descriptors may be open, and which users to become (@confinement).
 * @proc_root is borrowed with the others.
 */
int measuring_open(struct measuring *measuring, const struct config *config, const char *proc_root,
		   const struct log *log);

/*
 * Starts the processes that help, which inherit what is open, then loads, attaches, and adopts what
 * runs already. What its features wait for is in the loop, which nothing has run yet.
 */
int measuring_start(struct measuring *measuring);

/* Gives up what is not needed any more. @own: what its user goes on doing; NULL: nothing. */
int measuring_confine(struct measuring *measuring, const struct needs *own);

/* After its users; the loop is freed. */
void measuring_stop(struct measuring *measuring);

#endif
