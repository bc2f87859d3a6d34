/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/runtime.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/units.h"
#include "identity/elf.h"
#include "identity/proc.h"

static const struct {
	const char *name;
	const char *runtime;
} interpreters[] = {
	{ "java", "jvm" },    { "node", "node" }, { "nodejs", "node" },   { "python", "python" },
	{ "pypy", "python" }, { "ruby", "ruby" }, { "dotnet", "dotnet" },
};

static const struct {
	unsigned int library;
	const char *runtime;
} libraries[] = {
	{ PROC_LIBRARY_JVM, "jvm" },
	{ PROC_LIBRARY_CORECLR, "dotnet" },
	{ PROC_LIBRARY_PYTHON, "python" },
	{ PROC_LIBRARY_RUBY, "ruby" },
};

/* "python", "python3", "python3.11", but neither "python3-config" nor "node_exporter". */
static bool interpreter_matches(const char *exe_name, const char *interpreter)
{
	size_t len = strlen(interpreter);

	return strncmp(exe_name, interpreter, len) == 0 &&
	       exe_name[len + strspn(exe_name + len, "0123456789.")] == '\0';
}

static const char *runtime_of_name(const char *exe_name)
{
	for (size_t i = 0; i < COUNT(interpreters); i++) {
		if (interpreter_matches(exe_name, interpreters[i].name))
			return interpreters[i].runtime;
	}
	return NULL;
}

static const char *runtime_of_mappings(int dir_fd)
{
	unsigned int mapped;

	if (proc_libraries_read(dir_fd, &mapped) < 0)
		return NULL;
	for (size_t i = 0; i < COUNT(libraries); i++) {
		if (mapped & libraries[i].library)
			return libraries[i].runtime;
	}
	return NULL;
}

const char *runtime_identify(int dir_fd, const char *exe_name)
{
	/* O_NONBLOCK: should the link lead to a FIFO, opening it must not wait. */
	_cleanup_(cleanup_close) int fd = openat(dir_fd, "exe",
						 O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	bool go = false, elf = fd >= 0 && elf_go_detect(fd, &go) == 0;
	const char *runtime;

	if (go)
		return "go";
	runtime = runtime_of_name(exe_name);
	if (!runtime)
		runtime = runtime_of_mappings(dir_fd);
	if (!runtime)
		runtime = elf ? "native" : "unknown";
	return runtime;
}

bool runtime_runs_tasks(const char *runtime)
{
	return strcmp(runtime, "go") == 0;
}
