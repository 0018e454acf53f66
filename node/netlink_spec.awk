# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Reads uapi/coll_noise.h, coll_circuit.h and coll_netlink.h, writes uapi/coll.yaml: what YNL tools
# know of the family. Types and attributes of commands are taken from the headers' comments:
#	COLL_WATCH_A_TASK,	/* u32: ... */
#	COLL_CMD_WATCH_LOG,	/* dump: -> WATCH_CPU WATCH_EVENTS: ... */

function words(name) {		# COLL_A_NAME -> a-name
	sub(/^COLL_/, "", name)
	gsub(/_/, "-", name)
	return tolower(name)
}

function comment(line) {
	if (!match(line, /\/\* .* \*\//))
		return ""
	return substr(line, RSTART + 3, RLENGTH - 6)
}

function quoted(text) {
	gsub(/\\/, "\\\\", text)
	gsub(/"/, "\\\"", text)
	return "\"" text "\""
}

# The attributes that a text names, as [ a, b ]; "" if none.
function named(text, set,	list, found, i, count) {
	if (text ~ toupper(set) "_\\*") {
		for (i = 1; i <= members[set]; i++)
			if (member[set, i] != "pad")
				list = list ", " member[set, i]
		return substr(list, 3)
	}
	count = split(text, found, /[^A-Z_]+/)
	for (i = 1; i <= count; i++)
		if (sub("^" toupper(set) "_", "", found[i]))
			list = list ", " tolower(found[i])
	return substr(list, 3)
}

function part(name, text, set,	list) {
	list = named(text, set)
	if (list == "")
		return ""
	return sprintf("        %s:\n          attributes: [ %s ]\n", name, list)
}

# ---- what is read ------------------------------------------------------------

/^enum coll_[a-z_]+ \{/ {
	enum = substr($2, 6)
	next
}
/^\};/ {
	enum = ""
}
enum == "" || $1 !~ /^COLL_/ {
	next
}
{
	name = $1
	sub(/,$/, "", name)
	text = comment($0)
}
enum ~ /_attr$/ {
	set = substr(enum, 1, length(enum) - 5)
	name = words(substr(name, length("COLL_" set "_A_") + 1))
	if (name == "unspec")
		next
	if (!members[set]++)
		sets[++set_count] = set
	member[set, members[set]] = name
	about[set, members[set]] = text
	next
}
enum == "command" {
	command[++commands] = words(substr(name, length("COLL_CMD_") + 1))
	command_about[commands] = text
	next
}
{
	if (name ~ /S$/ && text == "" && toupper("COLL_" enum "S") == name)
		next		# how many there are
	entries[enum] = entries[enum] ", " words(name)
}

# ---- what is written -----------------------------------------------------------

function write_enums(	enum, i, j, seen) {
	print "definitions:"
	for (i = 1; i <= set_count; i++)
		for (j = 1; j <= members[sets[i]]; j++) {
			enum = enum_of(about[sets[i], j])
			if (enum == "" || seen[enum]++)
				continue
			printf "  -\n    name: %s\n    type: enum\n    entries: [ %s ]\n",
				words("COLL_" enum), substr(entries[enum], 3)
		}
}

function enum_of(text) {
	return match(text, /enum coll_[a-z_]+/) ? substr(text, RSTART + 10, RLENGTH - 10) : ""
}

function type_of(set, number) {
	if (member[set, number] == "pad")
		return "pad"
	if (!match(about[set, number], /^(u8|u16|u32|u64|s64|string|binary|nest|flag)/))
		return "unused"
	return substr(about[set, number], 1, RLENGTH)
}

function write_set(set,		i, type) {
	printf "  -\n    name: %s\n    name-prefix: coll-%s-a-\n    attributes:\n", set, set
	for (i = 1; i <= members[set]; i++) {
		type = type_of(set, i)
		printf "      -\n        name: %s\n        type: %s\n", member[set, i], type
		if (type == "nest")
			printf "        nested-attributes: %s\n", set
		if (enum_of(about[set, i]) != "")
			printf "        enum: %s\n", words("COLL_" enum_of(about[set, i]))
		if (about[set, i] != "")
			printf "        doc: %s\n", quoted(about[set, i])
	}
}

function write_command(number,	name, set, text, kind, sides) {
	name = command[number]
	text = command_about[number]
	set = name
	sub(/-.*/, "", set)
	printf "    -\n      name: %s\n      doc: %s\n      attribute-set: %s\n", name, quoted(text), set
	if (text ~ /^multicast:/) {
		printf "      mcgrp: events\n      event:\n        attributes: [ %s ]\n", named(text, set)
		return
	}
	kind = text ~ /^dump:/ ? "dump" : "do"
	if (!index(text, "->"))
		text = text " -> "
	split(text, sides, "->")
	sides[1] = part("request", sides[1], set)
	sides[2] = part("reply", sides[2], set)
	printf "      flags: [ %s ]\n", set == "circuit" ? "uns-admin-perm" : "admin-perm"
	if (sides[1] sides[2] == "")
		printf "      %s: {}\n", kind
	else
		printf "      %s:\n%s%s", kind, sides[1], sides[2]
}

END {
	print "# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause"
	print "# Made from coll_netlink.h, whose comments are the documentation: make spec"
	print "---"
	print "name: coll"
	print "protocol: genetlink"
	print "uapi-header: coll_netlink.h"
	print "doc: The kernel module coll.ko. Noise is injected, attributed and kept away."
	print ""
	write_enums()
	print ""
	print "attribute-sets:"
	for (i = 1; i <= set_count; i++)
		write_set(sets[i])
	print ""
	print "operations:"
	print "  name-prefix: coll-cmd-"
	print "  list:"
	for (i = 1; i <= commands; i++)
		write_command(i)
	print ""
	print "mcast-groups:"
	print "  list:"
	print "    -"
	print "      name: events"
}
