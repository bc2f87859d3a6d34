// SPDX-License-Identifier: Apache-2.0
/*
 * wrapper DELAY_MS PROGRAM [ARGUMENT...]: listens on any port and becomes PROGRAM, which inherits
 * the listener (and does nothing with it), after DELAY_MS.
 */
#include <fcntl.h>

#include "workload.h"

int main(int argc, char **argv)
{
	int listener = listen_open("127.0.0.1", 0, 16);

	if (argc < 3 || fcntl(listener, F_SETFD, 0))
		die("wrapper DELAY_MS PROGRAM [ARGUMENT...]");
	clock_sleep_us(strtol(argv[1], NULL, 10) * 1000);
	execv(argv[2], argv + 2);
	die("exec");
}
