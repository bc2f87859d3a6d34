/* SPDX-License-Identifier: Apache-2.0 */
#include "app/confine.h"

#include <errno.h>
#include <string.h>

#include "base/units.h"

int confine_find_users(struct confinement *confinement, const struct confine_options *options,
		       const struct log *log)
{
	struct privileges mine = { 0 };
	int r = options->user ? user_find(options->user, &confinement->user) : 0;

	if (r) {
		log_error(log, "--security.user=%s: %s", options->user,
			  r == -ENOENT ? "there is no such user" : strerror(-r));
		return r;
	}
	privileges_read(options->proc_root, &mine); /* where unknown, none are had */
	if (user_of_helpers(&mine, &confinement->user, &confinement->helper))
		log_info(log, "the processes that name services and compare passwords stay root, "
			      "who may read root's files: start with CAP_SETUID and CAP_SETGID, "
			      "or as another user");
	return 0;
}

/* Of the features; the namer is started before. */
static int helpers_start(const struct confinement *confinement,
			 const struct confine_options *options, struct features *features,
			 unsigned int wanted, const struct log *log)
{
	const struct helper_options helper = {
		.arg = options->proc_root,
		.user = &confinement->helper,
		.sandbox = confinement->sandbox,
	};
	struct features_failure failure;
	int r = features_help(features, wanted, &helper, options->settings, &failure);

	if (r)
		log_error(log, "cannot start the process %s of the feature %s: %s",
			  failure.kind->name, failure.feature->plan.name, strerror(-r));
	return r;
}

int confine_prepare(struct confinement *confinement, const struct confine_options *options,
		    struct features *features, unsigned int wanted, const struct log *log)
{
	struct namer_options namer = {
		.proc_root = options->proc_root,
		.user = &confinement->helper,
	};
	int r;

	confinement->sandbox = options->sandbox;
	if (options->sandbox != SANDBOX_OFF && !sandbox_is_supported()) {
		log_warn(log, "no sandbox: this kernel has no seccomp filters "
			      "(CONFIG_SECCOMP_FILTER)");
		confinement->sandbox = SANDBOX_OFF;
	}
	namer.sandbox = confinement->sandbox;
	r = namer_start(&namer, &confinement->namer);
	if (r)
		log_error(log, "cannot start the process that names services%s%s: %s",
			  options->user ? " as " : "", confinement->user.name, strerror(-r));
	return r ? r : helpers_start(confinement, options, features, wanted, log);
}

/* The fewest capabilities with which the numbers can go on being read: found by trying. */
static uint64_t capabilities_needed(struct kernel *kernel)
{
	static const enum keep fewest_first[] = { KEEP_BPF, KEEP_BPF_BEFORE_5_19,
						  KEEP_BPF_AS_ADMIN };
	uint64_t needed = 0;

	for (size_t i = 0; i < COUNT(fewest_first); i++) {
		needed = capabilities_of(fewest_first[i]);
		if (!capabilities_lower(needed) && kernel_is_usable(kernel))
			break;
	}
	return needed;
}

/* Of @needs, which are feature @id's, the first set with which it works, besides @keep. */
static uint64_t capabilities_of_feature(const struct features *features, size_t id,
					const struct needs *needs, uint64_t keep)
{
	uint64_t more = 0;

	for (size_t i = 0; i < needs->capabilities_len; i++) {
		more = needs->capabilities[i];
		if (!capabilities_lower(keep | more) && !features_try(features, id))
			break;
	}
	return more;
}

int confine_enter(struct confinement *confinement, struct kernel *kernel,
		  const struct features *features, const struct needs *own, const struct log *log)
{
	const struct needs *needs[LOADER_FEATURES_MAX + 2] = { own };
	uint64_t keep = capabilities_needed(kernel);
	size_t needs_len = own ? 1 : 0;
	int r;

	for (size_t id = 0; id < features_len; id++) {
		const struct needs *more = features_needs(features, id);

		if (!more)
			continue;
		needs[needs_len++] = more;
		keep |= capabilities_of_feature(features, id, more, keep);
	}
	r = capabilities_drop(keep, 0, &confinement->user);
	if (r) {
		log_error(log, "cannot give up privileges%s%s: %s",
			  *confinement->user.name ? " and become " : "", confinement->user.name,
			  strerror(-r));
		return r;
	}
	r = sandbox_enter(SANDBOX_SERVER, confinement->sandbox, needs);
	if (r)
		log_error(log, "cannot enter the sandbox: %s; see --security.sandbox",
			  strerror(-r));
	return r;
}

bool confine_check(struct confinement *confinement, const struct log *log)
{
	if (helper_alive(namer_helper(confinement->namer)))
		return true;
	log_error(log, "the process that names services has ended: new services that are "
		       "in no unit and no container are named after their thread; restart "
		       "the exporter");
	return false;
}
