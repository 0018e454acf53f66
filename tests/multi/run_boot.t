#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The ranks of a job meet under every supported launcher, and unauthenticated peers do not disturb it.
. "$(dirname "$0")/../lib/tap.sh"

MEET=$BUILD/tests/multi/boot_meet
dir=$(mktemp -d)
export XDG_RUNTIME_DIR="$dir"
trap 'rm -rf "$dir"' EXIT
secret=$(od -An -tx1 -N32 /dev/urandom | tr -d ' \n')

port() {	# a port that was free just now, and so was the next; not one of those for clients
	perl -MIO::Socket::INET -e '
		sub free { IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1", LocalPort => $_[0]) }
		do { $port = 10000 + int rand 20000 } until free($port) && free($port + 1);
		print $port'
}

# job RANKS VARIABLES...: starts that many processes; R in a variable is the rank.
job() {
	ranks=$1
	shift
	outs=$(mktemp -d "$dir/job.XXXXXX")
	rank=0
	while [ $rank -lt "$ranks" ]; do
		env $(printf '%s\n' "$@" | sed "s/=R\$/=$rank/") $MEET "${seconds:-10}" "${times:-1}" \
			>"$outs/$rank" 2>&1 &
		rank=$((rank + 1))
	done
	wait
	cat "$outs"/*
}
met() {
	printf '%s\n' "$1" | grep -c 'met all'
}
hosts_gone() {	# the processes that served a store, and its files
	tries=60
	while [ -n "$(ls "$dir/coll" 2>/dev/null)" ] && [ $tries -gt 0 ]; do
		sleep 0.05
		tries=$((tries - 1))
	done
	[ -z "$(ls "$dir/coll" 2>/dev/null)" ] &&
		! grep -lsz "^XDG_RUNTIME_DIR=$dir\$" /proc/[0-9]*/environ |
			sed 's/environ/comm/' | xargs -r cat 2>/dev/null | grep -qE 'boot_meet|coll-store'
}

out=$($COLL run -n 13 -- $MEET 10 3)
is "coll run: 13 ranks meet three times" "$(met "$out")" 39

out=$($COLL run -n 3 -- sh -c "$MEET && $MEET")
is "two programs, one after the other" "$(met "$out")" 6

is "without a launcher: a job of one rank" "$($MEET)" "rank 0 of 1: met all, told by none"

out=$(job 4 COLL_RANK=R COLL_RANKS=4 COLL_STORE=127.0.0.1:$(port) COLL_SECRET=$secret)
is "own variables, store at an address" "$(met "$out")" 4
out=$(job 2 COLL_RANK=R COLL_RANKS=2 COLL_STORE=localhost:$(port) COLL_SECRET=$secret)
is "... at a name" "$(met "$out")" 2
if [ -e /proc/net/if_inet6 ] && grep -q ' lo$' /proc/net/if_inet6; then
	out=$(job 3 COLL_RANK=R COLL_RANKS=3 "COLL_STORE=[::1]:$(port)" COLL_SECRET=$secret)
	is "... over IPv6" "$(met "$out")" 3
else
	skip "... over IPv6" "no IPv6 here"
fi
out=$(job 3 COLL_RANK=R COLL_RANKS=3 COLL_JOB=by-file)
is "own variables, address of the store in a file" "$(met "$out")" 3

out=$(times=3 job 4 RANK=R WORLD_SIZE=4 LOCAL_RANK=R LOCAL_WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 \
	MASTER_PORT=$(port) TORCHELASTIC_RUN_ID=none)
is "torchrun, one node, three times" "$(met "$out")" 12
out=$(job 4 RANK=R WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=$(port) COLL_SECRET=$secret)
is "torchrun, at MASTER_PORT" "$(met "$out")" 4

# meet_past WHOM: three ranks whose MASTER_PORT is $taken.
meet_past() {
	pids=
	for rank in 0 1 2; do
		RANK=$rank WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$taken \
			COLL_SECRET=$secret $MEET 15 >"$dir/out.$rank" 2>&1 &
		pids="$pids $!"
	done
	wait $pids
	is "torchrun, MASTER_PORT taken by $1: the next one" "$(met "$(cat "$dir"/out.*)")" 3
	rm -f "$dir"/out.*
}

# torchrun's own store: accepts, says nothing.
taken=$(port)
perl -MIO::Socket::INET -e '
	my $l = IO::Socket::INET->new(Listen => 9, LocalAddr => "127.0.0.1", LocalPort => $ARGV[0]);
	my @kept; $SIG{ALRM} = sub { exit }; alarm 20;
	while (my $c = $l->accept) { push @kept, $c }' "$taken" &
squatter=$!
sleep 0.3
meet_past "an unauthenticated peer"
kill $squatter
wait $squatter 2>/dev/null

# Another job's store: speaks our language, but has another secret.
other=$(od -An -tx1 -N32 /dev/urandom | tr -d ' \n')
COLL_RANK=0 COLL_RANKS=2 COLL_STORE=127.0.0.1:$taken COLL_SECRET=$other $MEET 8 >/dev/null 2>&1 &
squatter=$!
sleep 0.3
meet_past "another job"
kill $squatter
wait $squatter 2>/dev/null

out=$(job 5 OMPI_COMM_WORLD_RANK=R OMPI_COMM_WORLD_SIZE=5 OMPI_COMM_WORLD_LOCAL_RANK=R \
	OMPI_COMM_WORLD_LOCAL_SIZE=5 PMIX_RANK=R PMIX_NAMESPACE=prterun-host-1@1)
is "Open MPI" "$(met "$out")" 5
like "... is recognised" "$out" 'told by Open MPI'
out=$(job 3 PMI_RANK=R PMI_SIZE=3 MPI_LOCALRANKID=R MPI_LOCALNRANKS=3)
is "Hydra" "$(met "$out")" 3
like "... is recognised" "$out" 'told by Hydra'
out=$(job 4 SLURM_PROCID=R SLURM_NTASKS=4 SLURM_LOCALID=R SLURM_JOB_ID=4711 SLURM_STEP_ID=0)
is "Slurm" "$(met "$out")" 4
like "... is recognised" "$out" 'told by Slurm'
out=$(job 2 PMIX_RANK=R PMIX_NAMESPACE=space COLL_RANKS=2)
is "PMIx, number of ranks given" "$(met "$out")" 2
ok "no server and no file remains" hosts_gone

# Two jobs at once.
job 3 OMPI_COMM_WORLD_RANK=R OMPI_COMM_WORLD_SIZE=3 PMIX_NAMESPACE=one >"$dir/one" &
out=$(job 3 OMPI_COMM_WORLD_RANK=R OMPI_COMM_WORLD_SIZE=3 PMIX_NAMESPACE=two)
wait
is "two jobs at once do not mix" "$(met "$out") $(met "$(cat "$dir/one")")" "3 3"
rm -f "$dir/one"

# A file that a dead job left.
mkdir -p -m 700 "$dir/coll"
(umask 077; echo "127.0.0.1:$(port) $secret" >"$dir/coll/job-stale")
out=$(job 3 COLL_RANK=R COLL_RANKS=3 COLL_JOB=stale)
is "a stale rendezvous file is ignored" "$(met "$out")" 3

# ---- the program that serves the store ----
LD_PRELOAD=libm.so.6 COLL_RANK=0 COLL_RANKS=2 COLL_JOB=program $MEET 30 >"$dir/a" & a=$!
host=
tries=100
while [ -z "$host" ] && [ $tries -gt 0 ]; do
	sleep 0.05
	tries=$((tries - 1))
	for comm in $(grep -ls '^coll-store$' /proc/[0-9]*/comm); do
		grep -qz "^XDG_RUNTIME_DIR=$dir\$" "${comm%/comm}/environ" 2>/dev/null &&
			host=${comm%/comm}
	done
done
is "the store's process is coll-store" "$(realpath "$host/exe")" \
	"$(realpath "$BUILD/libexec/coll/coll-store")"
is "... with its own memory: nothing of the application is mapped" \
	"$(grep -cE 'boot_meet|libm\.so' "$host/maps")" 0
is "... with no descriptor of it but a pidfd; its sockets are the listener and rank 0's" \
	"$(for fd in "$host"/fd/*; do readlink "$fd"; done | grep -v eventpoll | grep -v timerfd |
		grep -vE '/dev/null|^pipe:|boot_meet.*err|/a$' | sed 's/:.*//' | sort | tr '\n' ' ')" \
	"anon_inode socket socket "
