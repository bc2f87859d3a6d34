/* SPDX-License-Identifier: Apache-2.0 */
#include "web/guard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "web/bucket.h"
#include "web/file.h"

#define ERROR_BYTES 512

/* What changes with a file's content, without padding. All zeros: there is none. */
struct stamp {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec modified, changed;
};

enum file { FILE_CONFIG, FILE_CERT, FILE_KEY, FILE_CA, FILES };

struct guard {
	struct guard_options options;
	struct web_config config; /* the last that could be read */
	struct stamp stamps[FILES];
	bool broken; /* one of the files is */
	bool has_tls;
	struct web_tls *tls; /* the last that was whole; NULL without */
	struct bucket bucket;
	struct passwords passwords;
	bool deaf; /* their comparison has ended, and that was said */
};

/* --- files ---------------------------------------------------------------------------------- */

static struct stamp stamp_take(const char *path)
{
	struct stat status;

	if (!path || stat(path, &status))
		return (struct stamp){ 0 };
	return (struct stamp){
		.device = status.st_dev,
		.inode = status.st_ino,
		.size = status.st_size,
		.modified = status.st_mtim,
		.changed = status.st_ctim,
	};
}

/* Of the files from @first on, as the configuration names them. */
static void stamps_take(const struct guard *guard, enum file first, struct stamp *stamps)
{
	const char *const paths[FILES] = {
		[FILE_CONFIG] = guard->options.path,
		[FILE_CERT] = guard->config.tls.cert_file,
		[FILE_KEY] = guard->config.tls.key_file,
		[FILE_CA] = guard->config.tls.client_ca_file,
	};

	for (int file = (int)first; file < FILES; file++)
		stamps[file] = stamp_take(paths[file]);
}

static int config_load(const struct guard *guard, struct web_config *config, char *error,
		       size_t error_bytes)
{
	_cleanup_(buffer_free) struct buffer text = BUFFER_INIT(YAML_BYTES_MAX);
	_cleanup_(web_config_free) struct web_config loaded = { 0 };
	struct yaml_error fault = { 0 };
	const char *path = guard->options.path;
	int r = web_file_read(path, &text);

	if (r) {
		snprintf(error, error_bytes, "cannot read %s: %s", path, web_file_error(r));
		return -EINVAL;
	}
	r = web_config_parse(text.data ? text.data : "", text.len, &loaded, &fault);
	if (r == -EINVAL)
		snprintf(error, error_bytes, "%s:%zu:%zu: %s", path, fault.line, fault.column,
			 fault.text);
	if (!r)
		r = web_config_set_base(&loaded, path);
	if (r == -ENOMEM)
		snprintf(error, error_bytes, "%s: out of memory", path);
	if (r)
		return r;
	*config = loaded;
	loaded = (struct web_config){ 0 };
	return 0;
}

/* Stamps come before what they are of: what changes while it is read is then read again. */
static int guard_load(struct guard *guard, char *error, size_t error_bytes)
{
	struct web_config config = { 0 };
	struct web_tls *tls = NULL;
	int r;

	stamps_take(guard, FILE_CONFIG, guard->stamps);
	r = config_load(guard, &config, error, error_bytes);
	if (r)
		return r;
	web_config_free(&guard->config);
	guard->config = config;
	guard->bucket.interval_ns = config.rate_interval_ns;
	guard->bucket.burst = config.rate_burst;
	stamps_take(guard, FILE_CERT, guard->stamps);
	if (guard->has_tls && !config.tls.enabled) {
		snprintf(error, error_bytes,
			 "%s has no tls_server_config any more, but TLS can only be ended by a "
			 "restart",
			 guard->options.path);
		return -EINVAL;
	}
	if (!config.tls.enabled)
		return 0;
	r = web_tls_new(&guard->config.tls, &tls, error, error_bytes);
	if (r)
		return r;
	web_tls_unref(guard->tls);
	guard->tls = tls;
	return 0;
}

static void guard_say(const struct guard *guard, bool broken, const char *text)
{
	if (guard->options.say)
		guard->options.say(guard->options.arg, broken, text);
}

