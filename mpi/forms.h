/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The collectives that move data: parameters, arguments, and what becomes of them
 * in a struct call. Included twice, for int and for large counts; no guard.
 */
FORMS(Bcast, bcast, (void *data, COUNT count, MPI_Datatype type, int root),
      (data, count, type, root),
      .out = data, .out_count = count, .out_type = type, .root = root)

FORMS(Gather, gather,
      (const void *in, COUNT in_count, MPI_Datatype in_type, void *out, COUNT out_count,
		MPI_Datatype out_type, int root),
      (in, in_count, in_type, out, out_count, out_type, root),
      .in = in, .in_count = in_count, .in_type = in_type, .out = out, .out_count = out_count,
      .out_type = out_type, .root = root)

FORMS(Gatherv, gatherv,
      (const void *in, COUNT in_count, MPI_Datatype in_type, void *out,
		const COUNT counts[], const DISPL displs[], MPI_Datatype out_type, int root),
      (in, in_count, in_type, out, counts, displs, out_type, root),
      .in = in, .in_count = in_count, .in_type = in_type, .out = out, .out_counts = counts,
      .out_displs = displs, .out_type = out_type, .root = root)

FORMS(Scatter, scatter,
      (const void *in, COUNT in_count, MPI_Datatype in_type, void *out, COUNT out_count,
		MPI_Datatype out_type, int root),
      (in, in_count, in_type, out, out_count, out_type, root),
      .in = in, .in_count = in_count, .in_type = in_type, .out = out, .out_count = out_count,
      .out_type = out_type, .root = root)

FORMS(Scatterv, scatterv,
      (const void *in, const COUNT counts[], const DISPL displs[], MPI_Datatype in_type,
		void *out, COUNT out_count, MPI_Datatype out_type, int root),
      (in, counts, displs, in_type, out, out_count, out_type, root),
      .in = in, .in_counts = counts, .in_displs = displs, .in_type = in_type, .out = out,
      .out_count = out_count, .out_type = out_type, .root = root)

FORMS(Allgather, allgather,
      (const void *in, COUNT in_count, MPI_Datatype in_type, void *out, COUNT out_count,
		MPI_Datatype out_type),
      (in, in_count, in_type, out, out_count, out_type),
      .in = in, .in_count = in_count, .in_type = in_type, .out = out, .out_count = out_count,
      .out_type = out_type)

FORMS(Allgatherv, allgatherv,
      (const void *in, COUNT in_count, MPI_Datatype in_type, void *out,
		const COUNT counts[], const DISPL displs[], MPI_Datatype out_type),
      (in, in_count, in_type, out, counts, displs, out_type),
      .in = in, .in_count = in_count, .in_type = in_type, .out = out, .out_counts = counts,
      .out_displs = displs, .out_type = out_type)

FORMS(Alltoall, alltoall,
      (const void *in, COUNT in_count, MPI_Datatype in_type, void *out, COUNT out_count,
		MPI_Datatype out_type),
      (in, in_count, in_type, out, out_count, out_type),
      .in = in, .in_count = in_count, .in_type = in_type, .out = out, .out_count = out_count,
      .out_type = out_type)

FORMS(Alltoallv, alltoallv,
      (const void *in, const COUNT in_counts[], const DISPL in_displs[],
		MPI_Datatype in_type, void *out, const COUNT out_counts[],
		const DISPL out_displs[], MPI_Datatype out_type),
      (in, in_counts, in_displs, in_type, out, out_counts, out_displs, out_type),
      .in = in, .in_counts = in_counts, .in_displs = in_displs, .in_type = in_type, .out = out,
      .out_counts = out_counts, .out_displs = out_displs, .out_type = out_type)

FORMS(Alltoallw, alltoallw,
      (const void *in, const COUNT in_counts[], const DISPL in_displs[],
		const MPI_Datatype in_types[], void *out, const COUNT out_counts[],
		const DISPL out_displs[], const MPI_Datatype out_types[]),
      (in, in_counts, in_displs, in_types, out, out_counts, out_displs, out_types),
      .in = in, .in_counts = in_counts, .in_displs = in_displs, .in_types = in_types, .out = out,
      .out_counts = out_counts, .out_displs = out_displs, .out_types = out_types)

FORMS(Reduce, reduce,
      (const void *in, void *out, COUNT count, MPI_Datatype type, MPI_Op op, int root),
      (in, out, count, type, op, root),
      .in = in, .out = out, .out_count = count, .out_type = type, .op = op, .root = root)

FORMS(Allreduce, allreduce,
      (const void *in, void *out, COUNT count, MPI_Datatype type, MPI_Op op),
      (in, out, count, type, op),
      .in = in, .out = out, .out_count = count, .out_type = type, .op = op)

FORMS(Reduce_scatter, reduce_scatter,
      (const void *in, void *out, const COUNT counts[], MPI_Datatype type, MPI_Op op),
      (in, out, counts, type, op),
      .in = in, .out = out, .out_counts = counts, .out_type = type, .op = op)

FORMS(Reduce_scatter_block, reduce_scatter_block,
      (const void *in, void *out, COUNT count, MPI_Datatype type, MPI_Op op),
      (in, out, count, type, op),
      .in = in, .out = out, .out_count = count, .out_type = type, .op = op)

FORMS(Scan, scan,
      (const void *in, void *out, COUNT count, MPI_Datatype type, MPI_Op op),
      (in, out, count, type, op),
      .in = in, .out = out, .out_count = count, .out_type = type, .op = op)

FORMS(Exscan, exscan,
      (const void *in, void *out, COUNT count, MPI_Datatype type, MPI_Op op),
      (in, out, count, type, op),
      .in = in, .out = out, .out_count = count, .out_type = type, .op = op)
