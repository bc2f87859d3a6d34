/* SPDX-License-Identifier: Apache-2.0 */
/* What --help says, of the exporter and of its commands. */
#ifndef WORKLOAD_CONFIG_HELP_H
#define WORKLOAD_CONFIG_HELP_H

#include <stdio.h>

void help_print(FILE *out); /* the flags as flags.h has them */
extern const char help_check_text[]; /* of "check" */
extern const char help_web_config_text[]; /* of "web-config check" */

#endif
