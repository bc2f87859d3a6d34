/* SPDX-License-Identifier: Apache-2.0 */
/* The command `workload_exporter check`: what this machine allows, told by trying it. */
#ifndef WORKLOAD_APP_CHECK_H
#define WORKLOAD_APP_CHECK_H

/*
 * Loads and attaches what the exporter would, and removes it again; the answer is written to
 * standard output. Returns the exit code of the process.
 */
int check_run(int argc, char *const *argv, const char *proc_root);

#endif
