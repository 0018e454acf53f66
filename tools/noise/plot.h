/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The picture of a node's noise, by gnuplot: timeline, histogram, causes, spectrum. */
#ifndef COLL_NOISE_PLOT_H
#define COLL_NOISE_PLOT_H

#include "view.h"

/* Writes a file; errors are reported on stderr. 0 or -errno. */
int noise_plot_svg(const char *command, const struct noise_view *view, const char *path);
/* The same as a self-contained HTML page, with the figures as tables. */
int noise_plot_html(const char *command, const struct noise_view *view, const char *path);

#endif
