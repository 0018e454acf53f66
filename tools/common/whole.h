/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A file that is the whole new one, or the one before: it is written beside, and takes the place of
 * what is there when it is closed, with its mode and owner. What is no regular file, what standard output
 * goes to, and a file in a folder where none can be made, is written as it is.
 */
#ifndef COLL_WHOLE_H
#define COLL_WHOLE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

struct whole_file {
	FILE *to;
	char path[PATH_MAX], beside[PATH_MAX];	/* beside is "": it is no regular file */
};

/*
 * Before work of which the result is to be written there: whether it may be, or else says on stderr why
 * not. True for NULL, and for "-", the standard output.
 */
bool whole_possible(const char *command, const char *path);
/* 0 or -errno. */
int whole_open(struct whole_file *file, const char *path);
/* 0, or the -errno of what could not be written: then what was there still is. */
int whole_close(struct whole_file *file);

#endif
