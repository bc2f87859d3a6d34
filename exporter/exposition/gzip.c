/* SPDX-License-Identifier: Apache-2.0 */
#include "exposition/gzip.h"

#include <errno.h>

#include <libdeflate.h>

#define LEVEL 1 /* higher ones take several times as long for a tenth less */

int exposition_gzip(const struct buffer *in, struct buffer *out)
{
	struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(LEVEL);
	size_t bound = libdeflate_gzip_compress_bound(compressor, in->len);
	char *at = compressor ? buffer_reserve(out, bound) : NULL;

	if (at)
		out->len += libdeflate_gzip_compress(compressor, in->data, in->len, at, bound);
	libdeflate_free_compressor(compressor);
	return compressor ? out->error : -ENOMEM;
}
