/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"

Test(buffer, holds_what_was_appended)
{
	_cleanup_(buffer_free) struct buffer buffer = BUFFER_INIT(100);

	buffer_text(&buffer, "one ");
	buffer_append(&buffer, "t\0o", 3);
	buffer_char(&buffer, ' ');
	buffer_printf(&buffer, "%d", 3);
	cr_assert_eq(buffer.error, 0);
	cr_assert_eq(buffer.len, 9);
	cr_expect_arr_eq(buffer.data, "one t\0o 3", 9);
}

Test(buffer, takes_exactly_its_maximum)
{
	_cleanup_(buffer_free) struct buffer buffer = BUFFER_INIT(10000);

	for (int i = 0; i < 10000; i++)
		buffer_char(&buffer, 'x');
	cr_expect_eq(buffer.error, 0);
	cr_expect_eq(buffer.len, 10000);
	cr_expect_leq(buffer.size, 10000);
	buffer_char(&buffer, 'x');
	cr_expect_eq(buffer.error, -ENOBUFS);
	cr_expect_eq(buffer.len, 10000);
}

Test(buffer, an_error_is_sticky)
{
	_cleanup_(buffer_free) struct buffer buffer = BUFFER_INIT(4);

	buffer_text(&buffer, "hello");
	cr_expect_eq(buffer.error, -ENOBUFS);
	cr_expect_eq(buffer.len, 0, "appends all or nothing");
	buffer_text(&buffer, "a");
	buffer_printf(&buffer, "%s", "b");
	cr_expect_eq(buffer.error, -ENOBUFS);
	cr_expect_eq(buffer.len, 0);
}

Test(buffer, prints_more_than_fits_on_the_stack)
{
	_cleanup_(buffer_free) struct buffer buffer = BUFFER_INIT(10000);

	buffer_printf(&buffer, "%5000d|", 7);
	cr_assert_eq(buffer.error, 0);
	cr_assert_eq(buffer.len, 5001);
	cr_expect_arr_eq(buffer.data + 4998, " 7|", 3);
}

Test(buffer, is_usable_again_once_freed)
{
	struct buffer buffer = BUFFER_INIT(4);

	buffer_text(&buffer, "hello");
	buffer_free(&buffer);
	buffer_text(&buffer, "hell");
	cr_expect_eq(buffer.error, 0);
	cr_expect_eq(buffer.len, 4);
	buffer_free(&buffer);
	buffer_free(&buffer);
}
