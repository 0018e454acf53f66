/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Whether what a command printed has been written. */
#ifndef COLL_PRINTED_H
#define COLL_PRINTED_H

#include <stdio.h>

/* 0, or the -errno of what could not be written to the stream, whose buffer it writes out. */
int printed_error(FILE *to);

/*
 * The exit code of a command that would end with `status`: COMMAND_ERROR, and a line on stderr, if
 * standard output could not be written.
 */
int printed_status(const char *command, int status);

#endif
