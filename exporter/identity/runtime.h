/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which language runtime a process runs on, as far as it can be justified.
 */
#ifndef WORKLOAD_IDENTITY_RUNTIME_H
#define WORKLOAD_IDENTITY_RUNTIME_H

#include <stdbool.h>

/*
 * A constant: "go", "jvm", "node", "python", "ruby", "dotnet", "native" or "unknown".
 *
 * In this order: the executable was linked by Go (elf.h); its name @exe_name (base name of its
 * path,
 * "" if not known) is that of an interpreter, with or without a version; it has mapped a runtime's
 * library; it is a readable ELF file: native. "unknown" if it cannot be read and nothing else
 * told. @dir_fd is the process's directory (proc.h). A process can pretend, to its own label.
 */
const char *runtime_identify(int dir_fd, const char *exe_name);

/* Whether threads of @runtime are not what waits in it: they run tasks, any of them any task. */
bool runtime_runs_tasks(const char *runtime);

#endif
