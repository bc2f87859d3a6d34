/* SPDX-License-Identifier: Apache-2.0 */
/* The Accept and Accept-Encoding headers: any answer is one of the formats, the same each time. */
#include "exposition/negotiate.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = fuzz_text(data, len);
	enum exposition_format format = exposition_negotiate(text);

	MUST(format == EXPOSITION_TEXT || format == EXPOSITION_OPENMETRICS ||
	     format == EXPOSITION_PROTOBUF);
	MUST(exposition_negotiate(text) == format);
	(void)exposition_accepts_gzip(text);
	free(text);
	return 0;
}