is "... in a session of its own, a child of no rank" \
	"$(awk '{ print ($6 != own) ($4 != rank) }' own=$$ rank=$a "$host/stat")" 11
kill -9 $a
wait $a 2>/dev/null
ok "... which ends with rank 0" hosts_gone

# Copies in a folder where everybody may write, as /tmp is.
mkdir -p "$dir/open/libexec/coll" "$dir/open/bin"
cp "$MEET" "$dir/open/bin/meet"
printf '#!/bin/sh\ntouch %s/owned\n' "$dir" >"$dir/open/libexec/coll/coll-store"
chmod 755 "$dir/open/libexec/coll/coll-store"
chmod 1777 "$dir/open"
if [ -e /usr/libexec/coll/coll-store ] || [ -e /usr/local/libexec/coll/coll-store ]; then
	skip "a program that is not installed is named" "coll-store is installed here"
else
	COLL_RANK=0 COLL_RANKS=2 COLL_JOB=open "$dir/open/bin/meet" 5 >"$dir/a"
	like "a program that is not installed is named" "$(cat "$dir/a")" \
		'coll-store, .*, is not installed: PREFIX/libexec/coll/coll-store'
fi
ok "... and none is taken from where others can write" test ! -e "$dir/owned"
# A program beside the library that another user could have put there.
mkdir -p "$dir/prefix/bin" "$dir/prefix/libexec/coll"
cp "$MEET" "$dir/prefix/bin"
printf '#!/bin/sh\n: >"%s/ran"\nexit 1\n' "$dir" >"$dir/prefix/libexec/coll/coll-store"
chmod 755 "$dir/prefix" "$dir"/prefix/* "$dir/prefix/libexec/coll" "$dir/prefix/libexec/coll/coll-store"
beside() {	# whether rank 0 runs it
	rm -f "$dir/ran"
	COLL_RANK=0 COLL_RANKS=2 COLL_JOB=beside "$dir/prefix/bin/${MEET##*/}" 1 >"$dir/a" 2>&1
	test -e "$dir/ran"
}
ok "coll-store beside the program is run" beside
for path in libexec/coll/coll-store libexec/coll libexec; do
	chmod g+w "$dir/prefix/$path"
	ok "... not if its group can write to $path" sh -c '! "$@"' - test "$(beside && echo ran)"
	chmod g-w "$dir/prefix/$path"
