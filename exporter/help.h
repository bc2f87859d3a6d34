/* SPDX-License-Identifier: Apache-2.0 */
/* What --help says, of the exporter and of its commands. */
#ifndef WORKLOAD_HELP_H
#define WORKLOAD_HELP_H

#define DEFAULT_ADDRESS "127.0.0.1:10070"
#define DEFAULT_PATH "/metrics"

extern const char help_text[];
extern const char help_check_text[]; /* of "check" */
extern const char help_web_config_text[]; /* of "web-config check" */

#endif