static void guard_refresh(struct guard *guard)
{
	char error[ERROR_BYTES] = "out of memory";
	struct stamp stamps[FILES];

	if (!guard->options.path)
		return;
	stamps_take(guard, FILE_CONFIG, stamps);
	if (memcmp(stamps, guard->stamps, sizeof(stamps)) == 0)
		return;
	guard->broken = guard_load(guard, error, sizeof(error)) != 0;
	guard_say(guard, guard->broken,
		  guard->broken ? error : "the web configuration was read again");
	if (!guard->broken && guard->config.tls.enabled && !guard->has_tls)
		guard_say(guard, true, "TLS can only be begun by a restart: still without");
}

/* --- life ----------------------------------------------------------------------------------- */

int guard_new(const struct guard_options *options, struct guard **guard, char *error,
	      size_t error_bytes)
{
	_cleanup_(guard_freep) struct guard *made = calloc(1, sizeof(*made));
	int r = 0;

	if (!made)
		return -ENOMEM;
	made->options = *options;
	if (options->path) {
		r = passwords_init(&made->passwords, options->checker);
		if (!r)
			r = guard_load(made, error, error_bytes);
		made->has_tls = made->config.tls.enabled;
	}
	if (!r)
		*guard = TAKE_PTR(made);
	return r;
}

void guard_free(struct guard *guard)
{
	if (!guard)
		return;
	web_config_free(&guard->config);
	web_tls_unref(guard->tls);
	explicit_bzero(&guard->passwords, sizeof(guard->passwords));
	free(guard);
}

/* --- what is asked of it -------------------------------------------------------------------- */

bool guard_has_users(const struct guard *guard)
{
	return guard->config.users_len;
}

bool guard_has_tls(const struct guard *guard)
{
	return guard->has_tls;
}

struct web_tls *guard_tls(struct guard *guard)
{
	guard_refresh(guard);
	return guard->has_tls && !guard->broken ? web_tls_ref(guard->tls) : NULL;
}

enum guard_verdict guard_enter(struct guard *guard, const char *authorization)
{
	struct credentials given;

	guard_refresh(guard);
	if (guard->broken)
		return GUARD_BROKEN;
	if (!bucket_take(&guard->bucket, clock_monotonic_ns()))
		return GUARD_LIMITED;
	if (!guard->config.users_len)
		return GUARD_ADMIT;
	if (credentials_parse(authorization, &given))
		return GUARD_UNAUTHORIZED;
	explicit_bzero(&given, sizeof(given));
	return GUARD_ADMIT;
}

enum guard_verdict guard_check(struct guard *guard, const char *authorization,
			       const struct http_origin *origin)
{
	static const enum guard_verdict verdicts[] = {
		[PASSWORD_RIGHT] = GUARD_ADMIT,   [PASSWORD_WRONG] = GUARD_UNAUTHORIZED,
		[PASSWORD_PENDING] = GUARD_WAIT,  [PASSWORD_BUSY] = GUARD_BUSY,
		[PASSWORD_BROKEN] = GUARD_BROKEN,
	};
	enum password_verdict verdict;
	struct credentials given;

	if (guard->broken)
		return GUARD_BROKEN;
	if (!guard->config.users_len)
		return GUARD_ADMIT;
	if (credentials_parse(authorization, &given))
		return GUARD_UNAUTHORIZED;
	verdict = passwords_check(&guard->passwords, guard->config.users, guard->config.users_len,
				  &given, origin);
	explicit_bzero(&given, sizeof(given));
	return verdicts[verdict];
}

bool guard_run(struct guard *guard)
{
	bool news = guard->options.checker && passwords_run(&guard->passwords);

	if (!guard->passwords.ended || guard->deaf)
		return news;
	guard->deaf = true;
	guard_say(guard, true,
		  "the process that compares passwords has ended: no new password can be "
		  "checked; restart the exporter");
	return true;
}

bool guard_is_deaf(const struct guard *guard)
{
	return guard->deaf;
}

const char *guard_header(const struct guard *guard, enum web_header header)
{
	return guard->config.headers[header];
}
