/* SPDX-License-Identifier: Apache-2.0 */
/* The web configuration: what is refused says why, what is taken holds together. */
#include <errno.h>

#include "fuzz.h"
#include "web/config.h"

static void check_config(const struct web_config *config)
{
	MUST(config->tls.min_version <= config->tls.max_version);
	MUST(config->tls.suites.len <= WEB_SUITES_MAX);
	MUST(config->tls.curves.len <= WEB_SUITES_MAX);
	for (size_t i = 0; i < config->users_len; i++) {
		MUST(*config->users[i].name);
		MUST(web_hash_is_bcrypt(config->users[i].hash));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct web_config config = { 0 };
	struct yaml_error error = { 0 };
	char *text = fuzz_text(data, len);
	int r = web_config_parse(text, len, &config, &error);

	MUST(r == 0 || (r == -EINVAL && *error.text));
	MUST(memchr(error.text, '\0', sizeof(error.text)));
	if (!r) {
		check_config(&config);
		MUST(web_config_set_base(&config, "/etc/web.yml") == 0);
	}
	web_config_free(&config);
	free(text);
	return 0;
}
