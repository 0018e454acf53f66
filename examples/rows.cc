// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
// C++: errors become exceptions, and contexts and groups free themselves. The ranks form a
// grid of two rows; each row has a group of its own.
#include <coll.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

static void check(int error, const coll_group *group)
{
	if (error)
		throw std::runtime_error(coll_last_error(group));
}

struct Close {
	void operator()(coll_context *context) const { coll_close(context); }
	void operator()(coll_group *group) const { coll_group_free(group); }
};
using Context = std::unique_ptr<coll_context, Close>;
using Group = std::unique_ptr<coll_group, Close>;

static Context open()
{
	coll_context *context;

	if (coll_open("deadline=10s", &context))
		throw std::runtime_error(coll_context_error(nullptr));
	return Context(context);
}

// The ranks of this one's row, from left to right.
static Group row_of(coll_group *world)
{
	const int columns = (coll_ranks(world) + 1) / 2, row = coll_rank(world) / columns;
	std::vector<int> ranks;
	coll_group *group;

	for (int rank = row * columns; rank < (row + 1) * columns && rank < coll_ranks(world); rank++)
		ranks.push_back(rank);
	check(coll_group_from_ranks(world, ranks.data(), static_cast<int>(ranks.size()), &group),
	      world);
	return Group(group);
}

int main()
try {
	Context context = open();
	coll_group *world = coll_world(context.get());
	Group row = row_of(world);
	std::vector<float> values(3, coll_rank(world) + 1.0f);

	check(coll_allreduce(COLL_IN_PLACE, values.data(), values.size(), COLL_FLOAT, COLL_SUM,
			     row.get()), row.get());
	std::printf("rank %d: sum of its row %g\n", coll_rank(world), values[0]);
} catch (const std::exception &error) {
	std::fprintf(stderr, "%s\n", error.what());
	return 1;
}
