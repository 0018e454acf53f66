/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The picture of a node's noise, by gnuplot: timeline, histogram, causes, spectrum. */
#ifndef COLL_NOISE_PLOT_H
#define COLL_NOISE_PLOT_H

#include "view.h"

/*
 * Has gnuplot draw what `writer` writes for it into a file. Errors are reported on stderr.
 * 0 or -errno, also the writer's.
 */
typedef int noise_plot_writer(const void *data, FILE *to);
int noise_plot_draw(const char *command, noise_plot_writer *writer, const void *data,
		    const char *path);

/* Writes a file; errors are reported on stderr. 0 or -errno. */
int noise_plot_svg(const char *command, const struct noise_view *view, const char *path);

#endif
