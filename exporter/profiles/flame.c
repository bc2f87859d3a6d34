/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/flame.h"

#include "base/cleanup.h"

/* The bytes of a file, as the assembler finds it from the top of the project. */
#define EMBED(name, path)                                                                        \
	__asm__(".pushsection .rodata\n" #name "_begin:\n.incbin \"" path "\"\n" #name "_end:\n" \
		".popsection\n");                                                                \
	extern const char name##_begin[], name##_end[]

EMBED(flame_html, "exporter/profiles/flame.html");
EMBED(flame_css, "exporter/profiles/flame.css");
EMBED(flame_js, "exporter/profiles/flame.js");

static int embedded_page(const char *begin, const char *end, const char *type,
			 struct http_page *page)
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT((size_t)(end - begin));

	buffer_append(&out, begin, (size_t)(end - begin));
	return http_page_bytes(page, 200, type, &out);
}

#define PAGE(name, file, type)                                                          \
	int name(void *arg, const struct http_request *request, struct http_page *page) \
	{                                                                               \
		(void)arg;                                                              \
		(void)request;                                                          \
		return embedded_page(file##_begin, file##_end, type, page);             \
	}
PAGE(flame_page, flame_html, HTTP_CONTENT_TYPE_HTML)
PAGE(flame_style, flame_css, "text/css; charset=utf-8")
PAGE(flame_script, flame_js, "text/javascript; charset=utf-8")
