/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Random numbers that are a function of their names: the k-th number of stream s is the same
 * in any order of calls.
 */
#ifndef COLL_SIM_RANDOM_H
#define COLL_SIM_RANDOM_H

#include "core/port.h"

/* splitmix64's finish (Steele, Lea, Flood 2014): a permutation. */
static inline u64 random_mix(u64 z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Number `index` of this stream; it is also the name of a stream. */
static inline u64 random_at(u64 stream, u64 index)
{
	return random_mix(stream + (index + 1) * 0x9e3779b97f4a7c15ull);
}

/* From 0 to below `limit`. */
static inline u64 random_below(u64 number, u64 limit)
{
	return (u64)((unsigned __int128)number * limit >> 64);
}

/* In (0, 1]. */
static inline double random_unit(u64 number)
{
	return ((number >> 11) + 1) * 0x1p-53;
}

#endif
