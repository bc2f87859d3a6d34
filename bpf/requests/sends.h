/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A look at what the current task sends by a system call, as far as it takes to tell what it is: it
 * is in one or more buffers of the task's memory. Nothing is kept of it.
 */
#ifndef WORKLOAD_REQUESTS_SENDS_H
#define WORKLOAD_REQUESTS_SENDS_H

#include "core/endpoints.h"
#include "machine/answers.h"
#include "requests/look.h"

/* So many steps a look has at most: chunks of 32 bytes, and buffers. */
#define SENT_STEPS 64

/* What of a send has not been looked at, and how what has been ends. */
struct sent {
	__u64 vector; /* where the next buffer is told; 0: there is one only */
	__u64 buffer; /* where the next bytes are */
	__u64 left; /* in this buffer */
	__u64 bytes; /* in all */
	__u32 head; /* HEAD_ */
	__u32 begins; /* BEGINS_, as soon as that is known */
};

/* -1: it is in no memory of the task, or in that of several messages. */
static inline int sent_open(struct sent *sent, __u32 bytes)
{
	__u64 args[4];
	__s64 number = call_read(args);

	if (number < 0)
		return -1;
	*sent = (struct sent){ .bytes = bytes };
	switch (number) {
	case SYS_WRITE:
	case SYS_SENDTO:
		sent->buffer = args[1];
		sent->left = bytes;
		return 0;
	case SYS_WRITEV:
		sent->vector = args[1];
		return 0;
	case SYS_SENDMSG:
		return bpf_probe_read_user(&sent->vector, sizeof(sent->vector),
					   (const void *)(args[1] + MSGHDR_IOV));
	default:
		return -1;
	}
}

static inline void sent_next_buffer(struct sent *sent)
{
	struct user_iovec next;

	if (!sent->vector || bpf_probe_read_user(&next, sizeof(next), (const void *)sent->vector)) {
		sent->begins = BEGINS_OTHER;
		return;
	}
	sent->vector += sizeof(next);
	sent->buffer = next.base;
	sent->left = next.length < sent->bytes ? next.length : sent->bytes;
}

/* Looks at the next bytes, as many as are in one piece. */
static inline void sent_take(struct sent *sent)
{
	__u32 length = sent->left < CHUNK_BYTES ? sent->left : CHUNK_BYTES, taken = 0;
	union chunk chunk = {};

	barrier_var(length); /* the verifier is to see this test of what is passed */
	if (length <= sizeof(chunk) &&
	    !bpf_probe_read_user(&chunk, length, (const void *)sent->buffer))
		taken = interim_take(&sent->head, &chunk, length);
	if (!taken)
		sent->begins = answer_begins(&chunk);
	sent->buffer += taken;
	sent->left -= taken;
	sent->bytes -= taken;
}

/* Returns whether there is more to look at. */
VERIFIED_ALONE int sent_step(struct sent *sent)
{
	if (!sent)
		return 0;
	if (sent->left)
		sent_take(sent);
	else
		sent_next_buffer(sent);
	return sent->bytes && !sent->begins;
}

/* What a send of @bytes begins with: BEGINS_. */
VERIFIED_ALONE int sent_begins(struct tracked *tracked, __u32 bytes)
{
	struct sent sent;
	int i;

	if (!tracked || !bytes || sent_open(&sent, bytes))
		return BEGINS_UNSEEN;
	sent.head = tracked->conn.head;
	for (i = 0; i < SENT_STEPS && sent_step(&sent); i++)
		;
	if (sent.begins)
		return sent.begins;
	/* More than so many steps are not looked at, and taken for an answer. */
	return sent.bytes ? BEGINS_ANSWER : BEGINS_INTERIM + sent.head;
}

static inline void sending_look(struct tracked *tracked, struct sending *sending)
{
	sending->begins = call_is_about(&sending->socket) ? sent_begins(tracked, sending->bytes)
							  : BEGINS_UNSEEN;
}

#endif
