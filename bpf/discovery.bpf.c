/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Discovery: which processes are services (they listen on TCP), which belong to them (their
 * descendants, from birth), and which sockets are theirs (a mark on the listening socket, which the
 * kernel clones to each connection).
 */
#include "lib/kernel.h"
#include "core/endpoints.h"
#include "core/maps.h"
#include "core/overflows.h"
#include "lib/spares.h"
#include "core/trees.h"
#include "discovery/listening.h"
#include "discovery/sockets.h"
#include "lib/walks.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Whether a walk may find what has no state now: beyond a quota user space waits for room. */
static inline int walk_may_help(void)
{
	return quota_has_room(QUOTA_SOCKETS, 1) && quota_has_room(QUOTA_THREADS, 1);
}

static inline void walk_ask(void)
{
	if (walk_may_help())
		listeners_ask_walk();
}

/*
 * The process of @task listens on @sk. Where it, or the socket, cannot have state just now (the
 * allocator's cache is empty), user space shall walk the descriptors; what comes before that founds
 * the tree when it is read. NULL if the socket has no state.
 */
static inline struct tracked *listener_found(struct sock *sk, struct task_struct *task)
{
	struct task_struct *leader_task = task->group_leader;
	struct thread *leader = thread_make(leader_task, 0);
	struct tracked *tracked = listener_track(sk,
						 leader ? tree_found_by(leader_task, leader) : 0);

	if (!leader || !tracked)
		walk_ask();
	return tracked;
}

/* TCP is done with @sk, which no process has open any more: its state goes with it. */
SOFTIRQ_PROG("tp_btf/tcp_destroy_sock", discovery_destroy, struct sock *sk)
{
	struct tracked *tracked = tracked_at(sk);

	if (tracked)
		socket_forget(sk, tracked);
	return 0;
}

SOFTIRQ_PROG("tp_btf/inet_sock_set_state", discovery_listen, struct sock *sk, int oldstate,
	     int newstate)
{
	struct tracked *tracked;

	if (newstate == TCP_LISTEN) {
		if (!is_tcp(sk))
			return 0;
		tracked = listener_found(sk, bpf_get_current_task_btf());
		if ((!tracked || !tracked->tree) && walk_may_help())
			doorbell_ring();
		return 0;
	}
	if (newstate == (oldstate == TCP_LISTEN ? TCP_SYN_RECV : TCP_ESTABLISHED) &&
	    (oldstate == TCP_LISTEN || oldstate == TCP_SYN_RECV) && is_tcp(sk))
		connection_born(copy || oldstate != TCP_LISTEN, sk);
	if (oldstate != TCP_LISTEN || newstate != TCP_CLOSE)
		return 0;
	tracked = tracked_at(sk);
	if (!tracked)
		return 0;
	socket_forget(sk, tracked);
	bpf_sk_storage_delete(&marks, sk);
	return 0;
}

/* The child does not run yet: it belongs to its parent's workload from its first instruction. */
SPARED_PROG("tp_btf/task_newtask", discovery_newtask, struct task_struct *task, __u64 clone_flags)
{
	__u32 tree = tree_of(bpf_get_current_task_btf());
	struct thread *thread;

	if (!tree)
		return 0;
	thread = thread_make(task, tree);
	if (!thread) {
		if (tree_refuse(tree))
			doorbell_ring();
		return 0;
	}
	thread->tree = tree;
	if (!(clone_flags & CLONE_THREAD))
		process_count(thread, tree);
	return 0;
}

/*
 * A process that has been moved to another cgroup before its exec is another service: what an init
 * system, a session manager or a container runtime starts is not part of them.
 */
SPARED_PROG("tp_btf/sched_process_exec", discovery_exec, struct task_struct *task)
{
	struct thread *thread = thread_of(task);
	struct tree *tree;

	if (!thread)
		return 0;
	thread->mutex.start_ns = 0; /* its stack is gone */
	tree = tree_at(thread->tree);
	if (!tree)
		return 0;
	/* After an exec by another thread than the leader, that thread has become the leader. */
	if (!thread->process)
		__sync_lock_test_and_set(&thread->process, thread->tree);
	if (!tree_has_place_of(tree, task)) {
		process_join(task, thread, 0);
		return 0;
	}
	if (tree->tgid == (__u32)task->tgid) {
		__sync_fetch_and_or(&tree->flags, TREE_EXEC);
		doorbell_ring();
	}
	return 0;
}

SPARED_PROG("tp_btf/sched_process_exit", discovery_exit, struct task_struct *task)
{
	struct thread *leader;
	struct tree *tree;

	if (process_lives(task))
		return 0;
	leader = thread_of(task->group_leader);
	if (!leader || !leader->process)
		return 0;
	tree = tree_at(leader->process);
	process_count(leader, 0);
	if (tree && tree_is_headed_by(tree, task->group_leader) && tree->processes) {
		__sync_fetch_and_or(&tree->flags, TREE_ORPHAN);
		doorbell_ring();
	}
	return 0;
}

SPARED_PROG("tp_btf/sched_process_free", discovery_free, struct task_struct *task)
{
	thread_free(task);
	return 0;
}

/* Whether the process of @leader_task is a child of @owner's founder, moved to another cgroup. */
static inline int handed_down(struct task_struct *leader_task, const struct tree *owner)
{
	return owner->tgid == (__u32)leader_task->real_parent->tgid &&
	       !tree_has_place_of(owner, leader_task);
}

/*
 * A process that holds a listener of a tree is part of it if it is in the founder's cgroup (workers
 * of a master); else it has been handed the socket by its init system, and is the service itself.
 * So is a process that holds the listener of a tree that has ended, or of none.
 */
