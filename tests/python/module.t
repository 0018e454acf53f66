#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# import coll: every collective, what is refused, failures, waits, threads, modes of progress.
. "${0%/*}/../lib/tap.sh"
here=${0%/*}
python=${PYTHON:-/usr/bin/python3}
PYTHONPATH=$(realpath "$BUILD")/python
PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH PYTHONDONTWRITEBYTECODE
unset COLL_RANK COLL_CONFIG

if [ ! -e "$PYTHONPATH/coll/_coll.abi3.so" ] || ! "$python" -c 'import numpy' 2>/dev/null; then
	echo "1..0 # SKIP python3-dev or python3-numpy is not installed; make deps does it"
	exit
fi

ranks() {	# RANKS PROGRAM [ARGUMENT...]
	count=$1
	shift
	quiet timeout 120 "$COLL" run --keep-going -n "$count" -- "$python" -W error::DeprecationWarning \
		"$here/$@"
}

ok "every collective, 1 rank" ranks 1 every_collective.py
ok "every collective, 3 ranks" ranks 3 every_collective.py
ok "every collective, epoll and a progress thread" env COLL_ENGINE=epoll COLL_PROGRESS=thread \
	"$COLL" run -n 3 -- "$python" "$here/every_collective.py"
ok "messages, 1 rank" ranks 1 messages.py
ok "messages, 3 ranks" ranks 3 messages.py
ok "messages, a progress thread" env COLL_PROGRESS=thread "$COLL" run -n 2 -- "$python" "$here/messages.py"
ok "what is refused" ranks 2 arguments.py
ok "without NumPy" ranks 3 without_numpy.py
for case in dies stops mismatch "revoked reduction_raises" \
	"reduction_of_another_group reduction_of_a_closed_group"; do
	# shellcheck disable=SC2086
	ok "failures: $case" ranks 4 failures.py $case
done

# A helper's runs have the same order in all groups: none is left behind.
all="interrupt handler gil buffers_live several"
while read -r option cases; do
	# shellcheck disable=SC2086
	ok "waiting: $option: $cases" ranks 3 waiting.py $option $cases
done <<END
engine=uring $all other_thread forked growth
progress=thread $all threads
progress=helper interrupt several
progress=auto interrupt gil several
threads=any threads cancelled_meanwhile
END
tap_end
