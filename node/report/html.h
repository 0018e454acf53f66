/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Parts of a page. What it says in numbers it says in <data> elements that carry the value and its
 * place in the JSON, so that a test can compare both. All of it is well-formed XML.
 */
#ifndef COLL_NODE_HTML_H
#define COLL_NODE_HTML_H

#include <stdio.h>

#include "core/port.h"

/* The style that all pages have, of page.css; and its colours, of tools/common/palette. */
extern const char page_css[], palette_css[];

/* Any text; what has a meaning in a page is escaped. */
void node_html_text(const char *text, FILE *to);

/* `place` is jq's, such as ".all.share". The value as such, a time (ns), a share (%), a count. */
void node_html_number(const char *place, double value, FILE *to);
void node_html_time(const char *place, double ns, FILE *to);
void node_html_share(const char *place, double share, FILE *to);
void node_html_count(const char *place, u64 count, FILE *to);

/* "2.5 µs", "12 %", "12,345": what the above show. They return `text`. */
char *node_html_time_text(double ns, char text[32]);
char *node_html_share_text(double share, char text[32]);
char *node_html_count_text(u64 count, char text[32]);

#endif
