/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fuzz targets share: the entry that libFuzzer calls, and a way to say that something that
 * must always hold does not.
 */
#ifndef WORKLOAD_TESTS_FUZZ_H
#define WORKLOAD_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define MUST(holds)                                                                           \
	do {                                                                                  \
		if (!(holds)) {                                                               \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #holds); \
			abort();                                                              \
		}                                                                             \
	} while (0)

/* The bytes as text, cut at the first NUL, in a block of just that size: reading on is seen. */
static inline char *fuzz_text(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1);

	MUST(text);
	memcpy(text, data, len);
	text[len] = '\0';
	return text;
}

#endif
