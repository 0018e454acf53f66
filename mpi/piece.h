/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Pieces of a stage: the caller's data where it cannot go as it lies, and the buffer that
 * stands for it.
 */
#ifndef COLLMPI_PIECE_H
#define COLLMPI_PIECE_H

#include "shim.h"

/* Bits: libcoll reads the data, writes it. */
enum use { USE_IN = 1, USE_OUT = 2 };

/*
 * Where the elements are, for MPI_Pack. MPICH's refuses MPI_BOTTOM as no address: from there they are seen from
 * another one, by a type of its own. Returns the MPI's code; is to be closed also after an error.
 */
struct pack_view {
	uint8_t *at;
	MPI_Datatype type;
	bool made;
};
int pack_view_open(struct pack_view *view, uint8_t *user, MPI_Datatype type);
void pack_view_close(struct pack_view *view);

/*
 * Where `count` elements lie as contiguous bytes: in the caller's buffer if the type is
 * dense, else in a packed one. -ENOMEM.
 */
int piece_row(struct stage *stage, const void *user, MPI_Count count, MPI_Datatype type,
	      enum use use, void **packed);

/* The same for operands of a reduction, which keep the gaps of their type. */
int piece_elements(struct stage *stage, const void *user, MPI_Count count, MPI_Datatype type,
		   enum use use, void **packed);

/* Capacity for `more` pieces besides those there are. */
bool pieces_reserve(struct stage *stage, uint32_t more);

/* A buffer of the stage's, zeroed; at most two. NULL: no memory. */
uint8_t *piece_buffer(struct stage *stage, size_t bytes);

/* Reserved before. */
void piece_add(struct stage *stage, const void *user, MPI_Count count, MPI_Datatype type,
	       const struct type *info, uint8_t *packed, enum use use);

#endif
