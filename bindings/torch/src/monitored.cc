// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The words of its errors are those of torch's own, which programs and torch's tests look for. */
#include "monitored.h"

#include <algorithm>
#include <string>
#include <vector>

#include "work.h"

namespace coll_torch {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

static const std::string passed = "passed";

static std::string key_of(uint64_t sequence, const std::string &what)
{
	return "coll-monitored/" + std::to_string(sequence) + "/" + what;
}

static void put(const Monitored &barrier, const std::string &what, const std::string &value)
{
	barrier.store.set(key_of(barrier.sequence, what),
			  std::vector<uint8_t>(value.begin(), value.end()));
}

/* A store has no other way to say that the time is over than to throw; 0 is no time limit to it. */
static bool comes(const Monitored &barrier, const std::string &what, Clock::time_point until)
{
	const std::string key = key_of(barrier.sequence, what);
	const auto began = Clock::now();
	const auto left = std::chrono::duration_cast<milliseconds>(until - began);

	if (left < milliseconds(1))
		return barrier.store.check({ key });
	try {
		barrier.store.wait({ key }, left);
		return true;
	} catch (const std::exception &) {
		if (Clock::now() < began + left)
			throw;		/* the store is at fault, not the rank */
		return false;
	}
}

/* What earlier barriers left in the store, which not all stores can forget. */
static void forget(const Monitored &barrier)
{
	try {
		for (int rank = 1; rank < barrier.ranks; rank++)
			barrier.store.deleteKey(key_of(barrier.sequence, std::to_string(rank)));
		if (barrier.sequence)
			barrier.store.deleteKey(key_of(barrier.sequence - 1, "end"));
	} catch (const std::exception &) {
	}
}

static std::string time_of(const Monitored &barrier)
{
	return std::to_string(barrier.timeout.count()) + " ms";
}

static std::vector<std::string> missing_ranks(const Monitored &barrier)
{
	const auto until = Clock::now() + barrier.timeout;
	std::vector<std::string> missing;

	for (int rank = 1; rank < barrier.ranks; rank++) {
		const std::string name = std::to_string(rank);

		if (comes(barrier, name, until))
			continue;
		missing.push_back(name);
		if (!barrier.every)
			break;
	}
	return missing;
}

static std::string verdict_of(const Monitored &barrier)
{
	const std::vector<std::string> missing = missing_ranks(barrier);
	std::string text;

	if (missing.empty())
		return passed;
	for (const std::string &rank : missing)
		text += (text.empty() ? "" : ", ") + rank;
	text = (barrier.every ? "Ranks " : "Rank ") + text + " failed to pass monitoredBarrier in " +
	       time_of(barrier);
	if (barrier.timeout.count() <= 0)
		text = "Rank 0 timed out in monitoredBarrier after " + time_of(barrier) + ": " + text;
	return text;
}

static void judge(const Monitored &barrier)
{
	const std::string verdict = verdict_of(barrier);

	put(barrier, "end", verdict);
	if (verdict != passed)
		std::rethrow_exception(failure_of("coll: monitored_barrier: " + verdict));
	forget(barrier);
}

static std::string answer_of(const Monitored &barrier)
{
	if (!comes(barrier, "end", Clock::now() + 2 * barrier.timeout))
		return "rank 0 said nothing in " + std::to_string(2 * barrier.timeout.count()) + " ms";
	const std::vector<uint8_t> value = barrier.store.get(key_of(barrier.sequence, "end"));

	return std::string(value.begin(), value.end());
}

static void arrive(const Monitored &barrier)
{
	put(barrier, std::to_string(barrier.rank), "");
	const std::string answer = answer_of(barrier);

	if (answer != passed)
		std::rethrow_exception(failure_of(
			"coll: monitored_barrier: Rank " + std::to_string(barrier.rank) +
			" successfully reached monitoredBarrier, but received errors while waiting for "
			"send/recv from rank 0: " + answer));
}

void monitored_barrier(const Monitored &barrier)
{
	if (barrier.rank)
		arrive(barrier);
	else
		judge(barrier);
}

} // namespace coll_torch
