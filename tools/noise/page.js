// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
// Makes the charts of a report answer: what is under the pointer, a part of the time, one cause.
'use strict';
(function () {
	const data = JSON.parse(document.getElementById('figures').textContent);
	const timeline = document.getElementById('timeline');
	const heat = document.getElementById('heat');
	const tip = document.getElementById('tip');
	const said = document.querySelector('.range');
	const reset = document.querySelector('.reset');
	const width = data.right - data.left;
	const stride = data.merged ? 5 : 3;
	const hidden = new Set();
	let view = { from: 0, to: data.seconds };

	// ---- words ------------------------------------------------------------------------

	function digits(value) {
		return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
	}

	function time(ns) {
		const units = ['ns', 'µs', 'ms', 's'];
		let unit = 0;

		for (; unit < 3 && ns >= 999.5; unit++)
			ns /= 1000;
		return (unit ? digits(ns) : ns.toFixed(0)) + ' ' + units[unit];
	}

	function count(number) {
		return number.toLocaleString('en-US');
	}

	function percent(share) {
		return (100 * share).toPrecision(2).replace(/^(\d+)\.0$/, '$1').replace(/e.*/, '') + ' %';
	}

	function events(number) {
		return count(number) + (number === 1 ? ' event' : ' events');
	}

	// ---- the tip ----------------------------------------------------------------------

	function show(text, event) {
		const box = tip.getBoundingClientRect();

		tip.textContent = text;
		tip.hidden = false;
		tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + 'px';
		tip.style.top = (event.clientY + 18 + box.height > innerHeight ?
			event.clientY - box.height - 10 : event.clientY + 18) + 'px';
	}

	function hide() {
		tip.hidden = true;
	}

	// What a <title> says appears at once, not after the browser's delay.
	document.querySelectorAll('svg g > title').forEach(function (title) {
		const group = title.parentNode, text = title.textContent;

		group.setAttribute('aria-label', text);
		title.remove();
		group.addEventListener('pointermove', function (event) { show(text, event); });
		group.addEventListener('pointerleave', hide);
	});

	// ---- places -----------------------------------------------------------------------

	function place(svg, event) {
		const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;

		return { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
	}

	function x_of(seconds) {
		return data.left + width * (seconds - view.from) / (view.to - view.from);
	}

	function y_of(ns) {
		const share = (Math.log10(Math.max(ns, 1)) - data.low) / (data.high - data.low);

		return data.bottom - (data.bottom - data.top) * Math.min(Math.max(share, 0), 1);
	}

	function seconds_at(x) {
		const share = Math.min(Math.max((x - data.left) / width, 0), 1);

		return view.from + (view.to - view.from) * share;
	}

	// f(t in s, ns, CPU, events, ns of all of them, cause) for each point that is shown.
	function each_point(f) {
		for (const cause of Object.keys(data.points)) {
			const list = data.points[cause];

			for (let i = 0; !hidden.has(cause) && i < list.length; i += stride)
				f(list[i] / 1e6, list[i + 1], list[i + 2], data.merged ? list[i + 3] : 1,
				  data.merged ? list[i + 4] : list[i + 1], cause);
		}
	}

	// ---- drawing ----------------------------------------------------------------------

	function make(name, attributes, into) {
		const element = document.createElementNS('http://www.w3.org/2000/svg', name);

		for (const key of Object.keys(attributes))
			element.setAttribute(key, attributes[key]);
		into.appendChild(element);
		return element;
	}

	function draw_points() {
		const path = {};

		each_point(function (t, ns, cpu, number, all, cause) {
			if (t >= view.from && t <= view.to)
				path[cause] = (path[cause] || '') + 'M' + x_of(t).toFixed(1) + ' ' +
					y_of(ns).toFixed(1) + 'h0';
		});
		timeline.querySelectorAll('.dots').forEach(function (dots) {
			dots.setAttribute('d', path[dots.dataset.series] || '');
		});
	}

	function draw_seconds() {
		const group = timeline.querySelector('.seconds'), y = Number(group.dataset.y);
		const raw = (view.to - view.from) / 8, unit = Math.pow(10, Math.floor(Math.log10(raw)));
		const step = [1, 2, 5, 10].find(function (n) { return raw <= n * unit; }) * unit;
		const places = Math.max(0, -Math.floor(Math.log10(step * 1.001)));

		group.replaceChildren();
		for (let n = Math.ceil(view.from / step - 1e-6); n * step <= view.to * (1 + 1e-9); n++) {
			const x = x_of(n * step);

			make('path', { class: 'tick', d: 'M' + x.toFixed(1) + ' ' + y + 'v5' }, group);
			make('text', { class: 'tick', x: x.toFixed(1), y: y + 18, 'text-anchor': 'middle' },
				group).textContent = (n * step).toFixed(places);
		}
	}

	function mark(svg, name, from, to, top, bottom) {
		const old = svg.querySelector('.' + name);

		if (old)
			old.remove();
		if (to > from)
			make('rect', { class: 'brush ' + name, x: from, y: top, width: to - from,
				height: bottom - top }, svg);
	}

	function whole() {
		return view.from <= 0 && view.to >= data.seconds;
	}

	function heat_bottom() {
		return data.top + data.heat.height * data.heat.cpu.length;
	}

	function draw_band() {
		const from = data.left + width * view.from / data.seconds;
		const to = data.left + width * view.to / data.seconds;

		if (heat)
			mark(heat, 'band', whole() ? 0 : from, whole() ? 0 : Math.max(to, from + 1),
				data.top, heat_bottom());
	}

	// How much of the shown time was taken, and by whom.
	function summarize() {
		const by = {};
		let number = 0, taken = 0;

		each_point(function (t, ns, cpu, several, all, cause) {
			if (t >= view.from && t <= view.to) {
				number += several;
				taken += all;
				by[cause] = (by[cause] || 0) + all;
			}
		});
		const causes = Object.keys(by).sort(function (a, b) { return by[b] - by[a]; });
		const places = Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(view.to - view.from))));

		said.textContent = whole() && !hidden.size ? '' : (data.merged && !whole() ? 'about ' : '') +
			view.from.toFixed(places) + ' to ' + view.to.toFixed(places) + ' s: ' + events(number) +
			', ' + time(taken) + ', ' +
			percent(taken / 1e9 / (view.to - view.from) / Math.max(data.cpus, 1)) + ' of the time' +
			(causes.length > 1 ? ' (' + causes.slice(0, 3).map(function (cause) {
				return data.names[cause] + ' ' + percent(by[cause] / Math.max(taken, 1));
			}).join(', ') + ')' : '');
		reset.hidden = whole();
	}

	function draw() {
		draw_points();
		draw_seconds();
		draw_band();
		summarize();
	}

	function look(from, to) {
		const least = Math.min(1e-5, data.seconds), span = Math.min(Math.max(to - from, least), data.seconds);
		const begin = Math.min(Math.max(from, 0), data.seconds - span);

		view = { from: begin, to: begin + span };
		draw();
	}

	function zoom(factor, around) {
		look(around - (around - view.from) * factor, around + (view.to - around) * factor);
	}

	// ---- the pointer ------------------------------------------------------------------

	function nearest(at) {
		let best = null, least = 15 * 15;

		each_point(function (t, ns, cpu, number, all, cause) {
			const dx = x_of(t) - at.x, dy = y_of(ns) - at.y, far = dx * dx + dy * dy;

			if (t >= view.from && t <= view.to && far < least) {
				least = far;
				best = { t: t, ns: ns, cpu: cpu, number: number, all: all, cause: cause };
			}
		});
		return best;
	}

	function unring() {
		const ring = timeline.querySelector('.ring');

		if (ring)
			ring.remove();
		hide();
	}

	function hover(event) {
		const point = nearest(place(timeline, event));

		unring();
		if (!point)
			return;
		make('circle', { class: 'ring', cx: x_of(point.t), cy: y_of(point.ns), r: 5.5 }, timeline);
		show(time(point.ns) + ' by ' + data.names[point.cause] + ' on CPU ' + point.cpu + '\nat ' +
			point.t.toFixed(6) + ' s' + (point.number > 1 ? '\nthe longest of ' +
			events(point.number) + ', ' + time(point.all) : ''), event);
	}

	function hover_heat(event) {
		const at = place(heat, event);
		const row = Math.floor((at.y - data.top) / data.heat.height);
		const column = Math.min(Math.floor((at.x - data.left) / width * data.heat.columns),
			data.heat.columns - 1);
		const cell = data.seconds / data.heat.columns;

		if (row < 0 || row >= data.heat.cpu.length || column < 0 || at.x > data.right)
			return hide();
		show((data.heat.every > 1 ? 'CPUs from ' : 'CPU ') + data.heat.cpu[row] + ': ' +
			percent(data.heat.ppm[row * data.heat.columns + column] / 1e6) + ' of ' +
			(column * cell).toPrecision(3) + ' to ' + ((column + 1) * cell).toPrecision(3) + ' s',
			event);
	}

	// Both charts have the same edges; `seconds` is the chart's own time at x.
	function draggable(svg, seconds, bottom, idle) {
		let begin = null;

		svg.addEventListener('pointerdown', function (event) {
			if (event.button !== 0 || place(svg, event).y > bottom())
				return;
			begin = place(svg, event).x;
			svg.setPointerCapture(event.pointerId);
			unring();
		});
		svg.addEventListener('pointermove', function (event) {
			const x = Math.min(Math.max(place(svg, event).x, data.left), data.right);

			if (begin === null)
				return idle(event);
			mark(svg, 'drag', Math.min(begin, x), Math.max(begin, x), data.top, bottom());
		});
		svg.addEventListener('pointerup', function (event) {
			const x = place(svg, event).x, from = Math.min(begin, x), to = Math.max(begin, x);

			mark(svg, 'drag', 0, 0);
			if (begin !== null && to - from > 4)
				look(seconds(from), seconds(to));
			begin = null;
		});
		svg.addEventListener('pointercancel', function () {
			mark(svg, 'drag', 0, 0);
			begin = null;
		});
		svg.addEventListener('pointerleave', unring);
		svg.addEventListener('dblclick', function () { look(0, data.seconds); });
	}

	draggable(timeline, seconds_at, function () { return data.bottom; }, hover);
	if (heat)
		draggable(heat, function (x) {
			return data.seconds * Math.min(Math.max((x - data.left) / width, 0), 1);
		}, heat_bottom, hover_heat);
	timeline.addEventListener('wheel', function (event) {
		if (event.deltaY > 0 && whole())
			return;
		event.preventDefault();
		zoom(event.deltaY > 0 ? 1.25 : 0.8, seconds_at(place(timeline, event).x));
	}, { passive: false });

	// ---- keys and buttons -----------------------------------------------------------------

	timeline.setAttribute('tabindex', '0');
	timeline.addEventListener('keydown', function (event) {
		const span = view.to - view.from, middle = (view.from + view.to) / 2;
		const actions = {
			ArrowLeft: function () { look(view.from - span / 4, view.to - span / 4); },
			ArrowRight: function () { look(view.from + span / 4, view.to + span / 4); },
			'+': function () { zoom(0.5, middle); },
			'-': function () { zoom(2, middle); },
			Escape: function () { look(0, data.seconds); },
		};

		if (actions[event.key]) {
			event.preventDefault();
			actions[event.key]();
		}
	});
	reset.addEventListener('click', function () { look(0, data.seconds); });
	document.querySelectorAll('button[data-series]').forEach(function (button) {
		button.addEventListener('click', function () {
			const cause = button.dataset.series;

			if (!hidden.delete(cause))
				hidden.add(cause);
			button.setAttribute('aria-pressed', String(!hidden.has(cause)));
			draw();
		});
	});
	window.addEventListener('beforeprint', function () {
		document.querySelectorAll('details').forEach(function (details) { details.open = true; });
	});
}());
