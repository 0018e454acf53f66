# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# `make help`: targets with their comment, "target: ... ## what it does", of all makefiles.
BEGIN {
	print "make [TARGET] [VARIABLE=VALUE]..."
}
/^[a-z][a-z-]*:/ {
	target = $1
	sub(/:.*/, "", target)
}
target != "" && /##/ {
	text = $0
	sub(/.*##[ \t]*/, "", text)
	printf "  %-20s %s\n", target, text
}
!/\\$/ {
	target = ""
}
END {
	print "Variables:"
	printf "  %-20s %s\n", "V=1", "show the whole commands"
	printf "  %-20s %s\n", "O=DIR", "build there instead of in build/; as does make -f PATH/Makefile"
	printf "  %-20s %s\n", "DEBUG=1", "check the expensive invariants too, in a tree of its own"
	printf "  %-20s %s\n", "SANITIZE=KIND", "address,undefined or thread, in a tree of its own"
	printf "  %-20s %s\n", "CFLAGS=, LDFLAGS=", "instead of -O2 -g; changed flags compile all anew"
}