done

COLL_STORE_PROGRAM=$dir/none COLL_RANK=0 COLL_RANKS=2 COLL_JOB=none $MEET 5 >"$dir/a"
like "a wrong COLL_STORE_PROGRAM is named" "$(cat "$dir/a")" "cannot start $dir/none, .*: No such file"
COLL_STORE_PROGRAM=/bin/false COLL_RANK=0 COLL_RANKS=2 COLL_JOB=false $MEET 5 >"$dir/a"
like "... and one that does not serve" "$(cat "$dir/a")" 'cannot start /bin/false, .*: Exec format'

# ---- what goes wrong ----
start=$(date +%s%N)
COLL_RANK=0 COLL_RANKS=3 COLL_JOB=missing $MEET 2 >"$dir/a" & a=$!
COLL_RANK=2 COLL_RANKS=3 COLL_JOB=missing $MEET 2 >"$dir/b" & b=$!
wait $a; rc=$?
wait $b; rc="$rc $?"
ms=$((($(date +%s%N) - start) / 1000000))
is "a missing rank: -ETIMEDOUT on the others" "$rc" "3 3"
ok "... within the deadline" test $ms -lt 10000
like "... and it is named" "$(cat "$dir/a" "$dir/b")" 'rank 1 of 3 .* did not join in time'

