/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/doorbell.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>

static int doorbell_record(void *arg, void *data, size_t size)
{
	(void)arg;
	(void)data;
	(void)size;
	return 0;
}

int doorbell_open(struct doorbell_reader *reader, const struct loader *loader)
{
	int fd = loader_map_fd(loader, "doorbell");
	struct ring_buffer *ring;

	if (fd < 0)
		return fd;
	ring = ring_buffer__new(fd, doorbell_record, NULL, NULL);
	if (!ring)
		return -errno;
	reader->ring = ring;
	return 0;
}

void doorbell_close(struct doorbell_reader *reader)
{
	ring_buffer__free(reader->ring);
	reader->ring = NULL;
}

int doorbell_fd(const struct doorbell_reader *reader)
{
	return ring_buffer__epoll_fd(reader->ring);
}

void doorbell_drain(struct doorbell_reader *reader)
{
	/* An error would mean a corrupt ring: the next ring or scrape looks at the table anyway. */
	ring_buffer__consume(reader->ring);
}
