/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Completion of a command line by a shell: a script made of the tables of options. */
#ifndef COLL_COMPLETION_H
#define COLL_COMPLETION_H

#include <stdio.h>

#include "command.h"

/* The script of a shell, "bash" or "zsh", for argument_program. False: it knows no other. */
bool completion_print(const char *shell, const struct command *commands, FILE *to);

#endif
