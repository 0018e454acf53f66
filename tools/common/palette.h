/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The palette of all pictures, made from tools/common/palette; that of pages is in node/report/html.h. */
#ifndef COLL_PALETTE_H
#define COLL_PALETTE_H

/* Variables paper, ink, series1, ...; line types 1 to 8 are the series, the palette is heat. */
extern const char palette_gp[];

#endif
