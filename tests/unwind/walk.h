/* SPDX-License-Identifier: Apache-2.0 */
/* The files at paths and below: each that may be an ELF file, in memory. */
#ifndef WORKLOAD_TESTS_WALK_H
#define WORKLOAD_TESTS_WALK_H

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define WALK_DESCRIPTORS 16

/* Of the program: @image is valid meanwhile. */
static void walk_file(const char *path, int fd, const void *image, size_t bytes);

static inline int walk_visit(const char *path, const struct stat *stat, int kind,
			     struct FTW *unused)
{
	void *image;
	int fd;

	(void)unused;
	if (kind != FTW_F || !S_ISREG(stat->st_mode) || stat->st_size < (off_t)sizeof(Elf64_Ehdr))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	image = mmap(NULL, (size_t)stat->st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (image != MAP_FAILED) {
		walk_file(path, fd, image, (size_t)stat->st_size);
		munmap(image, (size_t)stat->st_size);
	}
	close(fd);
	return 0;
}

/* Of the arguments of main(). */
static inline void walk_all(char **argv)
{
	for (char **path = argv + 1; *path; path++)
		if (nftw(*path, walk_visit, WALK_DESCRIPTORS, FTW_PHYS | FTW_MOUNT))
			fprintf(stderr, "%s: %s: %s\n", argv[0], *path, strerror(errno));
}

#endif
