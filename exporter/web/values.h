/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single values of the web configuration file, typed as the exporter-toolkit's YAML reader does.
 * Each reads @value into the member of the type that it names: 0; -EINVAL with @error filled and
 * the member untouched.
 */
#ifndef WORKLOAD_WEB_VALUES_H
#define WORKLOAD_WEB_VALUES_H

#include "web/yaml.h"

/* char *, the node's; NULL for an empty text. */
int value_text(void *member, const struct yaml_node *value, struct yaml_error *error);

/* bool: true, false, yes, no, on, off and their capitals, without quotes. */
int value_bool(void *member, const struct yaml_node *value, struct yaml_error *error);

/* uint64_t: a plain number up to a million. */
int value_count(void *member, const struct yaml_node *value, struct yaml_error *error);

/* uint64_t, nanoseconds: as Go writes it (base/units.h), up to 100 years. */
int value_duration(void *member, const struct yaml_node *value, struct yaml_error *error);

#endif
