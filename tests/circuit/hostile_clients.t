#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# colld's socket is open to every user. One user's silent connections take no CPU time and keep
# nobody else out, nor do those that ask without end; descriptors that it passes do not stop colld; the jobs of two users are two, whatever
# their names.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/colld.sh"
if [ "$(id -u)" != 0 ]; then
	echo "1..0 # SKIP only root can become several users"
	exit
fi
work=$(mktemp -d) || exit 1
chmod 711 "$work"
colld= holders=
finish() {
	exec 5>&-
	# shellcheck disable=SC2086
	kill $holders $colld 2>/dev/null
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM
socket=$work/socket
for program in silent_clients competing_jobs pass_descriptors ask_for_lists; do
	cp "$BUILD/tests/circuit/$program" "$work"
done
cp "$COLL" "$work"
chmod 755 "$work"/*

as() {	# USER COMMAND...
	user=$1
	shift
	setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
}
show_as() {	# USER: colld answers this user within five seconds
	as "$1" timeout 5 "$work/coll" circuit show --json --socket "$socket" >"$work/shown"
}
ticks() {	# CPU time of colld, in clock ticks
	echo $(($(cut -d ' ' -f 14,15 "/proc/$colld/stat" | tr ' ' '+')))
}
silent() {	# USER COUNT: connections that say nothing, until the test ends
	"$work/silent_clients" "$socket" "$1" "$2" 300 <"$work/held" >"$work/made.$1" &
	holders="$holders $!"
	soon 30 test -s "$work/made.$1"
}

cat >"$work/circuits" <<END
socket $socket
switch fake
node n0 1
node n1 2
END
mkfifo "$work/held"
exec 5<>"$work/held"
# Few descriptors: the connections of one user alone would take all of them.
colld_descriptors=1024
ok "colld starts" start_colld

ok "a user opens 1100 silent connections" silent 64001 1100
before=$(ticks)
sleep 2
ok "... colld sleeps meanwhile" test $(($(ticks) - before)) -le $((2 * $(getconf CLK_TCK) / 5))
ok "... colld answers root" show_as 0
ok "... and another user" show_as 64002
ok "... and the same user" show_as 64001
ok "a second user opens as many" silent 64003 1100
ok "... colld answers a third user" show_as 64002
ok "... and root" show_as 0
is "... the log has one line of it" "$(grep -c "too many connections" "$work/colld.log")" 1

# User numbers cost nothing: those of many take together all that one may not.
for user in $(seq 64010 64021); do
	silent "$user" 150
done
ok "many users take all connections that there are: colld answers root" show_as 0
ok "... and a user that comes late" show_as 64002

# ---- one user asks without end -----------------------------------------------------------

"$work/ask_for_lists" "$socket" 64007 32 3 >"$work/asked"
result $? "a user asks for lists on 32 connections as fast as they are answered"
# 256 messages in 10 ms; what is begun is finished.
ok "... it gets what a user gets: $(cat "$work/asked") messages in 3 s" \
	test "$(cat "$work/asked")" -le $((3 * 25600 * 5 / 4))
ok "... at least one list" test "$(cat "$work/asked")" -gt 10
ok "... and can connect afterwards" show_as 64007

# ---- descriptors whose last close takes a minute ----------------------------------------

"$work/pass_descriptors" "$socket" 64006 60 >"$work/passed" 2>&1 &
holders="$holders $!"
passing=$!
ok "a user passes descriptors; colld answers root" show_as 0
sleep 1
ok "... and a moment later" show_as 0
ok "... the user's connection has ended, or the kernel refuses them" wait "$passing"

# ---- connections that end with much unread ------------------------------------------------

ok "100 connections send 64 KB that are no messages" perl -MIO::Socket::UNIX -e '
	$SIG{PIPE} = "IGNORE";
	for (1 .. 100) {
		my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or exit 1;
		syswrite $s, "x" x 65536;
	}' "$socket"
ok "... colld answers" show_as 0

# ---- another protocol, time and again ------------------------------------------------------

ok "a user connects 2000 times and says what is no message" as 64008 perl -MIO::Socket::UNIX -e '
	$SIG{PIPE} = "IGNORE";
	for (1 .. 2000) {
		my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or exit 1;
		syswrite $s, "x" x 4096;
		sysread $s, my $end, 1;
	}' "$socket"
is "... the log has one line of it" "$(grep -c "another protocol" "$work/colld.log")" 1
ok "... colld answers another user" show_as 64002
ok "... and this one" show_as 64008

# ---- a name that moves the cursor ------------------------------------------------------------

setpriv --reuid 64009 --regid 64009 --clear-groups perl -MIO::Socket::UNIX -e '
	my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or exit 1;
	my $m = pack "LSSQ a64 a64 L a16", 0x74637263, 3, 1, 1, "a\e[2J\nroot\xff", "n0", 0, "";
	syswrite $s, $m . "\0" x (400 - length $m);
	sleep 300;' "$socket" &
naming=$!
holders="$holders $naming"
named() {	# the job of the user
	timeout 5 "$COLL" circuit show --json --socket "$socket" >"$work/named" &&
		[ "$(jq -r '.holders[] | select(.user == 64009) | .holder' "$work/named")" = "a?[2J?root?" ]
}
ok "a job has a name with an escape sequence: the list has it without" soon 20 named
ok "... so has the table" test "$(timeout 5 "$COLL" circuit show --socket "$socket" | grep -c "^a?\[2J?root? ")" = 1
kill "$naming"

# ---- jobs of one name ------------------------------------------------------------------

hold() {	# USER: a job of two ranks
	as "$1" "$work/competing_jobs" "$socket" 2 1 1000000 200 >"$work/job.$1" 2>&1 &
	holders="$holders $!"
}
users() {
	timeout 5 "$COLL" circuit show --json --socket "$socket" |
		jq -c '[.holders[] | select(.holder != "operator") | .user] | sort'
}
both() {
	[ "$(users)" = "[64004,64005]" ]
}
hold 64004
hold 64005
ok "jobs of two users with one name are two holders" soon 20 both
is "... of one name" "$(timeout 5 "$COLL" circuit show --json --socket "$socket" |
	jq -r '[.holders[].holder] | unique | length')" 1
tap_end
