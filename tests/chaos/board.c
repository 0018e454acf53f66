// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "board.h"

struct board *board_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct board *board;

	if (fd < 0)
		return NULL;
	board = ftruncate(fd, sizeof(*board)) ? MAP_FAILED :
		mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return board == MAP_FAILED ? NULL : board;
}

void board_close(struct board *board)
{
	munmap(board, sizeof(*board));
}
