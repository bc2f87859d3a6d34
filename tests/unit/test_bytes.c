/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdint.h>

#include "machine/bytes.h"

static struct bytes begun_at(uint32_t read_seq, uint32_t sent_seq)
{
	struct bytes bytes = { 0 };

	bytes_begin(&bytes, read_seq, sent_seq);
	return bytes;
}

Test(bytes, nothing_is_counted_before_it_is_known_where_they_begin)
{
	struct bytes bytes = { 0 };

	cr_expect_eq(bytes.counts, BYTES_NOT_BEGUN, "as new storage is");
	cr_expect_eq(bytes_read(&bytes, 4000000000U), 0);
	cr_expect_eq(bytes_sent(&bytes, 7), 0);
	bytes_begin(&bytes, 100, 200);
	cr_expect_eq(bytes_read(&bytes, 150), 50);
	cr_expect_eq(bytes_sent(&bytes, 201), 1);
}

Test(bytes, what_is_counted_is_not_counted_again)
{
	struct bytes bytes = begun_at(0, 0);

	cr_expect_eq(bytes_read(&bytes, 10), 10);
	cr_expect_eq(bytes_read(&bytes, 10), 0);
	cr_expect_eq(bytes_sent(&bytes, 10), 10);
	cr_expect_eq(bytes_sent(&bytes, 10), 0);
}

Test(bytes, sequence_numbers_begin_again_at_zero)
{
	struct bytes bytes = begun_at(0xffffff00U, 0xfffffffeU);

	cr_expect_eq(bytes_read(&bytes, 0x100), 0x200);
	cr_expect_eq(bytes_sent(&bytes, 1), 3);
}

/* One has looked at the number, then another counts further, then the first one counts. */
Test(bytes, who_was_overtaken_takes_back_what_the_other_counted)
{
	struct bytes bytes = begun_at(0, 0);
	int64_t sum = 0;

	sum += bytes_read(&bytes, 300);
	sum += bytes_read(&bytes, 100);
	cr_expect_eq(sum, 100);
	sum += bytes_read(&bytes, 300);
	cr_expect_eq(sum, 300);
}

Test(bytes, any_amount_is_told_if_they_are_counted_before_they_are_many)
{
	struct bytes bytes = begun_at(12345, 0);
	uint32_t seq = 12345;
	uint64_t sum = 0, total = 0;

	for (int i = 0; i < 1000; i++) {
		seq += 100000007;
		total += 100000007;
		if (bytes_are_many(seq, bytes.read_seq))
			sum += (uint64_t)bytes_read(&bytes, seq);
	}
	sum += (uint64_t)bytes_read(&bytes, seq);
	cr_expect_eq(sum, total);
	cr_expect(!bytes_are_many(seq, bytes.read_seq));
}

/* Half of what a difference of 32 bits can tell: as much again may come before they are counted. */
Test(bytes, a_gigabyte_is_many)
{
	cr_expect(bytes_are_many(1U << 30, 0));
	cr_expect(!bytes_are_many((1U << 30) - 1, 0));
	cr_expect(bytes_are_many(7, 7 - (1U << 30)));
}

Test(bytes, a_fin_is_no_byte_that_is_sent)
{
	struct bytes bytes = begun_at(0, 0);

	cr_expect_eq(bytes_sent(&bytes, 10), 10);
	bytes_all_sent(&bytes);
	cr_expect_eq(bytes_sent(&bytes, 11), 0);
	cr_expect_eq(bytes_read(&bytes, 5), 5);
}

Test(bytes, numbers_that_mean_nothing_are_not_counted)
{
	struct bytes bytes = begun_at(0, 0);

	bytes.counts = BYTES_AS_TOLD;
	bytes_all_sent(&bytes);
	cr_expect_eq(bytes_read(&bytes, 1000), 0);
	cr_expect_eq(bytes_sent(&bytes, 1000), 0);
}
