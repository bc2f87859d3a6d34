/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/namer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct namer {
	const char *proc_root;
	struct helper *helper;
};

/* --- the reader ----------------------------------------------------------------------------- */

static int question_answer(struct helper_work *work, void *asked, void *answer)
{
	struct namer_question *question = asked;

	question->comm[sizeof(question->comm) - 1] = '\0';
	return identity_read(work->arg, question->pid, question->start_ns, question->comm, answer);
}

/* --- what is checked of an answer ----------------------------------------------------------- */

static void identity_terminate(struct identity *identity)
{
	identity->name[sizeof(identity->name) - 1] = '\0';
	identity->exe[sizeof(identity->exe) - 1] = '\0';
	identity->runtime[sizeof(identity->runtime) - 1] = '\0';
	identity->unit[sizeof(identity->unit) - 1] = '\0';
	identity->container[sizeof(identity->container) - 1] = '\0';
	identity->user[sizeof(identity->user) - 1] = '\0';
}

static bool answer_check(void *answer)
{
	struct identity *identity = answer;

	identity_terminate(identity);
	return *identity->name && *identity->runtime && *identity->user &&
	       identity->user[strspn(identity->user, "0123456789")] == '\0';
}

const struct helper_kind namer_kind = {
	.name = "namer",
	.worker = "namer-reader",
	.capabilities = CAPABILITY(CAP_SYS_PTRACE),
	.role = SANDBOX_NAMER,
	.question_bytes = sizeof(struct namer_question),
	.answer_bytes = sizeof(struct identity),
	.answer = question_answer,
	.check = answer_check,
};
_Static_assert(sizeof(struct identity) <= HELPER_BYTES_MAX, "an identity is too long to be told");

/* --- the asking side ------------------------------------------------------------------------ */

int namer_ask(struct namer *namer, pid_t pid, uint64_t start_ns, const char *comm, uint64_t due_ns)
{
	struct namer_question question = { .pid = pid, .start_ns = start_ns };

	text_copy(question.comm, sizeof(question.comm), comm ? comm : "");
	return helper_ask(namer->helper, &question, due_ns);
}

int namer_take(struct namer *namer, uint64_t now_ns, struct identity *out)
{
	return helper_take(namer->helper, now_ns, out);
}

int namer_read_public(const struct namer *namer, pid_t pid, uint64_t start_ns, const char *comm,
		      struct identity *out)
{
	return identity_read_public(namer->proc_root, pid, start_ns, comm, out);
}

struct helper *namer_helper(const struct namer *namer)
{
	return namer->helper;
}

/* --- start and end -------------------------------------------------------------------------- */

int namer_start(const struct namer_options *options, struct namer **out)
{
	const struct helper_options helper = {
		.kind = &namer_kind,
		.arg = options->proc_root,
		.user = options->user,
		.sandbox = options->sandbox,
	};
	struct namer *namer = calloc(1, sizeof(*namer));
	int r;

	if (!namer)
		return -ENOMEM;
	namer->proc_root = options->proc_root;
	r = helper_start(&helper, &namer->helper);
	if (r)
		namer_stop(namer);
	else
		*out = namer;
	return r;
}

void namer_stop(struct namer *namer)
{
	if (!namer)
		return;
	helper_stop(namer->helper);
	free(namer);
}
