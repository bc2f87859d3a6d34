/* SPDX-License-Identifier: Apache-2.0 */
/* What --help says of the exporter: its commands and all flags. */
#ifndef WORKLOAD_CONFIG_HELP_H
#define WORKLOAD_CONFIG_HELP_H

#include <stdio.h>

/* As struct flag shows things; @values is not looked at. */
void help_print(const void *values, FILE *out);

#endif
