/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that generate code while they run, known by what they export; and how stacks are
 * followed through what they generate, of which no file tells anything: by frame pointers, where it
 * keeps them, or by the instructions that it goes on with.
 */
#ifndef WORKLOAD_UNWIND_GENERATOR_H
#define WORKLOAD_UNWIND_GENERATOR_H

#include <stdbool.h>

#include "abi/unwind.h"
#include "unwind/elf_image.h"
#include "unwind/frames.h"

enum generator {
	GENERATOR_NONE,
	/*
	 * With -X perf it puts one of two pieces of code between functions of Python, by which perf
	 * tells them apart (Python/asm_trampoline.S). What extensions generate is unlike them.
	 */
	GENERATOR_CPYTHON,
	/* Its code always keeps frame pointers (src/execution/frame-constants.h): Node.js. */
	GENERATOR_V8,
	/* It does if it is told to: -XX:+PreserveFramePointer (HotSpot's runtime/globals.hpp). */
	GENERATOR_HOTSPOT,
	GENERATORS,
};

/* What @image exports. Time is in proportion to its dynamic symbols. */
enum generator generator_find(const struct elf_image *image);

/*
 * Adds to @frames, which are all that are read of @image, the builtin functions of V8 for x86-64:
 * they are generated as well, when it is built, and no frame information tells of them. Those for
 * arm64 stay unknown: in the one that C++ calls, what it keeps for that is above its frame.
 * Anything else stays as it is. 0, -E2BIG or -ENOMEM.
 */
int generator_frames_read(const struct elf_image *image, const struct cfi_machine *machine,
			  struct frames *frames);

/*
 * The rule for all that a process generates. Where code keeps frame pointers, on x86-64 and arm64,
 * the frame pointer leads to that of the caller, and the return address is behind it. At the first
 * instructions of a function, which set it up, and at its last one, its caller may be left out.
 * Where it does not, callers are known of what CPython generates.
 */
struct unwind_rule generator_rule(bool frame_pointers);

#endif
