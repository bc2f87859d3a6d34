// SPDX-License-Identifier: Apache-2.0
/*
 * A service whose ports and thread names change while it runs. Its first port has no visitors.
 *
 * Commands: `open` (listens on another port, told as `port`, until it has answered one request of
 * 100 bytes there, which it does before it obeys further), `again` (the same on the port before),
 * `thread NAME` (starts a thread of that name, which sleeps for --sleep-us, and waits for its end),
 * `name NAME` (the main thread takes that name and sleeps as long), `keep NAME` (a thread that
 * stays until `leave NAME`), `quit`.
 */
#include "workload.h"

#define KEPT_MAX 256
#define NAME_BYTES 16
#define REQUEST_BYTES 100

struct kept {
	char name[NAME_BYTES]; /* empty: none */
	pthread_t thread;
	int ends[2]; /* of a pipe, at which it waits */
};

struct changer {
	long sleep_us;
	long port; /* the last that was opened */
	struct kept kept[KEPT_MAX];
};

static void turn_serve(int listener)
{
	char buffer[REQUEST_BYTES];
	int fd = accept(listener, NULL, NULL);

	if (fd < 0 || !io_read_all(fd, buffer, sizeof(buffer)) ||
	    !io_write_all(fd, buffer, sizeof(buffer)))
		die("turn");
	close(fd);
}

/* The command is answered first: the visitor waits for the port. */
static void port_open(struct changer *changer, const char *address, long port)
{
	int listener = listen_open(address, port, 8);

	changer->port = (long)socket_port(listener);
	stat_print("port", (uint64_t)changer->port);
	command_done();
	turn_serve(listener);
	close(listener);
}

/* A new name is seen when its thread is switched. */
static void name_take(const char *name)
{
	prctl(PR_SET_NAME, name);
}

struct passing {
	const char *name;
	long sleep_us;
};

static void *passing_main(void *argument)
{
	const struct passing *passing = argument;

	name_take(passing->name);
	clock_sleep_us(passing->sleep_us);
	return NULL;
}

static void *kept_main(void *argument)
{
	const struct kept *kept = argument;
	char byte;

	name_take(kept->name);
	return read(kept->ends[0], &byte, 1) == 1 ? NULL : argument;
}

static struct kept *kept_find(struct changer *changer, const char *name)
{
	for (int i = 0; i < KEPT_MAX; i++)
		if (!strcmp(changer->kept[i].name, name))
			return &changer->kept[i];
	die("no thread %s", name);
}

static void thread_keep(struct changer *changer, const char *name)
{
	struct kept *kept = kept_find(changer, "");

	snprintf(kept->name, sizeof(kept->name), "%s", name);
	if (pipe(kept->ends))
		die("pipe");
	kept->thread = thread_start(kept_main, kept);
}

static void thread_leave(struct changer *changer, const char *name)
{
	struct kept *kept = kept_find(changer, name);

	if (write(kept->ends[1], "", 1) != 1)
		die("write");
	pthread_join(kept->thread, NULL);
	close(kept->ends[0]);
	close(kept->ends[1]);
	kept->name[0] = '\0';
}

static void thread_pass(const struct changer *changer, const char *name)
{
	struct passing passing = { name, changer->sleep_us };

	pthread_join(thread_start(passing_main, &passing), NULL);
}

static void command_obey(struct changer *changer, const char *address, char *line)
{
	char *name = strchr(line, ' ');

	if (name)
		*name++ = '\0';
	if (!strcmp(line, "open") || !strcmp(line, "again")) {
		port_open(changer, address, !strcmp(line, "open") ? 0 : changer->port);
		return;
	}
	if (name && !strcmp(line, "thread"))
		thread_pass(changer, name);
	else if (name && !strcmp(line, "keep"))
		thread_keep(changer, name);
	else if (name && !strcmp(line, "leave"))
		thread_leave(changer, name);
	else if (name && !strcmp(line, "name"))
		name_take(name);
	clock_sleep_us(name && !strcmp(line, "name") ? changer->sleep_us : 0);
	command_done();
}

int main(int argc, char **argv)
{
	static struct changer changer = { .sleep_us = 20000 };
	const char *address = "127.0.0.1";
	long port = 0;
	const struct option_row options[] = {
		{ "address", NULL, &address, "where to listen" },
		{ "port", &port, NULL, "the first port, 0 for any" },
		{ "sleep-us", &changer.sleep_us, NULL, "of a thread with a new name" },
		{ 0 },
	};
	char line[64];

	options_parse(options, argc, argv);
	ready_print(listen_open(address, port, 8));
	while (command_next(line, sizeof(line)) && strcmp(line, "quit"))
		command_obey(&changer, address, line);
	return 0;
}
