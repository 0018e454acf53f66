/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * MPI's functions that the shim calls, as lists: FUNCTION(name) for each. The
 * collectives come in three forms, under MPI 4 each twice (int and MPI_Count).
 */
#ifndef COLLMPI_FUNCTIONS_H
#define COLLMPI_FUNCTIONS_H

/* Those that move data have counts. */
#define EACH_DATA_COLLECTIVE(FORMS)                                                  \
	FORMS(Bcast, bcast) FORMS(Gather, gather) FORMS(Gatherv, gatherv)            \
	FORMS(Scatter, scatter) FORMS(Scatterv, scatterv)                            \
	FORMS(Allgather, allgather) FORMS(Allgatherv, allgatherv)                    \
	FORMS(Alltoall, alltoall) FORMS(Alltoallv, alltoallv)                        \
	FORMS(Alltoallw, alltoallw) FORMS(Reduce, reduce) FORMS(Allreduce, allreduce) \
	FORMS(Reduce_scatter, reduce_scatter)                                        \
	FORMS(Reduce_scatter_block, reduce_scatter_block)                            \
	FORMS(Scan, scan) FORMS(Exscan, exscan)

#define EACH_COLLECTIVE(FORMS) FORMS(Barrier, barrier) EACH_DATA_COLLECTIVE(FORMS)

#define EACH_FUNCTION(FUNCTION)                                                                  \
	FUNCTION(Init) FUNCTION(Init_thread) FUNCTION(Finalize) FUNCTION(Query_thread)           \
	FUNCTION(Get_library_version) FUNCTION(Abort)                                            \
	FUNCTION(Comm_rank) FUNCTION(Comm_size) FUNCTION(Comm_group) FUNCTION(Comm_free)         \
	FUNCTION(Comm_test_inter) FUNCTION(Comm_remote_group) FUNCTION(Comm_create_keyval)       \
	FUNCTION(Comm_free_keyval)                                                               \
	FUNCTION(Comm_set_attr) FUNCTION(Comm_get_attr) FUNCTION(Comm_delete_attr)               \
	FUNCTION(Comm_call_errhandler) FUNCTION(Comm_set_errhandler)                             \
	FUNCTION(Comm_dup) FUNCTION(Comm_dup_with_info)                                          \
	FUNCTION(Comm_create) FUNCTION(Comm_create_group) FUNCTION(Comm_split)                   \
	FUNCTION(Comm_split_type) FUNCTION(Cart_create) FUNCTION(Cart_sub)                       \
	FUNCTION(Graph_create) FUNCTION(Dist_graph_create)                                       \
	FUNCTION(Dist_graph_create_adjacent) FUNCTION(Intercomm_merge) FUNCTION(Intercomm_create) \
	FUNCTION(Comm_spawn) FUNCTION(Comm_spawn_multiple) FUNCTION(Comm_accept)                 \
	FUNCTION(Comm_connect) FUNCTION(Comm_disconnect)                                         \
	FUNCTION(Group_size) FUNCTION(Group_translate_ranks) FUNCTION(Group_free)                \
	FUNCTION(Type_size_x) FUNCTION(Type_get_extent_x) FUNCTION(Type_get_true_extent_x)       \
	FUNCTION(Type_get_envelope) FUNCTION(Type_get_contents) FUNCTION(Type_free)              \
	FUNCTION(Type_create_hindexed) FUNCTION(Type_commit)                                     \
	FUNCTION(Type_create_keyval) FUNCTION(Type_free_keyval) FUNCTION(Type_set_attr)          \
	FUNCTION(Type_get_attr) FUNCTION(Pack) FUNCTION(Unpack)                                  \
	FUNCTION(Op_commutative) FUNCTION(Op_free) FUNCTION(Reduce_local)                        \
	FUNCTION(Add_error_class) FUNCTION(Add_error_code) FUNCTION(Add_error_string)            \
	FUNCTION(Error_string)                                                                   \
	FUNCTION(Grequest_start) FUNCTION(Grequest_complete)                                     \
	FUNCTION(Status_set_elements) FUNCTION(Status_set_cancelled)                             \
	FUNCTION(Start) FUNCTION(Startall) FUNCTION(Request_free) FUNCTION(Request_get_status)   \
	FUNCTION(Cancel)                                                                         \
	FUNCTION(Wait) FUNCTION(Waitall) FUNCTION(Waitany) FUNCTION(Waitsome)                    \
	FUNCTION(Test) FUNCTION(Testall) FUNCTION(Testany) FUNCTION(Testsome)                    \
	FUNCTION(Send) FUNCTION(Ssend) FUNCTION(Rsend) FUNCTION(Recv) FUNCTION(Sendrecv)         \
	FUNCTION(Bsend) FUNCTION(Ibsend)                                                         \
	FUNCTION(Sendrecv_replace) FUNCTION(Isend) FUNCTION(Issend) FUNCTION(Irsend)             \
	FUNCTION(Irecv) FUNCTION(Probe) FUNCTION(Iprobe) FUNCTION(Mprobe) FUNCTION(Improbe)      \
	FUNCTION(Mrecv) FUNCTION(Imrecv) FUNCTION(Recv_init) FUNCTION(Pcontrol)                 \
	FUNCTION(Alloc_mem) FUNCTION(Free_mem)

/* Open MPI 5 has MPI 4's persistent collectives and sessions without being MPI 4. */
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAVE_MPI_4_NAMES 1
#else
#define HAVE_MPI_4_NAMES 0
#endif

/* Functions with large counts, MPI_Count. */
#define HAVE_LARGE (MPI_VERSION >= 4)

#if HAVE_LARGE
#define EACH_LARGE_FUNCTION(FUNCTION)                                                            \
	FUNCTION(Pack_c) FUNCTION(Unpack_c) FUNCTION(Type_get_envelope_c)                        \
	FUNCTION(Send_c) FUNCTION(Ssend_c) FUNCTION(Rsend_c) FUNCTION(Recv_c)                    \
	FUNCTION(Sendrecv_c) FUNCTION(Sendrecv_replace_c) FUNCTION(Mrecv_c) FUNCTION(Imrecv_c)   \
	FUNCTION(Bsend_c) FUNCTION(Ibsend_c)                                                     \
	FUNCTION(Isend_c) FUNCTION(Issend_c) FUNCTION(Irsend_c) FUNCTION(Irecv_c)
#else
#define EACH_LARGE_FUNCTION(FUNCTION)
#endif

#if HAVE_MPI_4_NAMES
#define EACH_LATE_FUNCTION(FUNCTION) FUNCTION(Comm_create_from_group)
#else
#define EACH_LATE_FUNCTION(FUNCTION)
#endif

#endif
