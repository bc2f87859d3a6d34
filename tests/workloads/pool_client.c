// SPDX-License-Identifier: Apache-2.0
/*
 * Load for a service with messages of a fixed size: every client sends, waits for the answer, and
 * goes on (closed loop), or sends at a fixed rate (open loop: times count from the moment planned).
 *
 * Ends after --requests, after --seconds, or on SIGTERM or SIGINT, and then prints what it
 * measured: the response time goes from before the send (before the connect on a new connection) to
 * the last byte of the answer. Commands are not read.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>

#include "workload.h"

struct load {
	struct addrinfo *server;
	long request_bytes;
	long response_bytes;
	long keep_alive;
	long rate; /* of all clients together, per second; 0 for a closed loop */
	long clients;
	long requests; /* 0: no limit */
	uint64_t end_ns; /* 0: no limit */
	uint64_t issued; /* atomic; begins with one of each client, however late that runs */
};

struct client {
	struct load *load;
	pthread_t thread;
	long number;
	uint64_t *times;
	size_t times_len;
	size_t times_size;
	uint64_t errors;
};

static volatile sig_atomic_t interrupted; /* the only way for a signal handler */

static void interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

static void time_add(struct client *client, uint64_t ns)
{
	if (client->times_len == client->times_size) {
		client->times_size = client->times_size ? 2 * client->times_size : 1024;
		client->times = realloc(client->times, client->times_size * sizeof(uint64_t));
		if (!client->times)
			die("realloc");
	}
	client->times[client->times_len++] = ns;
}

static int server_connect(const struct load *load)
{
	int fd = socket(load->server->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0)
		die("socket");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (!connect(fd, load->server->ai_addr, load->server->ai_addrlen))
		return fd;
	close(fd);
	return -1;
}

static bool load_over(struct load *load)
{
	if (interrupted || (load->end_ns && clock_now_ns() >= load->end_ns))
		return true;
	return __atomic_fetch_add(&load->issued, 1, __ATOMIC_RELAXED) >= (uint64_t)load->requests &&
	       load->requests;
}

static bool request_send(const struct load *load, int *fd, char *buffer)
{
	if (*fd < 0)
		*fd = server_connect(load);
	return *fd >= 0 && io_write_all(*fd, buffer, (size_t)load->request_bytes) &&
	       io_read_all(*fd, buffer, (size_t)load->response_bytes);
}

static void request_measure(struct client *client, int *fd, char *buffer, uint64_t begin)
{
	bool good = request_send(client->load, fd, buffer);

	if (good)
		time_add(client, clock_now_ns() - begin);
	else
		client->errors++;
	if (*fd >= 0 && (!good || !client->load->keep_alive)) {
		close(*fd);
		*fd = -1;
	}
	if (!good)
		clock_sleep_us(1000);
}

static void *client_main(void *argument)
{
	struct client *client = argument;
	struct load *load = client->load;
	uint64_t gap = load->rate ? NS_PER_S * (uint64_t)load->clients / (uint64_t)load->rate : 0;
	uint64_t planned = clock_now_ns() +
			   gap * (uint64_t)client->number / (uint64_t)load->clients;
	char *buffer = calloc(1, MESSAGE_MAX);
	int fd = -1;

	if (!buffer)
		die("calloc");
	thread_name_set("client", client->number);
	do {
		if (gap)
			clock_sleep_until(planned);
		request_measure(client, &fd, buffer, gap ? planned : clock_now_ns());
		planned += gap;
	} while (!load_over(load));
	if (fd >= 0)
		close(fd);
	free(buffer);
	return NULL;
}

static int compare_times(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static void report_print(struct client *clients, long count)
{
	struct client all = { 0 };
	uint64_t sum = 0;
	size_t i, j;

	for (i = 0; i < (size_t)count; i++) {
		all.errors += clients[i].errors;
		for (j = 0; j < clients[i].times_len; j++) {
			time_add(&all, clients[i].times[j]);
			sum += clients[i].times[j];
		}
		free(clients[i].times);
	}
	if (all.times_len) {
		qsort(all.times, all.times_len, sizeof(*all.times), compare_times);
		stat_print("response_p50_ns", all.times[all.times_len / 2]);
		stat_print("response_p99_ns", all.times[all.times_len * 99 / 100]);
		stat_print("response_max_ns", all.times[all.times_len - 1]);
	}
	stat_print("requests", all.times_len);
	stat_print("response_ns", sum);
	stat_print("errors", all.errors);
	command_done();
	free(all.times);
}

static void load_run(struct load *load)
{
	struct client *clients = calloc((size_t)load->clients, sizeof(*clients));
	long i;

	if (!clients)
		die("calloc");
	load->issued = (uint64_t)load->clients;
	for (i = 0; i < load->clients; i++) {
		clients[i].load = load;
		clients[i].number = i;
		clients[i].thread = thread_start(client_main, &clients[i]);
	}
	for (i = 0; i < load->clients; i++)
		pthread_join(clients[i].thread, NULL);
	report_print(clients, load->clients);
	free(clients);
}

int main(int argc, char **argv)
{
	struct load load = { .clients = 1, .request_bytes = 100, .response_bytes = 100 };
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	const char *address = "127.0.0.1", *port = "";
	struct sigaction action = { .sa_handler = interrupt };
	long seconds = 0;
	const struct option_row options[] = {
		{ "address", NULL, &address, "of the server" },
		{ "port", NULL, &port, "of the server" },
		{ "clients", &load.clients, NULL, "threads, each with one connection at a time" },
		{ "requests", &load.requests, NULL,
		  "of all, one of each client at least; 0 for no limit" },
		{ "seconds", &seconds, NULL, "to run; 0 for no limit" },
		{ "keep-alive", &load.keep_alive, NULL, "1: many requests on one connection" },
		{ "rate", &load.rate, NULL, "requests per second; 0 for a closed loop" },
		{ "request-bytes", &load.request_bytes, NULL, "size of every request" },
		{ "response-bytes", &load.response_bytes, NULL, "size of every response" },
		{ 0 },
	};

	options_parse(options, argc, argv);
	if (load.request_bytes > MESSAGE_MAX || load.response_bytes > MESSAGE_MAX || !load.clients)
		die("messages are at most %d bytes, clients at least one", MESSAGE_MAX);
	if (load.requests && load.requests < load.clients)
		die("each of %ld clients sends at least one of %ld requests", load.clients,
		    load.requests);
	if (getaddrinfo(address, port, &hints, &load.server))
		die("not an address: %s port %s", address, port);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	load.end_ns = seconds ? clock_now_ns() + (uint64_t)seconds * NS_PER_S : 0;
	load_run(&load);
	freeaddrinfo(load.server);
	return 0;
}
