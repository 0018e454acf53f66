/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Command line completion for shells: a script generated from the tables of options. */
#ifndef COLL_COMPLETION_H
#define COLL_COMPLETION_H

#include <stdio.h>

#include "command.h"

/* Of the command that prints them. */
extern const struct option_table completion_options;

/* The script for a shell, "bash" or "zsh", for argument_program. False: unknown shell. */
bool completion_print(const char *shell, const struct command *commands, FILE *to);

#endif
