/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/refusal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define TAIL_LINES 3
#define TAIL_BYTES 480

/* Start of the line that ends before @end, within @log. */
static const char *line_start(const char *log, const char *end)
{
	while (end > log && end[-1] != '\n')
		end--;
	return end;
}

static bool line_is_statistics(const char *line)
{
	return text_has_prefix(line, "processed ") || text_has_prefix(line, "verification time ") ||
	       text_has_prefix(line, "stack depth ");
}

/* Puts @line before what is in @out already: lines are found from the last to the first. */
static void tail_prepend(char *out, size_t size, const char *line, size_t len)
{
	static const char separator[] = { ' ', '|', ' ' };
	size_t have = strlen(out), joint = have ? sizeof(separator) : 0;
	size_t room = size - 1 - have;

	if (room <= joint)
		return;
	if (len > room - joint) {
		line += len - (room - joint);
		len = room - joint;
	}
	memmove(out + len + joint, out, have + 1);
	memcpy(out, line, len);
	memcpy(out + len, separator, joint);
}

void refusal_log_tail(const char *log, char *out, size_t size)
{
	const char *end = log + strlen(log);
	int lines = 0;

	out[0] = '\0';
	while (end > log && lines < TAIL_LINES) {
		const char *start = line_start(log, end);

		if (start < end && !line_is_statistics(start)) {
			tail_prepend(out, size, start, (size_t)(end - start));
			lines++;
		}
		end = start > log ? start - 1 : log;
	}
}

static bool is_denial(int error)
{
	return error == -EPERM || error == -EACCES;
}

/* Which of the two capabilities for BPF are missing, in words; "" if none is, or if unknown. */
static const char *capabilities_lacking(const struct privileges *privileges)
{
	bool bpf = privileges_have(privileges, CAP_BPF);
	bool perfmon = privileges_have(privileges, CAP_PERFMON);

	if (!privileges->known || (bpf && perfmon))
		return "";
	if (bpf)
		return "CAP_PERFMON";
	return perfmon ? "CAP_BPF" : "CAP_BPF and CAP_PERFMON";
}

static void explain(char *reason, char *remedy, const char *reason_text, const char *remedy_text)
{
	text_copy(reason, REFUSAL_REASON_BYTES, reason_text);
	text_copy(remedy, REFUSAL_REMEDY_BYTES, remedy_text);
}

/* A denial for want of a capability; false if nothing is wanting. */
static bool explain_privileges(const struct refusal *refusal, char *reason, char *remedy)
{
	const char *lacking = capabilities_lacking(refusal->privileges);
	char text[REFUSAL_REASON_BYTES];

	if (!is_denial(refusal->error) || !*lacking)
		return false;
	if (refusal->privileges->user_namespace) {
		snprintf(text, sizeof(text),
			 "%s: not permitted: capabilities of a user namespace do not count for BPF",
			 refusal->step);
		explain(reason, remedy, text, PRIVILEGES_REMEDY_NAMESPACE);
		return true;
	}
	snprintf(text, sizeof(text), "%s: not permitted: lacks %s", refusal->step, lacking);
	explain(reason, remedy, text, PRIVILEGES_REMEDY);
	return true;
}

/* What the machine or a limit of ours has too little of; false if it is something else. */
static bool explain_resources(const struct refusal *refusal, char *reason, char *remedy)
{
	char text[REFUSAL_REASON_BYTES];

	if (refusal->error != -ENOMEM && refusal->error != -EMFILE && refusal->error != -ENFILE)
		return false;
	snprintf(text, sizeof(text), "%s: %s", refusal->step, strerror(-refusal->error));
	explain(reason, remedy, text,
		refusal->error == -ENOMEM
			? "give it more memory: it needs 64 MB (MemoryMax=, the container's limit)"
			: "let it open more descriptors (ulimit -n, LimitNOFILE=)");
	return true;
}

static void explain_verifier(const struct refusal *refusal, char *reason, char *remedy)
{
	char text[REFUSAL_REASON_BYTES], tail[TAIL_BYTES], todo[REFUSAL_REMEDY_BYTES];

	refusal_log_tail(refusal->log, tail, sizeof(tail));
	snprintf(text, sizeof(text), "%s: the verifier of this kernel refuses %s: %s",
		 refusal->step, *refusal->program ? refusal->program : "a program", tail);
	snprintf(todo, sizeof(todo), "use %s; if this kernel is, report these lines",
		 refusal->needs);
	explain(reason, remedy, text, todo);
}

static void explain_error(const struct refusal *refusal, char *reason, char *remedy)
{
	char text[REFUSAL_REASON_BYTES], todo[REFUSAL_REMEDY_BYTES];

	if (refusal->error == -EPERM && refusal->privileges->known) {
		snprintf(text, sizeof(text),
			 "%s: not permitted, although the capabilities are held", refusal->step);
		explain(reason, remedy, text,
			"look for kernel lockdown, a security module or a seccomp filter that "
			"forbids bpf(2)");
		return;
	}
	snprintf(text, sizeof(text), "%s: %s", refusal->step, strerror(-refusal->error));
	snprintf(todo, sizeof(todo), "use %s; if this kernel is, report this line", refusal->needs);
	explain(reason, remedy, text, is_denial(refusal->error) ? PRIVILEGES_REMEDY : todo);
}

void refusal_explain(const struct refusal *refusal, char *reason, char *remedy)
{
	char text[REFUSAL_REASON_BYTES], todo[REFUSAL_REMEDY_BYTES];

	if (explain_privileges(refusal, reason, remedy) ||
	    explain_resources(refusal, reason, remedy))
		return;
	if (!refusal->btf) {
		snprintf(text, sizeof(text),
			 "%s: this kernel does not describe its types in /sys/kernel/btf/vmlinux",
			 refusal->step);
		explain(reason, remedy, text, REFUSAL_REMEDY_BTF);
	} else if (*refusal->missing) {
		snprintf(text, sizeof(text), "%s: this kernel has no %s", refusal->step,
			 refusal->missing);
		snprintf(todo, sizeof(todo), "use %s", refusal->needs);
		explain(reason, remedy, text, todo);
	} else if (*refusal->log) {
		explain_verifier(refusal, reason, remedy);
	} else {
		explain_error(refusal, reason, remedy);
	}
}

unsigned int refusal_oldest_minor(const char *machine)
{
	return strcmp(machine, "aarch64") == 0 ? 18 : 15;
}
