#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# What is installed is enough to build and run the program of README.md.
. "$(dirname "$0")/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
there=$root/opt/coll
unset COLL_RANK COLL_CONFIG

# PREFIX is where it will be; DESTDIR comes before it while it is packed.
ok "make install" quiet make --no-print-directory install BUILD="$BUILD" \
	DESTDIR="$root" PREFIX=/opt/coll
for file in libexec/coll/coll-store bin/coll bin/collnoise sbin/colld lib/systemd/system/colld.service \
	lib/systemd/system/coll-job@.service sbin/coll-job lib/coll/slurm-prolog \
	lib/coll/slurm-epilog share/man/man8/coll-job.8 lib/libcoll.so lib/libcoll.so.0 lib/libcoll.a include/coll.h \
	include/coll_types.h lib/pkgconfig/libcoll.pc share/man/man7/coll.7 \
	share/man/man3/coll_ialltoallv.3 share/doc/coll/COPYING \
	share/bash-completion/completions/coll share/bash-completion/completions/collnoise \
	share/zsh/site-functions/_coll share/zsh/site-functions/_collnoise \
	lib/cmake/coll/coll-config.cmake lib/cmake/coll/coll-config-version.cmake; do
	ok "$file" test -e "$there/$file"
done

# Every link of the pages leads to a file beside them.
dead_links() {
	find "$there/share/doc/coll" -name '*.md' | while read -r page; do
		grep -Eo '\]\([^) ]+\)' "$page" | sed 's/^](//; s/)$//; s/#.*//' | grep -Ev '^([a-z]+:|$)' |
			while read -r link; do
				[ -e "${page%/*}/$link" ] || echo "$page: $link"
			done
	done
}
ok "README's pages are installed" test -e "$there/share/doc/coll/docs/guide/installing.md"
is "and their links lead to files that are" "$(dead_links)" ""

export PKG_CONFIG_PATH="$there/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"
export LD_LIBRARY_PATH="$there/lib"
flags=$(pkg-config --cflags --libs libcoll 2>&1)

is "pkg-config knows the version" "$(pkg-config --modversion libcoll 2>&1)" \
	"$(awk '/define COLL_VERSION_M/ { v = v dot $3; dot = "." } END { print v }' libcoll/coll.h)"

for program in coll collnoise; do
	is "$program, too" "$("$there/bin/$program" --version 2>&1)" "$program $(pkg-config --modversion libcoll 2>&1)"
done

awk '/^```c$/ { on = 1; next } /^```$/ && on { exit } on' README.md >"$work/sum.c"
ok "README's program compiles as C99" quiet ${CC:-gcc} -std=c99 -pedantic -Wall -Wextra -Werror \
	"$work/sum.c" -o "$work/sum" $flags
is "it runs under coll run, and all ranks have the sum" \
	"$("$there/bin/coll" run -n 3 --no-prefix -- "$work/sum" 2>&1 | sort)" \
	"rank 0 of 3: sum 6
rank 1 of 3: sum 6
rank 2 of 3: sum 6"
is "it runs alone" "$("$work/sum" 2>&1)" "rank 0 of 1: sum 1"

ok "it links statically" quiet ${CC:-gcc} "$work/sum.c" -o "$work/static" \
	-I"$there/include" "$there/lib/libcoll.a" -luring -lnettle -lm -lpthread
is "and runs so" "$(env -u LD_LIBRARY_PATH "$work/static" 2>&1)" "rank 0 of 1: sum 1"

printf '#include <coll.h>\nint main() { return !coll_version(); }\n' >"$work/version.cc"
ok "coll.h compiles and links as C++" quiet ${CXX:-g++} -std=c++11 -pedantic -Wall -Wextra -Werror \
	"$work/version.cc" -o "$work/version" $flags

