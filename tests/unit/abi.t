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

# A user's types and reductions are enums, opaque types and numbers of its own included.
cat >"$work/enums.c" <<'END'
#include <coll.h>
#if !COLL_VERSION_AT_LEAST(0, 1) || COLL_VERSION_AT_LEAST(1000, 0)
#error COLL_VERSION_AT_LEAST
#endif
static void first(void *out, const void *left, const void *right, size_t count,
		  enum coll_type type, void *argument)
{
	*(char *)out = *(const char *)left;
	(void)right, (void)count, (void)type, (void)argument;
}
int main(void)
{
	char in[3] = "ab", out[3];
	struct coll_context *context = 0;
	enum coll_type type = COLL_OPAQUE(sizeof(in));
	enum coll_reduction op = COLL_SUM;
	int error = coll_version_number() != COLL_VERSION;

	if (error || coll_open(0, &context))
		return 1;
	error = coll_op_create(context, first, 0, 0, &op);
	if (!error)
		error = coll_allreduce(in, out, 1, type, op, coll_world(context));
	coll_close(context);
	return error;
}
END
cp "$work/enums.c" "$work/enums.cc"
gcc -std=c99 $strict -c "$work/enums.c" -o "$work/enums.o" >"$work/out" 2>&1
result $? "types and reductions are enums in C99"
g++ -std=c++11 $strict -c "$work/enums.cc" -o "$work/enums++.o" >"$work/out" 2>&1
result $? "and in C++11"

# refused COMPILER EXTENSION TEXT: swapped arguments and lost results are noticed.
refused() {
	printf '#include <coll.h>\nint f(struct coll_group *g);\nint f(struct coll_group *g)\n{%s}\n' \
		"$3" >"$work/wrong.$2"
	! "$1" $strict -c "$work/wrong.$2" -o "$work/wrong.o" >"$work/out" 2>&1
}
swapped='int i = 1, o; return coll_allreduce(&i, &o, 1, COLL_SUM, COLL_INT32, g);'
lost='coll_barrier(g); return 0;'
refused gcc c "$swapped" && refused g++ cc "$swapped"
result $? "a compiler notices a type and a reduction that are swapped"
refused gcc c "$lost" && refused g++ cc "$lost"
result $? "a compiler notices a result that is ignored"

# A sanitized library wants its runtime first: then the plain program cannot load it.
for object in use use++ enums enums++; do
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

# Each name stands in the map, under one version.
sed -n 's/^\t\(coll_[a-z0-9_]*\);$/\1/p' libcoll/libcoll.map | sort >"$work/mapped"
{ diff "$work/declared" "$work/mapped" && ! grep -n 'coll_.*[*?[]' libcoll/libcoll.map; } \
	>"$work/out" 2>&1
result $? "libcoll.map lists each function of coll.h by its name"
nm -D --defined-only --with-symbol-versions "$BUILD/libcoll.so" |
	awk '$2 != "A" && $3 !~ /@@COLL_0\.1$/' >"$work/out" 2>&1
[ ! -s "$work/out" ]
result $? "each has the version COLL_0.1"

readelf -d "$BUILD/libcoll.so" >"$work/out" 2>&1 && grep -q 'SONAME.*\[libcoll\.so\.0\]' "$work/out"
result $? "the soname is libcoll.so.0"

tap_end
