/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the process that compares passwords (checker.h) is asked and what it answers. Each side
 * takes the other for hostile: what is asked is checked here.
 */
#ifndef WORKLOAD_WEB_COMPARISON_H
#define WORKLOAD_WEB_COMPARISON_H

#include <crypt.h>
#include <stdbool.h>
#include <stdint.h>

#define COMPARISON_HASH_BYTES 61

/* bcrypt takes no notice of what follows (crypt(5)). */
#define CHECKER_PASSWORD_BYTES 72

/* Both texts may lack their ends where they come in. */
struct comparison {
	char hash[COMPARISON_HASH_BYTES];
	char password[CHECKER_PASSWORD_BYTES + 1];
};

/* Fills @comparison, with the password cut to what bcrypt sees. To be cleared when done with. */
void comparison_fill(struct comparison *comparison, const char *hash, const char *password);

/*
 * The answer, and the only one there is but 0: 1 if the hash is that of the password. Any bytes may
 * be in @comparison, which gets its ends; nothing but bcrypt is computed. Allocates nothing, and
 * leaves the password nowhere but in @data.
 */
uint8_t comparison_answer(struct comparison *comparison, struct crypt_data *data);

#endif
