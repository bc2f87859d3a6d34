/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded strings: copies that are always terminated, and the few questions asked of names.
 */
#ifndef WORKLOAD_BASE_TEXT_H
#define WORKLOAD_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies @text, or the first @len bytes of it, cut to @size - 1 bytes. @size is not 0. */
void text_copy(char *out, size_t size, const char *text);
void text_copy_bytes(char *out, size_t size, const char *text, size_t len);

bool text_has_prefix(const char *text, const char *prefix);
bool text_has_suffix(const char *text, const char *suffix);

/* Cuts @suffix off the end of @text, once; whether it was there. */
bool text_cut_suffix(char *text, const char *suffix);

/* What follows the last slash: "" for "/usr/", all of it if there is no slash. */
const char *text_base_name(const char *path);

/*
 * Reads an unsigned decimal number at *@cursor and moves it behind the last digit. Nothing else is
 * accepted, no sign and no leading space. -EINVAL if there is no digit, -ERANGE if it is too large.
 */
int text_parse_u64(const char **cursor, uint64_t *out);

/*
 * Whether the kernel's @release as of uname(2) ("6.1.0-28-amd64") is at least @major.@minor: 0 or
 * 1; -EINVAL if it is no version.
 */
int text_release_is_since(const char *release, unsigned int major, unsigned int minor);

#endif
