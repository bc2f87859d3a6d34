/* SPDX-License-Identifier: Apache-2.0 */
/* Names as compilers make them of those in the source, and what is none. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "profiles/demangled.h"

static void expect(const char *name, const char *expected)
{
	char out[200];
	bool known = demangled(name, out, sizeof(out));

	cr_expect_eq(known, expected != NULL, "%s: %s", name, known ? out : "not known");
	if (known && expected)
		cr_expect_str_eq(out, expected, "%s: %s", name, out);
}

Test(demangled, names_of_cpp_have_no_parameters)
{
	expect("_ZNSt5mutex4lockEv", "std::mutex::lock");
	expect("_ZN4shop5Order5totalERKSt6vectorIiSaIiEE", "shop::Order::total");
	expect("_ZN4shop3sumIiEET_RKSt6vectorIS1_SaIS1_EE", "shop::sum<int>");
	expect("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()");
	expect("_ZL20__gthread_mutex_lockP15pthread_mutex_t", "__gthread_mutex_lock");
	expect("_Znwm", "operator new");
}

/* gcc makes several functions of one, and clang names of its own. */
Test(demangled, names_have_nothing_that_a_compiler_has_added)
{
	expect("_ZN4shop5totalEi.isra.0", "shop::total");
	expect("_ZN4shop5totalEi.cold", "shop::total");
	expect("_ZN4shop5totalEi.llvm.1234567890", "shop::total");
}

Test(demangled, names_of_rust_have_no_hash)
{
	expect("_ZN3std3sys4sync5mutex5futex5Mutex14lock_contended17h0123456789abcdefE",
	       "std::sys::sync::mutex::futex::Mutex::lock_contended");
	expect("_ZN48_$LT$shop..Order$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE",
	       "<shop::Order as core::fmt::Debug>::fmt");
	expect("_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function");
	expect("_RNvMs_NtNtCs5l0EXMQXRMU_3std4sync5mutexINtB4_5MutexlE4lockCs1_4main",
	       "<std::sync::mutex::Mutex<i32>>::lock");
}

Test(demangled, other_names_are_none)
{
	static const char *const names[] = {
		"",
		"main",
		"_start",
		"_Z",
		"_ZN",
		"_ZN4sho",
		"_R",
		"_Rx",
		"_RNvC3foo_ba",
		"_GLOBAL__sub_I_main",
		"main.main",
		"runtime.(*mheap).alloc",
		"_Z\xff",
		"_Zrite_all",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		expect(names[i], NULL);
}

Test(demangled, what_there_is_no_room_for_is_left_out)
{
	char out[8], one[1];

	memset(out, 'x', sizeof(out));
	cr_expect(demangled("_ZNSt5mutex4lockEv", out, sizeof(out)));
	cr_expect_str_eq(out, "std::mu");
	cr_expect(demangled("_ZNSt5mutex4lockEv", out, sizeof("std::mu")));
	cr_expect_str_eq(out, "std::mu");
	cr_expect_not(demangled("_ZNSt5mutex4lockEv", one, sizeof(one)));
}

Test(demangled, a_name_that_is_too_long_is_none)
{
	char name[DEMANGLED_BYTES_MAX + 2] = "_Z", out[2 * sizeof(name)];
	int digits = snprintf(name, sizeof(name), "_Z%u", DEMANGLED_BYTES_MAX - 7);

	memset(name + digits, 'a', DEMANGLED_BYTES_MAX - (size_t)digits);
	name[DEMANGLED_BYTES_MAX] = '\0';
	name[DEMANGLED_BYTES_MAX - 1] = 'v';
	cr_expect(demangled(name, out, sizeof(out)));
	name[DEMANGLED_BYTES_MAX] = 'v';
	cr_expect_not(demangled(name, out, sizeof(out)));
}