static inline void holder_join(struct task_struct *task, struct sock *sk, struct tracked *tracked)
{
	struct thread *leader = thread_of(task->group_leader);
	struct tree *owner = tree_at(tracked->tree);

	if (leader && leader->tree) {
		if (!owner || !tracked_info(tracked) ||
		    (leader->tree != tracked->tree && handed_down(task->group_leader, owner)))
			listener_track(sk, leader->tree);
		return;
	}
	if (!owner || !tracked_info(tracked) || !tree_has_place_of(owner, task)) {
		listener_found(sk, task);
		return;
	}
	leader = thread_make(task->group_leader, tracked->tree);
	if (!leader) {
		walk_ask();
		return;
	}
	process_join(task->group_leader, leader, tracked->tree);
	__sync_fetch_and_or(&owner->flags, TREE_WALK);
}

/*
 * A listener of Multipath TCP is not the socket of TCP on which it listens, and that one has no
 * descriptor: known is only where it listens. A process that listens with it, after another one of
 * the same service, belongs to the tree of that one.
 */
static inline void multipath_found(struct sock *sk, struct task_struct *task, __u64 walk)
{
	struct task_struct *leader_task = task->group_leader;
	struct thread *leader = thread_make(leader_task, 0);
	struct listening_key key = listening_at(sk);
	struct listening *found = bpf_map_lookup_elem(&listening, &key);
	struct tree *owner;
	__u32 index;

	if (!leader) {
		walk_ask();
		return;
	}
	owner = found ? listening_owner(found) : NULL;
	index = leader->tree;
	if (!index && owner && tree_has_place_of(owner, leader_task)) {
		index = found->tree;
		process_join(leader_task, leader, index);
		__sync_fetch_and_or(&owner->flags, TREE_WALK);
	}
	if (!index)
		index = tree_found_by(leader_task, leader);
	listens_multipath = 1;
	listening_note(sk, index, 1, walk);
}

/* Listeners that exist already, found in the descriptor tables: at start, and when asked for. */
SEC("iter/task_file")
int discovery_listeners(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct tracked *tracked;
	struct sock *sk;

	walk_pause(ctx->meta);
	if (!task)
		listening_clean(ctx->meta->session_id);
	if (!task || !file || !process_lives(task))
		return 0;
	sk = file_sock(file);
	if (!sk || sk->__sk_common.skc_state != TCP_LISTEN)
		return 0;
	if (sk->sk_protocol == IPPROTO_MPTCP)
		multipath_found(sk, task, ctx->meta->session_id);
	if (!is_tcp(sk))
		return 0;
	tracked = tracked_at(sk);
	if (tracked) {
		holder_join(task, sk, tracked);
	} else {
		tracked = listener_found(sk, task);
		if (!tracked)
			return 0;
		drop_of_add(tracked->tree, DROP_BACKLOG_ADOPT, sk->sk_ack_backlog);
	}
	if (!connections_walked)
		listening_note(sk, tracked->tree, 0, ctx->meta->session_id);
	return 0;
}

/* At start, after the listeners: their connections that are open already. */
SEC("iter/task_file")
int discovery_connections(struct bpf_iter__task_file *ctx)
{
	struct listening_key key;
	struct tracked fresh = {};
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct listening *found;
	struct tcp_sock *tcp;
	struct sock *sk;
	__u32 tree;

	walk_pause(ctx->meta);
	if (!task) {
		connections_walked = 1;
		listening_clean(0);
	}
	if (!task || !file)
		return 0;
	sk = file_tcp_sock(file);
	if (!sk)
		return 0;
	if (sk->__sk_common.skc_state != TCP_ESTABLISHED &&
	    sk->__sk_common.skc_state != TCP_CLOSE_WAIT)
		return 0;
	key = listening_at(sk);
	found = bpf_map_lookup_elem(&listening, &key);
	if (!found || tracked_at(sk))
		return 0;
	fresh.accepted = 1; /* before we came */
	fresh.adopted = 1;
	tcp = (struct tcp_sock *)sk;
	bytes_begin(&fresh.bytes, BPF_CORE_READ(tcp, copied_seq), BPF_CORE_READ(tcp, write_seq));
	/* Listeners may share a port. A worker that no walk has joined yet is in none. */
	tree = tree_of(task);
	connection_adopt(sk, &fresh, tree ? tree : found->tree);
	return 0;
}

/* Whether the process that walks is in the initial pid namespace: the kernel shows it all tasks. */
static inline int reader_sees_all(void)
{
	return !BPF_CORE_READ(bpf_get_current_task_btf(), thread_pid, level);
}

/* Counts the threads that have state: of some the end was not seen. One walk at a time. */
SEC("iter/task")
int discovery_recount(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task) {
		if (!reader_sees_all())
			quota_leave(QUOTA_THREADS);
		return 0;
	}
	if (thread_is_held(task))
		quota_meet(QUOTA_THREADS);
	return 0;
}

/* Tells user space which processes belong to trees, and where to look at them in /proc. */
SEC("iter/task")
int discovery_processes(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task, *leader;
	struct tree_process process = {};

	if (!task || task->flags & PF_KTHREAD || !process_lives(task))
		return 0;
	leader = task->group_leader;
	if (task->pid != task->tgid && (task->exit_state || !leader->exit_state))
		return 0;
	process.tree = tree_of(task);
	if (!process.tree)
		return 0;
	process.start_ns = leader->start_boottime;
	process.thread_start_ns = task->start_boottime;
	process.tgid = task->tgid;
	process.tid = task->exit_state ? 0 : task->pid;
	process.exec_id = leader->self_exec_id;
	bpf_seq_write(ctx->meta->seq, &process, sizeof(process));
	return 0;
}
