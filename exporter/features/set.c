/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "features/features.h"

int features_find(const char *name)
{
	for (size_t i = 0; i < features_len; i++)
		if (!strcmp(features_table[i]->plan.name, name))
			return (int)i;
	return -ENOENT;
}

unsigned int features_collectors(void)
{
	unsigned int mask = 0;

	for (size_t i = 0; i < features_len; i++)
		mask |= (unsigned int)features_table[i]->collector << i;
	return mask;
}

unsigned int features_measuring(void)
{
	unsigned int mask = 0;

	for (size_t i = 0; i < features_len; i++)
		mask |= (unsigned int)!features_table[i]->plan.supports << i;
	return mask;
}

unsigned int features_defaults(void)
{
	unsigned int mask = 0;

	for (size_t i = 0; i < features_len; i++)
		mask |= (unsigned int)!features_table[i]->plan.optional << i;
	return mask & features_collectors();
}

unsigned int features_always(void)
{
	unsigned int mask = 0;

	for (size_t i = 0; i < features_len; i++) {
		const struct feature *feature = features_table[i];
		bool has_flag = feature->collector || feature->plan.optional;

		mask |= (unsigned int)(feature->always || !has_flag) << i;
	}
	return mask;
}

char *features_names(unsigned int mask, char *out, size_t size)
{
	size_t len = 0;

	*out = '\0';
	for (size_t i = 0; i < features_len && len < size; i++)
		if (mask & 1U << i)
			len += (size_t)snprintf(out + len, size - len, "%s%s", len ? ", " : "",
						features_table[i]->plan.name);
	return out;
}

void features_plan(struct loader_options *options, unsigned int wanted)
{
	for (size_t i = 0; i < features_len; i++) {
		options->plans[i] = &features_table[i]->plan;
		options->backends[i] = BACKEND_AUTO;
	}
	options->plans_len = features_len;
	options->wanted = wanted;
}

static int feature_help(const struct feature *feature, const void *settings,
			struct helper **helpers, const struct helper_options *options,
			struct features_failure *failure)
{
	int r = 0;

	for (size_t i = 0; !r && i < FEATURE_HELPERS_MAX && feature->helpers[i]; i++) {
		struct helper_options own = *options;

		own.kind = feature->helpers[i];
		if (feature->helper_holds && settings)
			own.held = feature->helper_holds(own.kind, settings);
		r = helper_start(&own, &helpers[i]);
		if (r)
			*failure = (struct features_failure){ feature, own.kind };
	}
	return r;
}

int features_help(struct features *features, unsigned int wanted,
		  const struct helper_options *options, void *const *settings,
		  struct features_failure *failure)
{
	int r = 0;

	for (size_t id = 0; !r && id < features_len; id++)
		if (wanted & 1U << id)
			r = feature_help(features_table[id], settings[id], features->helpers[id],
					 options, failure);
	return r;
}

/* A feature that keeps nothing is open while it is on. */
static int feature_open(struct features *features, size_t id, const struct feature_env *env)
{
	int r;

	if (!features_table[id]->open) {
		features->open[id] = env->on;
		return 0;
	}
	r = features_table[id]->open(env, &features->states[id]);
	features->open[id] = !r && features->states[id];
	return r == -ENOENT ? 0 : r;
}

int features_open(struct features *features, const struct feature_env *env, void *const *settings)
{
	features->loader = env->kernel->loader;
	for (size_t i = 0; i < features_len; i++) {
		struct feature_env own = {
			.kernel = env->kernel,
			.proc_root = env->proc_root,
			.log = env->log,
			.registry = env->registry,
			.ledger = env->ledger,
			.settings = settings[i],
			.loop = env->loop,
			.on = loader_feature(features->loader, i)->on,
		};
		int r;

		memcpy(own.helpers, features->helpers[i], sizeof(own.helpers));
		r = feature_open(features, i, &own);
		if (r)
			return r;
	}
	return 0;
}

void features_close(struct features *features)
{
	for (size_t i = features_len; i-- > 0;)
		if (features->open[i] && features_table[i]->close)
			features_table[i]->close(features->states[i]);
	for (size_t i = 0; i < features_len; i++)
		for (size_t j = 0; j < FEATURE_HELPERS_MAX; j++)
			helper_stop(features->helpers[i][j]);
	*features = (struct features){ 0 };
}

bool features_on(const struct features *features, size_t feature)
{
	return features->open[feature] && loader_feature(features->loader, feature)->on;
}

void features_bytes(const struct features *features, uint32_t bytes[static QUOTAS])
{
	memset(bytes, 0, QUOTAS * sizeof(*bytes));
	for (size_t id = 0; id < features_len; id++) {
		const struct feature_status *status = loader_feature(features->loader, id);

		for (unsigned int kind = 0; status->on && status->bytes && kind < QUOTAS; kind++)
			bytes[kind] += status->bytes[kind];
	}
}

bool features_have_page(const char *path)
{
	for (size_t id = 0; id < features_len; id++)
		for (size_t i = 0; i < features_table[id]->routes_len; i++)
			if (!strcmp(features_table[id]->routes[i].path, path))
				return true;
	return false;
}

int features_routes(const struct features *features, struct http_routes *routes)
{
	int r = 0;

	for (size_t id = 0; id < features_len; id++) {
		for (size_t i = 0; !r && i < features_table[id]->routes_len; i++) {
			struct http_route route = features_table[id]->routes[i];

			route.arg = features->states[id];
			r = features_on(features, id) ? http_routes_add(routes, &route) : 0;
		}
	}
	return r;
}

unsigned int features_descriptors(unsigned int wanted)
{
	unsigned int descriptors = 0;

	for (size_t id = 0; id < features_len; id++)
		if (wanted & 1U << id && features_table[id]->needs)
			descriptors += features_table[id]->needs->descriptors;
	return descriptors;
}

const struct needs *features_needs(const struct features *features, size_t feature)
{
	return features_on(features, feature) ? features_table[feature]->needs : NULL;
}

int features_try(const struct features *features, size_t feature)
{
	if (!features_table[feature]->try)
		return 0;
	return features_table[feature]->try(features->states[feature]);
}

void features_fold(const struct features *features, const struct retirement *retirement)
{
	for (size_t i = 0; i < features_len; i++)
		if (features_table[i]->fold && features->open[i])
			features_table[i]->fold(features->states[i], retirement);
}

int features_retire(const struct features *features, const struct retirement *retirement)
{
	int r = 0;

	for (size_t i = 0; !r && i < features_len; i++)
		if (features_table[i]->retire && features->open[i])
			r = features_table[i]->retire(features->states[i], retirement);
	return r;
}
