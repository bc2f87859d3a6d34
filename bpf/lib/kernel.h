/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel types that the programs use, kept by hand: only the fields that are read, found at
 * load time wherever this kernel has them (CO-RE). Nothing here is generated from a build host.
 */
#ifndef WORKLOAD_LIB_KERNEL_H
#define WORKLOAD_LIB_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

#define NULL ((void *)0)
#define offsetof(type, member) __builtin_offsetof(type, member)
#define true 1
#define false 0

/* include/uapi/linux/bpf.h */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK = 23,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum {
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1 << 0,
	BPF_F_CLONE = 1 << 9,
	BPF_F_MMAPABLE = 1 << 10,
};
enum {
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_SK_STORAGE_GET_F_CREATE = 1,
};

/* include/linux/sched.h, include/net/tcp_states.h, include/linux/socket.h, include/net/sock.h */
#define PF_EXITING 0x00000004
#define PF_IO_WORKER 0x00000010
#define PF_KTHREAD 0x00200000
#define TASK_UNINTERRUPTIBLE 0x0002
#define PF_USER_WORKER 0x00004000 /* since 6.4 */
#define CLONE_THREAD 0x00010000
#define MSG_PEEK 2
#define MSG_ERRQUEUE 0x2000
#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define O_NONBLOCK 04000
#define EAGAIN 11
#define IPPROTO_TCP 6
#define IPPROTO_MPTCP 262
#define SOCK_DONE 1 /* bit of skc_flags: a FIN has come */
#define SOCK_NOSPACE 2 /* bit of socket.flags: a sender waits for room */
#define TS_COMPAT 0x0002 /* arch/x86/include/asm/thread_info.h */
#define TIF_32BIT (1UL << 22) /* arch/arm64/include/asm/thread_info.h */

enum {
	TCP_ESTABLISHED = 1,
	TCP_SYN_RECV = 3,
	TCP_FIN_WAIT1 = 4,
	TCP_CLOSE = 7,
	TCP_CLOSE_WAIT = 8,
	TCP_LISTEN = 10,
	TCP_CLOSING = 11,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct thread_info {
	__u32 status; /* x86 */
	unsigned long flags; /* arm64 */
};

struct kernfs_node {
	__u64 id;
};

struct list_head {
	struct list_head *next;
};

struct cgroup_root {
	int hierarchy_id;
};

struct cgroup {
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

struct css_set {
	struct cgroup *dfl_cgrp;
	struct list_head cgrp_links;
};

struct cgrp_cset_link {
	struct cgroup *cgrp;
	struct list_head cgrp_link;
};

struct signal_struct {
	atomic_t live;
};

struct files_struct;

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct bpf_local_storage {
	struct hlist_head list;
};

struct bpf_local_storage_data {
	void *smap; /* begins with its struct bpf_map */
};

struct bpf_local_storage_elem {
	struct hlist_node snode;
	struct bpf_local_storage_data sdata;
};

struct kernel_clone_args {
	__u32 user_worker : 1; /* since 6.4 */
};

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	struct upid numbers[1]; /* one per namespace, of level + 1 */
};

struct cred {
	struct {
		__u32 val;
	} uid; /* the real one */
};

struct mm_struct {
	struct file *exe_file; /* of the program that was executed */
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	unsigned int on_cpu; /* __u8 since 7.2: libbpf fits the size of unsigned loads only */
	int exit_state;
	int exit_code;
	unsigned int in_iowait : 1;
	int pid;
	int tgid;
	struct pid *thread_pid;
	__u32 self_exec_id;
	struct mm_struct *mm;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	__u64 start_time;
	__u64 start_boottime;
	const struct cred *real_cred;
	char comm[16];
	struct signal_struct *signal;
	struct css_set *cgroups;
	struct files_struct *files;
	struct bpf_local_storage *bpf_storage;
};

struct inode {
	__u16 i_mode;
};

struct file {
	unsigned int f_flags;
	struct hlist_head *f_ep;
	struct inode *f_inode;
	void *private_data;
	const void *f_op;
};

struct rb_node {
	struct rb_node *rb_right;
	struct rb_node *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct rb_root_cached {
	struct rb_root rb_root;
};

struct eventpoll {
	struct rb_root_cached rbr;
};

struct epoll_filefd {
	struct file *file;
};

struct epitem {
	struct epoll_filefd ffd;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct sk_buff {
	unsigned int len;
	unsigned char *data;
};

struct sock;

struct socket {
	unsigned long flags;
	struct file *file;
	struct sock *sk;
};

struct linux_mib {
	unsigned long mibs[1];
};

struct netns_mib {
	struct linux_mib *net_statistics; /* of each CPU */
};

struct net {
	struct netns_mib mib;
};

struct bpf_array {
	void *pptrs[1];
};

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	unsigned int skc_hash;
	__u16 skc_num;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	unsigned long skc_flags;
};

struct sock {
	struct sock_common __sk_common;
	atomic_t sk_drops;
	struct socket *sk_socket;
	__u16 sk_protocol;
	int sk_err;
	int sk_wmem_queued;
	int sk_sndbuf;
	__u32 sk_ack_backlog;
	__u32 sk_max_ack_backlog;
	struct bpf_local_storage *sk_bpf_storage;
};

struct request_sock_queue {
	__u8 rskq_defer_accept;
};

struct inet_connection_sock {
	struct request_sock_queue icsk_accept_queue;
};

struct tcp_sock {
	__u32 rcv_nxt;
	__u32 rcv_wup; /* rcv_nxt when the last window was told */
	__u32 rcv_wnd; /* that window */
	__u32 copied_seq;
	volatile __u32 write_seq;
	volatile __u32 snd_nxt;
	__u32 snd_una;
	__u32 notsent_lowat;
	__u32 srtt_us; /* smoothed round trip time, times 8 */
	__u64 bytes_received; /* for which rcv_nxt has moved */
	__u64 bytes_acked; /* for which snd_una has moved */
	__u64 tcp_clock_cache; /* CLOCK_MONOTONIC at the last segment in or out */
	bool is_mptcp;
	__u8 syn_data_acked : 1; /* its first bytes came with the SYN (Fast Open) */
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	__u64 session_id; /* of this walk: never 0, never again */
	__u64 seq_num; /* of this object in it */
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	struct file *file;
};

struct bpf_map;

struct bpf_iter__bpf_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
};

struct linux_binprm;

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long di, si, dx, r10, r8, r9;
	unsigned long ax, bp, orig_ax, ip, sp;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 orig_x0;
	__s32 syscallno;
};
#else
#error "no register layout for this architecture"
#endif

#pragma clang attribute pop

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/* kernel/bpf/helpers.c */
extern void *bpf_rdonly_cast(const void *object, __u32 type_id) __ksym __weak;

/*
 * Functions that are not static are verified once, by themselves, and not again for every path that
 * leads to them: that keeps loading fast (measured: 5 s without, 0.1 s with).
 */
#define VERIFIED_ALONE __attribute__((noinline))

#endif
