// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shared_arena.h"
#include "regions.h"

static void region_unmap(struct coll_region *region)
{
	if (region->base)
		munmap((void *)region->base, region->bytes);
	region->base = NULL;
}

static void region_map(struct coll_region *region, int fd)
{
	const uint64_t bytes = coll_file_sealed(fd, COLL_FILE_SEALS);
	void *base = bytes && !(bytes % sysconf(_SC_PAGESIZE)) && coll_file_is_whole(fd, bytes) ?
			     mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

	if (base == MAP_FAILED)
		return;
	madvise(base, bytes, MADV_DONTFORK);
	madvise(base, bytes, MADV_DONTDUMP);	/* it is another's */
	*region = (struct coll_region){ base, bytes };
}

static void region_announced(struct coll_regions *regions, int fd)
{
	struct coll_region *region = &regions->mapped[++regions->told % COLL_REGIONS_KNOWN];

	region_unmap(region);
	if (fd >= 0)
		region_map(region, fd);
}

/* The first one is mapped. */
static void single_announced(struct coll_region *region, bool *told, int fd)
{
	if (fd >= 0 && !*told)
		region_map(region, fd);
	*told = true;
}

void coll_regions_hear(struct coll_regions *regions, const uint8_t *bytes, uint32_t count, int fd)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		const uint32_t dropped = bytes[i] - COLL_REGION_IS_DROPPED;

		if (bytes[i] == COLL_REGION_IS_ANNOUNCED)
			region_announced(regions, i == count - 1 ? fd : -1);
		else if (bytes[i] == COLL_REGION_IS_PUBLISHED)
			single_announced(&regions->area, &regions->area_told, i == count - 1 ? fd : -1);
		else if (bytes[i] == COLL_REGION_HAS_BOARDS)
			single_announced(&regions->boards, &regions->boards_told, i == count - 1 ? fd : -1);
		else if (dropped < COLL_REGIONS_KNOWN)
			region_unmap(&regions->mapped[dropped]);
	}
	if (fd >= 0)
		close(fd);
}

const uint8_t *coll_regions_find(const struct coll_regions *regions, uint64_t number,
				 uint64_t offset, uint64_t bytes)
{
	const uint32_t index = number % COLL_REGIONS_KNOWN;
	const uint64_t all = regions->mapped[index].bytes;

	if (number > regions->told || regions->told - number >= COLL_REGIONS_KNOWN ||
	    !regions->mapped[index].base || offset > all || bytes > all - offset)
		return NULL;
	return regions->mapped[index].base + offset;
}

void coll_regions_end(struct coll_regions *regions)
{
	uint32_t i;

	for (i = 0; i < COLL_REGIONS_KNOWN; i++)
		region_unmap(&regions->mapped[i]);
	region_unmap(&regions->area);
	region_unmap(&regions->boards);
}
