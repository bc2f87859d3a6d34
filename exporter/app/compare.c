/* SPDX-License-Identifier: Apache-2.0 */
#include "app/compare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "security/capabilities.h"
#include "security/privileges.h"

#define READ_BYTES (64U << 10)

/* For a reader of the answer that is slow. */
static const struct sandbox_call calls[] = {
	SANDBOX_ANY(SYS_ppoll),
#ifdef SYS_poll
	SANDBOX_ANY(SYS_poll),
#endif
};
static const struct needs needs = { .calls = calls, .calls_len = COUNT(calls) };

/* --- files ---------------------------------------------------------------------------------- */

static int bytes_read(int fd, struct buffer *out)
{
	ssize_t n = 1;

	while (n > 0) {
		char *room = buffer_reserve(out, READ_BYTES);

		if (!room)
			return out->error == -ENOBUFS ? -E2BIG : out->error;
		n = read(fd, room, READ_BYTES);
		if (n > 0)
			out->len += (size_t)n;
	}
	return n < 0 ? -errno : 0;
}

static int file_read(const char *path, struct buffer *out)
{
	_cleanup_(cleanup_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : bytes_read(fd, out);
}

static void file_say(const char *path, int error)
{
	const char *why = strerror(-error);

	if (error == -E2BIG)
		why = "it is too large";
	else if (error == -EINVAL)
		why = "it is no profile in the format of pprof";
	fprintf(stderr, "profile: cannot read %s: %s\n", path, why);
}

static int files_read(const struct comparing *comparing, struct buffer bytes[])
{
	int r = 0;

	for (int side = 0; !r && side < DIFFERENCE_SIDES; side++) {
		r = file_read(comparing->paths[side], &bytes[side]);
		if (r)
			file_say(comparing->paths[side], r);
	}
	return r;
}

/* --- privileges ----------------------------------------------------------------------------- */

/* Capabilities of the program are none of its user's: without root they open no file. */
static int privileges_lower(void)
{
	return geteuid() ? capabilities_lower(0) : 0;
}

/* @error, which is said, if it is one. */
static int privileges_said(int error)
{
	if (error)
		fprintf(stderr, "profile: cannot give up privileges: %s\n", strerror(-error));
	return error;
}

/* For good, before a byte of the files is looked at. */
static int privileges_drop(const struct comparing *comparing)
{
	enum sandbox_mode mode = sandbox_is_supported() ? comparing->sandbox : SANDBOX_OFF;
	const struct user none = { 0 };
	struct privileges mine = { 0 };
	struct user user = { 0 };
	int r;

	privileges_read(comparing->proc_root, &mine);
	/* Where it may not become another one it stays root, without a capability. */
	user_of_helpers(&mine, &none, &user);
	r = capabilities_drop(0, 0, &user);
	if (!r)
		r = sandbox_enter(SANDBOX_PARSER, mode, (const struct needs *[]){ &needs, NULL });
	return r;
}

/* --- the comparison ------------------------------------------------------------------------- */

static int side_add(struct difference *difference, enum difference_side side, const char *path,
		    const struct buffer *bytes)
{
	Pprof__Profile *profile;
	int r = pprof_read(bytes->data, bytes->len, &profile);

	if (r && r != -ENOMEM)
		file_say(path, r);
	if (r)
		return r;
	r = difference_add(difference, side, profile);
	if (r == -EINVAL)
		fprintf(stderr, "profile: %s does not say how long it took\n", path);
	else if (r == -EMEDIUMTYPE)
		fprintf(stderr, "profile: %s is of something else than the one before it\n", path);
	pprof_free(profile);
	return r;
}

static int sides_compare(const struct comparing *comparing, const struct buffer *bytes,
			 struct buffer *out)
{
	struct difference *difference = difference_new();
	int r = difference ? 0 : -ENOMEM;

	for (int side = 0; !r && side < DIFFERENCE_SIDES; side++)
		r = side_add(difference, (enum difference_side)side, comparing->paths[side],
			     &bytes[side]);
	if (!r)
		r = difference_write(difference, comparing->paths, out);
	if (r == -ENOMEM)
		fprintf(stderr, "profile: %s\n", strerror(ENOMEM));
	difference_free(difference);
	return r;
}

int compare(const struct comparing *comparing, struct buffer *out)
{
	struct buffer bytes[DIFFERENCE_SIDES] = { BUFFER_INIT(PPROF_READ_BYTES_MAX + READ_BYTES),
						  BUFFER_INIT(PPROF_READ_BYTES_MAX + READ_BYTES) };
	int r = privileges_said(privileges_lower());

	if (!r)
		r = files_read(comparing, bytes);
	if (!r)
		r = privileges_said(privileges_drop(comparing));
	if (!r)
		r = sides_compare(comparing, bytes, out);
	for (int side = 0; side < DIFFERENCE_SIDES; side++)
		buffer_free(&bytes[side]);
	return r;
}
