/* SPDX-License-Identifier: Apache-2.0 */
/* The parser asked and answered in one process. */
#ifndef WORKLOAD_TESTS_PARSING_H
#define WORKLOAD_TESTS_PARSING_H

#include <criterion/criterion.h>

#include <string.h>
#include <sys/mman.h>

#include "profiles/parsed.h"

/* Zeros, which take memory only where they are written; never released. */
static inline union parser_shared *shared_make(void)
{
	void *shared = mmap(NULL, sizeof(union parser_shared), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	cr_assert_neq(shared, MAP_FAILED);
	return shared;
}

static inline struct parsed_names names_as(bool quick, const void *image, size_t bytes,
					   const uint64_t *addresses, size_t len)
{
	const struct parser_question question = { PARSER_NAMES, (uint32_t)len, quick };
	union parser_shared *shared = shared_make();
	struct parser_answer answer = { 0 };
	struct parsed_names names;

	memcpy(shared->names.addresses, addresses, len * sizeof(*addresses));
	cr_assert_eq(parser_read(&question, image, bytes, shared, &answer), 0);
	cr_assert_eq(parsed_names(&answer, shared, addresses, len, &names), 0);
	munmap(shared, sizeof(*shared));
	return names;
}

/* What the @len @addresses of @image are called. */
static inline struct parsed_names names_in(const void *image, size_t bytes,
					   const uint64_t *addresses, size_t len)
{
	return names_as(false, image, bytes, addresses, len);
}

/* The texts are never NULL here. */
static inline const char *name_in(const struct parsed_names *names, size_t i)
{
	const char *text = parsed_names_text(names, i);

	return text ? text : "";
}

#endif