$COLL run -q -n 3 -- sh -c "[ \$COLL_RANK = 1 ] && exec sleep 3; exec $MEET 1" >"$dir/a" 2>&1
is "... under coll run too" "$?" 3
like "... and named" "$(cat "$dir/a")" 'rank 1 of 3 .* did not join'

COLL_RANK=0 COLL_RANKS=2 COLL_JOB=dies $MEET 30 >"$dir/a" & a=$!
COLL_RANK=1 COLL_RANKS=3 COLL_JOB=dies $MEET 3 >"$dir/b" & b=$!
wait $b
like "a different number of ranks is reported" "$(cat "$dir/b")" 'does not have 3 ranks'
kill -9 $a
wait $a 2>/dev/null
ok "rank 0 killed: its store ends" hosts_gone

COLL_RANK=1 COLL_RANKS=2 COLL_STORE=127.0.0.1:1x COLL_SECRET=$secret $MEET >"$dir/a"
like "a malformed variable is named" "$(cat "$dir/a")" "COLL_STORE='127.0.0.1:1x' is not valid: host:port"

# There is no network, and so nobody who knows names but /etc/hosts. No user namespaces in a chroot.
alone="unshare -Urn"
[ "$(id -u)" != 0 ] || alone="unshare -n"
COLL_RANK=1 COLL_RANKS=2 COLL_STORE=nobody.invalid:4321 COLL_SECRET=$secret $alone $MEET 1 >"$dir/a"
like "a name that leads nowhere is told" "$(cat "$dir/a")" \
	'at nobody.invalid:4321.*(nobody knows the host.s name|the host.s name cannot be looked up now)'

# ---- unauthenticated peers ----
$COLL run -n 4 -- sh -c "echo \$COLL_STORE >$dir/store; sleep 1; exec $MEET 10 2" >"$dir/a" 2>"$dir/b" & a=$!
sleep 0.3
store=$(sed 's/.*://' "$dir/store")
ok "the attacker knows the store's port" test -n "$store"
perl -MIO::Socket::INET -e '
	srand 7;
	my @kept;
	for my $i (1 .. 150) {
		my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $ARGV[0]) or next;
		$SIG{PIPE} = "IGNORE";
		print $s "GET / HTTP/1.1\r\n\r\n" if $i % 3 == 0;
		print $s join "", map { chr int rand 256 } 1 .. 500 if $i % 3 == 1;
		$s->flush;
		$i % 2 ? push @kept, $s : close $s;
	}
	sleep 2' "$store" &
peer=$!
COLL_RANK=1 COLL_RANKS=4 COLL_STORE=127.0.0.1:$store COLL_STORE_SERVED=1 COLL_JOB=run-$a \
	COLL_SECRET=$(printf '%064d' 0) $MEET 5 >"$dir/c"
like "a wrong secret is refused" "$(cat "$dir/c")" 'refused rank 1: its secret'
wait $a
rc=$?
is "noise, port scan and wrong secret do not disturb the job" "$rc $(grep -c 'met all' "$dir/a")" "0 8"
is "... and are reported once" "$(grep -c 'refused a connection from 127.0.0.1' "$dir/b")" 1
kill $peer 2>/dev/null
wait $peer 2>/dev/null

tap_end
