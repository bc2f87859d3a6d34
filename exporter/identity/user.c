/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/user.h"

#include <string.h>

#include "base/text.h"

#define LOGIN_MIN 1000U
#define DYNAMIC_MIN 61184U
#define NOBODY_MAX 65535U

bool user_is_login(uint32_t uid)
{
	return uid >= LOGIN_MIN && (uid < DYNAMIC_MIN || uid > NOBODY_MAX);
}

/* Puts @text before what @name holds. */
static void prepend(const char *text, char *name, size_t size)
{
	size_t len = strnlen(text, size - 1), name_len = strlen(name);

	if (name_len > size - 1 - len)
		name_len = size - 1 - len;
	memmove(name + len, name, name_len);
	memcpy(name, text, len);
	name[len + name_len] = '\0';
}

void user_qualify(const char *user, char *name, size_t size)
{
	if (!name[0])
		return;
	prepend("/", name, size);
	prepend(user, name, size);
	prepend("user@", name, size);
}
