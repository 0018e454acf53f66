# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# A text file as a C string: awk -v name=page_script -f embed.awk page.js
BEGIN { print "/* Made by tools/common/embed.awk. */\nextern const char " name "[];\nconst char " name "[] =" }
{
	gsub(/\\/, "\\\\&")
	gsub(/"/, "\\\"")
	print "\t\"" $0 "\\n\""
}
END { print "\t\"\";" }
