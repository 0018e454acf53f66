#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# What programs are linked with: the header in C99 and C++, the symbols, the soname.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/use.c" <<'END'
#include <coll.h>
int main(void)
{
	struct coll_context *context;
	int one = 1, sum = 0, error = coll_open(0, &context);

	if (!error)
		error = coll_allreduce(&one, &sum, 1, COLL_INT32, COLL_SUM, coll_world(context));
	coll_close(error ? 0 : context);
	return error || sum != 1;
}
END
cp "$work/use.c" "$work/use.cc"
strict="-pedantic -Wall -Wextra -Werror -Ilibcoll -Iuapi"

gcc -std=c99 $strict -c "$work/use.c" -o "$work/use.o" >"$work/out" 2>&1
result $? "coll.h is C99"
g++ -std=c++11 $strict -c "$work/use.cc" -o "$work/use++.o" >"$work/out" 2>&1
result $? "coll.h is C++11"

# A sanitized library wants its runtime first: then the plain program cannot load it.
for object in use use++; do
	{ g++ "$work/$object.o" -L"$BUILD" -lcoll ${SANITIZE:+-fsanitize=$SANITIZE} \
		-o "$work/$object" && env -u COLL_STORE LD_LIBRARY_PATH="$BUILD" "$work/$object"
	} >"$work/out" 2>&1
	result $? "a program links with libcoll.so and runs ($object)"
done

gcc -E -P -Ilibcoll -Iuapi "$work/use.c" | tr ';' '\n' | sed '/int main/,$d' |
	grep -v typedef | grep -o '\bcoll_[a-z0-9_]*(' | tr -d '(' | sort -u >"$work/declared"
nm -D --defined-only "$BUILD/libcoll.so" | awk '$2 != "A" { sub("@.*", "", $3); print $3 }' |
	sort -u >"$work/exported"
{ [ "$(wc -l <"$work/declared")" -gt 60 ] && diff "$work/declared" "$work/exported"; } \
	>"$work/out" 2>&1
result $? "libcoll.so exports exactly what coll.h declares"

readelf -d "$BUILD/libcoll.so" >"$work/out" 2>&1 && grep -q 'SONAME.*\[libcoll\.so\.0\]' "$work/out"
result $? "the soname is libcoll.so.0"

tap_end
