/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the loader tells each object before it is loaded: facts of the machine and its kernel. */
#ifndef WORKLOAD_LIB_KNOBS_H
#define WORKLOAD_LIB_KNOBS_H

#include "lib/kernel.h"

const volatile __u32 cpus = 1; /* numbers that CPUs may have: 0 to the highest possible one */
const volatile __u32 shards = 1; /* a power of two, at most SHARDS_MAX */
const volatile __u32 endpoints_max = 1; /* slots of tables that the loader sizes */
const volatile __u32 pools_max = 1;
const volatile __u32 hierarchy = 0; /* of cgroups, version 1; 0: none, see set_cgroup_v1() */
const volatile bool storage_refuses = true; /* look-ups of busy task storage (before Linux 6.2) */
const volatile __u32 mib_overflows = 0; /* where TcpExt's ListenOverflows is in struct linux_mib */
const volatile __u32 mib_deferred = 0; /* and TCPDeferAcceptDrop */
const volatile bool casts = true; /* the kernel has bpf_rdonly_cast() (Linux 6.2) */

/*
 * @object for looking only. To load a pointer through a trusted one the verifier searches all types
 * of the kernel by name, several times: a third of what starting took (measured, Linux 6.18). Only
 * in objects of kernels whose JIT can call kernel functions: others refuse them even where unused.
 */
#ifdef KERNEL_HAS_CASTS
#define PLAIN(type, object) \
	(casts ? (type *)bpf_rdonly_cast(object, bpf_core_type_id_kernel(type)) : (object))
#else
#define PLAIN(type, object) (object)
#endif

#endif
