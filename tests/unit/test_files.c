/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "profiles/files.h"
#include "stored.h"

static struct file *settled(struct files *files, uint64_t inode)
{
	const struct file_key key = { .inode = inode, .dev_major = 8 };
	const struct unwind_table none = { 0 };
	struct file *file = files_use(files, &key);

	cr_assert_not_null(file);
	if (!file->number)
		cr_assert_eq(files_settle(files, file, &none), 0);
	return file;
}

Test(files, of_equal_keys_are_one)
{
	struct stored stored = stored_new();
	struct files files = { .store = stored.store };
	struct file *one = settled(&files, 7), *again = settled(&files, 7);
	struct file *other = settled(&files, 8);

	cr_expect_eq(one, again);
	cr_expect_neq(one, other);
	cr_expect_eq(one->users, 2);
	cr_expect_eq(files_at(&files, one->number), one);
	cr_expect_eq(files_at(&files, other->number), other);
	cr_expect_null(files_at(&files, 0));
	cr_expect_null(files_at(&files, UNWIND_FILES_MAX));
	files_free(&files);
	cr_expect_eq(unwind_store_use(stored.store).files, 0);
	unwind_store_free(stored.store);
}

/* Its number stays its own while a profile that began before may have it in a stack. */
Test(files, stay_while_a_process_or_a_profile_has_them)
{
	struct stored stored = stored_new();
	struct files files = { .store = stored.store };
	struct file *file = settled(&files, 7);
	uint32_t number = file->number;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	file->fd = fd;
	files_sweep(&files, UINT64_MAX);
	cr_assert_eq(files_at(&files, number), file, "a process uses it");
	file_release(file, 100);
	files_sweep(&files, 100);
	cr_assert_eq(files_at(&files, number), file, "a profile began when it was still used");
	files_sweep(&files, 101);
	cr_expect_null(files_at(&files, number));
	cr_expect_eq(fcntl(fd, F_GETFD), -1, "it is closed");
	cr_expect_eq(unwind_store_use(stored.store).files, 0);
	unwind_store_free(stored.store);
}

Test(files, have_a_limit)
{
	struct stored stored = stored_new();
	struct files files = { .store = stored.store };
	struct file_key key = { .inode = FILES_MAX + 1 };

	for (uint64_t inode = 1; inode <= FILES_MAX; inode++)
		settled(&files, inode);
	cr_expect_null(files_use(&files, &key));
	for (; key.inode <= 2 * FILES_MAX; key.inode++)
		cr_assert_not_null(files_use_generated(&files, &key), "they have one of their own");
	cr_expect_null(files_use_generated(&files, &key));
	file_release(settled(&files, 5), 1);
	file_release(settled(&files, 5), 1);
	file_release(settled(&files, 5), 1);
	files_free(&files);
	unwind_store_free(stored.store);
}

/* As a linker lays out: code at 0x1234 of the file, linked one page higher. */
Test(files, say_where_a_mapping_has_their_code)
{
	const struct file file = {
		.program.segments = { { .offset = 0x1234, .bytes = 0x2000, .address = 0x402234 } },
		.program.segments_len = 1,
	};
	const struct file_mapping whole = { 0x7f0000001000, 0x7f0000004000, 0x1000 };
	const struct file_mapping second = { 0x7f0000002000, 0x7f0000004000, 0x2000 };
	const struct file_mapping before = { 0x7f0000000000, 0x7f0000001000, 0 };
	const struct file_mapping behind = { 0x7f0000000000, 0x7f0000001000, 0x4000 };
	uint64_t bias = 0;

	cr_assert(file_bias(&file, &whole, &bias));
	cr_expect_eq(0x402234 + bias, 0x7f0000001234);
	cr_assert(file_bias(&file, &second, &bias));
	cr_expect_eq(0x402234 + bias, 0x7f0000001234);
	cr_expect_not(file_bias(&file, &before, &bias));
	cr_expect_not(file_bias(&file, &behind, &bias));
}

/* One that is not position-independent is where it was linked. */
Test(files, may_be_mapped_where_they_were_linked)
{
	const struct file file = {
		.program.segments = { { .offset = 0x1000, .bytes = 0x800, .address = 0x401000 } },
		.program.segments_len = 1,
	};
	const struct file_mapping mapping = { 0x401000, 0x402000, 0x1000 };
	uint64_t bias = 1;

	cr_assert(file_bias(&file, &mapping, &bias));
	cr_expect_eq(bias, 0);
}
