/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page /flame, which takes a profile and draws it in a browser, and the two files that it is
 * made of: flame.html, flame.css, flame.js. It asks this exporter alone.
 */
#ifndef WORKLOAD_PROFILES_FLAME_H
#define WORKLOAD_PROFILES_FLAME_H

#include "http/page.h"

/* As http_page_fn; no argument is looked at. */
int flame_page(void *arg, const struct http_request *request, struct http_page *page);
int flame_style(void *arg, const struct http_request *request, struct http_page *page);
int flame_script(void *arg, const struct http_request *request, struct http_page *page);

#endif
