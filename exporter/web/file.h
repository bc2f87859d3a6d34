/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the files that the web configuration names: settings, certificates, keys. */
#ifndef WORKLOAD_WEB_FILE_H
#define WORKLOAD_WEB_FILE_H

#include "base/buffer.h"

/*
 * Appends the content of the regular file @path to @out, in one block, so that no copy of a key
 * stays behind. 0; -errno; -EINVAL, without a wait, if it is something else (a FIFO, a device);
 * -EBUSY if it is being written; the error of @out.
 */
int web_file_read(const char *path, struct buffer *out);

/* Such an error in words. */
const char *web_file_error(int error);

#endif
