/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where requests are observed: at the sockets (bpf/requests.bpf.c, Linux 6.3 and later) or at the
 * system calls (bpf/requests_syscall.bpf.c). The values of --requests.backend.
 */
#ifndef WORKLOAD_BACKEND_H
#define WORKLOAD_BACKEND_H

enum backend { BACKEND_AUTO, BACKEND_SOCKET, BACKEND_SYSCALL };

#endif
