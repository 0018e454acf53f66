# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Reads uapi/coll_netlink.h, writes the names of its attributes as C:
# static const char *const noise_attributes[] = { [1] = "id", ...
BEGIN {
	print "/* Made from uapi/coll_netlink.h. */"
}
/^enum coll_[a-z]+_attr \{/ {
	part = $2
	sub(/^coll_/, "", part)
	sub(/_attr$/, "", part)
	number = 0
	printf "static const char *const %s_attributes[] = {\n", part
	next
}
part != "" && /^\};/ {
	print "};"
	part = ""
}
part != "" && match($0, "COLL_" toupper(part) "_A_[A-Z_]+") && $1 !~ /^(\/|\*|__)/ {
	name = substr($0, RSTART, RLENGTH)
	sub("^COLL_" toupper(part) "_A_", "", name)
	printf "\t[%d] = \"%s\",\n", number++, tolower(name)
}
