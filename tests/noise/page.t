#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The page of collnoise report: whole, alone, its numbers those of the JSON, whatever the capture
# holds; and in a browser, if there is one, its charts answer.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/collnoise.sh"
tools=$(dirname "$0")

page() {	# KIND
	quiet python3 "$tools/page.py" capture "$1" "$work/$1.noise" &&
		status 0 report "$work/$1.noise" "$work/$1.html" --json && mv "$work/out" "$work/$1.json"
}

for kind in quiet one unknown wide many hostile; do
	ok "$kind: a page and its JSON" page $kind
	ok "$kind: well-formed, nothing from outside, every number as in the JSON" \
		silent python3 "$tools/page.py" check "$work/$kind.html" "$work/$kind.json"
done
holds "many: 10^5 events" '.all.duration.count > 1e5' "$work/many.json"
holds "wide: 64 CPUs" '.cpus | length == 64' "$work/wide.json"
holds "quiet: nothing to do" '.profile == "isolated" and .advice == []' "$work/quiet.json"
holds "one: no profile holds, and who takes most is advised on first" '.profile == null and
	.advice[0].who == "thread monitoring-agen (812)" and
	.advice[0].command == "collnoise pin init --rule '\''pin comm=monitoring-agen'\''"' "$work/one.json"
holds "unknown: the advice is to ask the module" '(.advice | length) == 1 and
	(.advice[0].command | test("modprobe coll"))' "$work/unknown.json"
holds "hostile: no command has what a shell reads" 'all(.advice[].command;
	test("^collnoise pin init --rule .pin comm=[-_.:/@+,%=?A-Za-z0-9]*.$"))' "$work/hostile.json"
holds "hostile: names are printable" 'all(.who[].name; test("^[[:print:]]*$")) and
	any(.who[].name; . == "???[31mred?")' "$work/hostile.json"
holds "more ranks and shorter grains cost more" '[.cost[].slowdown] as $c |
	$c[0] < $c[1] and $c[1] < $c[2] and $c[1] > $c[4] and $c[4] > $c[7]' "$work/one.json"

# Packages' browser, without the network; a script at the page's end does what people do.
browser=$(command -v chromium || command -v chromium-browser)
cat >"$work/hands" <<'END'
<script>
'use strict';
(function () {
	const said = [], tip = document.getElementById('tip');
	function at(element, type, x, y) {
		const box = element.getBoundingClientRect(), scale = box.width / 960;
		element.dispatchEvent(new PointerEvent(type, { bubbles: true, pointerId: 1, button: 0,
			clientX: box.left + x * scale, clientY: box.top + y * scale }));
	}
	function dots() {
		return Array.from(document.querySelectorAll('.dots'), function (path) {
			return (path.getAttribute('d').match(/M/g) || []).length;
		}).reduce(function (a, b) { return a + b; }, 0);
	}
	const timeline = document.getElementById('timeline'), all = dots();
	timeline.setPointerCapture = function () {};
	const place = document.querySelector('.dots').getAttribute('d').match(/M([0-9.]+) ([0-9.]+)/);
	at(timeline, 'pointermove', Number(place[1]) + 1, Number(place[2]) + 1);
	said.push('hover: ' + tip.textContent.replace(/\n/g, ' '));
	at(timeline, 'pointerdown', 290, 100);
	at(timeline, 'pointermove', 500, 100);
	at(timeline, 'pointerup', 508, 100);
	said.push('zoomed: ' + (dots() < all / 2 && dots() > all / 8));
	said.push('range: ' + document.querySelector('.range').textContent);
	document.querySelector('button[data-series="6"]').click();
	said.push('hidden: ' + document.querySelector('.dots[data-series="6"]').getAttribute('d').length);
	document.querySelector('button[data-series="6"]').click();
	timeline.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
	said.push('again: ' + (dots() === all));
	at(document.querySelector('#lengths .bar'), 'pointermove', 0, 0);
	said.push('bar: ' + tip.textContent);
	said.push('wide: ' + (document.documentElement.scrollWidth > innerWidth));
	document.body.textContent = said.join('\n');
}());
</script>
END
browse() {	# OPTION...
	timeout 240 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
		--disable-background-networking --disable-component-update --disable-sync \
		--user-data-dir="$work/profile" --window-size=1120,3600 "$@" "file://$work/shown.html" 2>/dev/null
}
what="its charts answer"
if [ -n "$browser" ]; then
	sed "/^<\/body>/{
		r $work/hands
		N
	}" "$work/one.html" | sed '/^<\/body><\/html>$/d' >"$work/shown.html"
	browse --dump-dom >"$work/dom"
	like "a point says what it is" "$(cat "$work/dom")" 'hover: .* by .* on CPU 0 at [0-9.]* s'
	like "what is drawn over is zoomed in" "$(cat "$work/dom")" 'zoomed: true'
	like "and summed up" "$(cat "$work/dom")" 'range: 2\.[0-9]* to 5\.[0-9]* s: .* events, .* of the time'
	like "a cause is hidden" "$(cat "$work/dom")" 'hidden: 0'
	like "Escape shows all again" "$(cat "$work/dom")" 'again: true'
	like "a bar says its events" "$(cat "$work/dom")" 'bar: .* events?, .* of the time'
	like "nothing is wider than the window" "$(cat "$work/dom")" 'wide: false'
	for mode in light dark; do
		cp "$work/one.html" "$work/shown.html"
		ok "a picture of it, $mode" silent browse "$([ $mode = dark ] && echo --force-dark-mode || echo --hide-scrollbars)" \
			--screenshot="$work/$mode.png"
		[ -z "$COLL_TEST_PICTURES" ] || cp "$work/$mode.png" "$COLL_TEST_PICTURES/"
	done
	ok "which is dark in the dark" sh -c "! cmp -s '$work/light.png' '$work/dark.png'"
else
	skip "$what" "chromium is not installed"
fi
tap_end