# A project of CMake: both libraries, and versions.
cmake_project() {	# VERSION
	rm -rf "$work/cmake"
	cat >"$work/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.13)
project(sum C)
find_package(coll $1 REQUIRED)
add_executable(sum_shared sum.c)
target_link_libraries(sum_shared coll::coll)
add_executable(sum_static sum.c)
target_link_libraries(sum_static coll::static)
add_custom_target(two ALL COMMAND \${COLL_RUN} run -n 2 --no-prefix -- \$<TARGET_FILE:sum_shared> >two DEPENDS sum_shared)
END
	cmake -S "$work" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$there" && cmake --build "$work/cmake"
}
if command -v cmake >/dev/null; then
	ok "CMake finds it" quiet cmake_project "$(pkg-config --modversion libcoll)"
	is "a program that CMake links runs" "$(sort "$work/cmake/two")" "rank 0 of 2: sum 3
rank 1 of 2: sum 3"
	is "and one with the static library" \
		"$(env -u LD_LIBRARY_PATH "$work/cmake/sum_static" 2>&1)" "rank 0 of 1: sum 1"
	ok "CMake refuses another version" eval '! quiet cmake_project 99.1 >/dev/null'
else
	skip "CMake" "cmake is not installed"
fi

python=${PYTHON:-/usr/bin/python3}
site=$(echo "$there"/lib/python3*/dist-packages)
if [ -e "$site/coll/_coll.abi3.so" ]; then
	is "import coll" "$(PYTHONPATH=$site PYTHONDONTWRITEBYTECODE=1 "$python" -c 'import coll
with coll.open() as context: print(context.world)' 2>&1)" "<coll.Group: rank 0 of 1>"
else
	skip "import coll" "python3-dev is not installed"
fi

# What coll.h declares is what the library has, under a version.
sed -n 's/^[a-z][a-z_0-9 ]*[ *]\(coll_[a-z_]*\)(.*/\1/p' libcoll/coll.h |
	grep -v '^coll_function$' | sort >"$work/declared"
nm -D --defined-only "$there/lib/libcoll.so.0" | awk '$2 == "T" { print $3 }' |
	sed 's/@@COLL_[0-9.]*$//' | sort >"$work/exported"
ok "coll.h declares something" test "$(wc -l <"$work/declared")" -gt 80
ok "which the library has, and nothing else" quiet diff "$work/declared" "$work/exported"

# make uninstall removes what make install has put there, and nothing else.
echo mine >"$there/lib/mine"
ok "make uninstall" quiet make --no-print-directory uninstall BUILD="$BUILD" DESTDIR="$root" \
	PREFIX=/opt/coll
is "it leaves only what was there" "$(cd "$root" && find . ! -type d)" ./opt/coll/lib/mine
is "and the folders of that" "$(find "$there" -mindepth 1 -type d)" "$there/lib"
rm "$there/lib/mine"
ok "again" quiet make --no-print-directory install uninstall BUILD="$BUILD" DESTDIR="$root" PREFIX=/opt/coll
ok "nothing is left" test ! -e "$there"
ok "libraries elsewhere, as in Debian" quiet make --no-print-directory install BUILD="$BUILD" \
	DESTDIR="$root" PREFIX=/usr LIBDIR=/usr/lib/multiarch
is "pkg-config names that place" "$(PKG_CONFIG_PATH=$root/usr/lib/multiarch/pkgconfig PKG_CONFIG_SYSROOT_DIR= \
	pkg-config --variable=libdir libcoll)" /usr/lib/multiarch
is "CMake's files too" "$(grep -c '/\.\./\.\./\.\./\.\." ABSOLUTE' "$root/usr/lib/multiarch/cmake/coll/coll-config.cmake")" 1
ok "uninstall from there" quiet make --no-print-directory uninstall BUILD="$BUILD" \
	DESTDIR="$root" PREFIX=/usr LIBDIR=/usr/lib/multiarch
is "nothing is left there" "$(find "$root" ! -type d)" ""
tap_end
