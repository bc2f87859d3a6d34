/* SPDX-License-Identifier: Apache-2.0 */
/* What a Java virtual machine was told when it was started (HotSpot). */
#ifndef WORKLOAD_PROFILES_JVM_H
#define WORKLOAD_PROFILES_JVM_H

#include <stdbool.h>

/*
 * Whether the process of that folder in /proc was told to keep frame pointers
 * (-XX:+PreserveFramePointer): by its arguments, or by a variable of its environment that the JVM
 * or its launcher adds to them, where that can be read (proc_environment_read()). What is in a file
 * that these name is not seen. The process may be any.
 */
bool jvm_keeps_frame_pointers(int dir_fd);

#endif
