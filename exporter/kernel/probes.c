/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/probes.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "kernel/programs.h"
#include "kernel/uprobes.h"

#define VERIFIER_LOG_BYTES (256 * 1024)

int probes_init(struct probes *probes, size_t len)
{
	size_t room = len ? len : 1; /* calloc may return NULL for nothing */

	probes->rows = calloc(room, sizeof(*probes->rows));
	probes->reasons = calloc(room, sizeof(*probes->reasons));
	probes->programs = calloc(room, sizeof(struct bpf_program *));
	probes->links = calloc(room, sizeof(struct bpf_link *));
	probes->runs = calloc(room, sizeof(*probes->runs));
	/* Pages that no refused program is written about are never touched. */
	probes->logs = calloc(room, VERIFIER_LOG_BYTES);
	if (!probes->rows || !probes->reasons || !probes->programs || !probes->links ||
	    !probes->runs || !probes->logs)
		return -ENOMEM;
	return 0;
}

static void probe_add(struct probes *probes, const char *feature, struct bpf_program *program)
{
	size_t i = probes->len++;

	if (hook_is_by_process(bpf_program__section_name(program)))
		uprobes_prepare(program);
	bpf_program__set_log_buf(program, probes->logs + i * VERIFIER_LOG_BYTES,
				 VERIFIER_LOG_BYTES);
	probes->programs[i] = program;
	probes->rows[i] = (struct probe_row){
		.feature = feature,
		.probe = bpf_program__name(program),
	};
}

void probes_add(struct probes *probes, const char *feature, struct bpf_object *object)
{
	struct bpf_program *program;

	if (!object)
		return;
	bpf_object__for_each_program(program, object)
	{
		if (bpf_program__autoload(program))
			probe_add(probes, feature, program);
	}
}

const char *probe_log(const struct probes *probes, size_t probe)
{
	return probes->logs + probe * VERIFIER_LOG_BYTES;
}

void probes_loaded(struct probes *probes)
{
	free(TAKE_PTR(probes->logs));
}

const struct program_row *probes_runs(struct probes *probes, size_t *len)
{
	*len = programs_read(probes->programs, probes->rows, probes->len, probes->runs);
	return probes->runs;
}

void probes_detach(struct probes *probes)
{
	for (size_t i = 0; i < probes->len; i++)
		bpf_link__destroy(TAKE_PTR(probes->links[i]));
}

void probes_free(struct probes *probes)
{
	free(probes->rows);
	free(probes->reasons);
	free(probes->programs);
	free(probes->links);
	free(probes->runs);
	free(probes->logs);
	*probes = (struct probes){ 0 };
}
