#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""For tests of the page that collnoise report writes.

page.py capture KIND FILE: a capture: quiet, one, hostile, wide (64 CPUs), many (10^5 events), unknown
page.py check PAGE JSON: the page is well-formed, alone, and its numbers are those of the JSON
"""
import json
import random
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as xml

UNKNOWN, HARDWARE, STEAL, NMI, IRQ, SOFTIRQ, THREAD, INJECTED = range(8)
HOSTILE = [b'<script>alert(1)</script>', b"a' onload='x\" & y", b']]><!--', b'\xff\xfe\x1b[31mred\n',
           b'\xe2\x82\xac'.ljust(39, b'W')]


def write(path, host, cpus, sources, events, seconds):
    """sources: (cause, number, name); events: (cpu, start, duration, source from 1 or 0, cause)"""
    events.sort()
    with open(path, 'wb') as to:
        to.write(struct.pack('<QIIIIQQQ64s64s', 0x65736f6e6c6c6f63, 2, cpus, len(sources), 0, len(events),
                             1700000000 * 10**9, 200, host, b'6.12.9-amd64'))
        for cpu in range(cpus):
            to.write(struct.pack('<IIQQQQ', cpu, 10200, 0, int(seconds * 1e9),
                                 sum(event[0] == cpu for event in events), 0))
        for index, (cause, number, name) in enumerate(sources):
            mine = [event for event in events if event[3] == index + 1]
            to.write(struct.pack('<B3xIQQQ40s', cause, number, len(mine), sum(event[2] for event in mine),
                                 0, name[:39]))
        for cpu, start, duration, source, cause in events:
            to.write(struct.pack('<QQIHBB', start, duration, source, cpu, cause, 0))


def noise(cpus, seconds, scale=1):
    """Ticks, a network card, a daemon that wakes up on one CPU, a kernel thread, a host."""
    sources = [(IRQ, 0, b'local_timer'), (IRQ, 24, b'eth0-TxRx-0'), (SOFTIRQ, 1, b'TIMER'),
               (THREAD, 812, b'monitoring-agen'), (THREAD, 17, b'kworker/0:1'), (HARDWARE, 0, b'')]
    events = []
    for cpu in range(cpus):
        tick = 4_000_000 // scale
        events += [(cpu, n * tick + 1000 * cpu, int(random.gauss(2600, 300)), 1, IRQ)
                   for n in range(int(seconds * 1e9 / tick))]
        events += [(cpu, int(random.uniform(0, seconds) * 1e9), int(random.paretovariate(1.6) * 1500), 2, IRQ)
                   for _ in range(int(60 * seconds * scale) if cpu % 4 == 0 else 3)]
        events += [(cpu, int(random.uniform(0, seconds) * 1e9), int(random.expovariate(1 / 9000)) + 300, 3,
                    SOFTIRQ) for _ in range(int(25 * seconds * scale))]
        if cpu % 8 == 1 or cpus == 1:
            events += [(cpu, int((n + 0.31) * 1e9), int(random.uniform(1.5e6, 4e6)), 4, THREAD)
                       for n in range(int(seconds))]
        events += [(cpu, int(random.uniform(0, seconds) * 1e9), int(random.uniform(4e3, 6e4)), 5, THREAD)
                   for _ in range(int(3 * seconds))]
    events += [(cpus - 1, int(0.62 * seconds * 1e9), 240_000, 0, HARDWARE)]
    return sources[:5], events


def capture(kind, path):
    random.seed(1)
    if kind == 'quiet':
        write(path, b'n1', 2, [], [], 5)
    elif kind == 'one':
        write(path, b'n1', 1, *noise(1, 10), 10)
    elif kind == 'wide':
        write(path, b'node0417.cluster.example', 64, *noise(64, 1), 1)
    elif kind == 'many':
        write(path, b'n1', 4, *noise(4, 25, 4), 25)
    elif kind == 'unknown':
        sources, events = noise(4, 10)
        write(path, b'n1', 4, sources, [event[:3] + (0, UNKNOWN) for event in events], 10)
    elif kind == 'hostile':
        sources = [(THREAD, index + 1, name) for index, name in enumerate(HOSTILE)]
        write(path, b'<img src=x onerror=alert(1)>', 1, sources,
              [(0, 10**8 * n, 10**6 + n, n % len(sources) + 1, THREAD) for n in range(50)], 6)
    else:
        sys.exit('page.py: kind %r; valid: quiet, one, wide, many, unknown, hostile' % kind)


def wrong(what):
    print(what)
    wrong.count += 1


wrong.count = 0


def check_numbers(page, report):
    data = list(page.iter('data'))
    places = sorted({element.get('data-json') for element in data})
    query = '[' + ', '.join('(%s)' % place for place in places) + ']'
    values = dict(zip(places, json.loads(subprocess.run(
        ['jq', '-c', query, report], check=True, capture_output=True, text=True).stdout)))
    for element in data:
        shown, value = float(element.get('value')), values[element.get('data-json')]
        if value is None or abs(shown - value) > 1e-6 * max(abs(shown), abs(value)):
            wrong('%s is %s, the page says %s' % (element.get('data-json'), value, shown))
        check_text(element, shown)
    if len(data) < 10:
        wrong('only %d numbers' % len(data))


def check_text(element, value):
    """What people read is the value: in its unit, to two digits or better."""
    match = re.fullmatch(r'([0-9.,e-]+)(?: (ns|µs|ms|s|%|ppm))?', element.text)
    scale = {'ns': 1, 'µs': 1e3, 'ms': 1e6, 's': 1e9, '%': 0.01, 'ppm': 1e-6, None: 1}
    if not match:
        wrong('%r is no number' % element.text)
        return
    read = float(match[1].replace(',', '')) * scale[match[2]]
    if abs(read - value) > 0.051 * abs(value):
        wrong('%r stands for %s' % (element.text, value))


def check_rest(element, inside=False):
    """No digit is outside of <data>, but in names, code, headings' words and pictures."""
    if element.tag in ('data', 'svg', 'script', 'style', 'code', 'head') or \
            'name' in element.get('class', '').split():
        return
    for text in [element.text] + [child.tail for child in element]:
        if re.search('[0-9]', text or ''):
            wrong('a number without its place: %r' % text.strip())
    for child in element:
        check_rest(child)


def check_alone(page, text):
    for element in page.iter():
        for name, value in element.attrib.items():
            if name in ('src', 'href', 'srcset', 'action') or name.startswith('on') or \
                    re.search(r'url\((?!#)', value):
                wrong('<%s %s=%r>' % (element.tag, name, value))
        if element.tag in ('link', 'iframe', 'img', 'object', 'embed', 'base', 'form'):
            wrong('<%s>' % element.tag)
    for word in ('@import', 'fetch(', 'XMLHttpRequest', 'WebSocket', 'import('):
        if word in text:
            wrong(word)
    if len(list(page.iter('script'))) != 2:
        wrong('scripts: %d' % len(list(page.iter('script'))))
    for url in re.findall(r'https?://[^\s"\'<]*', text):
        if url != 'http://www.w3.org/2000/svg':
            wrong(url)


def check_charts(page, report):
    histogram = report['all']['histogram']
    bars = page.findall('.//svg[@id="lengths"]/g[@class="bar"]')
    got = [(int(bar.get('data-events')), int(bar.get('data-ns'))) for bar in bars]
    if got != [(bucket['count'], bucket['total_ns']) for bucket in histogram]:
        wrong('the bars are not the histogram: %s' % got)
    figures = json.loads(page.find('.//script[@id="figures"]').text)
    stride = 5 if figures['merged'] else 3
    points = [series[n:n + stride] for series in figures['points'].values()
              for n in range(0, len(series), stride)]
    duration = report['all']['duration']
    if sum(point[3] if figures['merged'] else 1 for point in points) != duration['count']:
        wrong('the points are not all events')
    if sum(point[4] if figures['merged'] else point[1] for point in points) != duration['total_ns']:
        wrong('the points are not all of the time')
    if max([point[1] for point in points], default=0) != duration['max_ns']:
        wrong('the longest event is not drawn')
    dots = sum(path.get('d').count('M') for path in page.findall('.//path') if 'dots' in path.get('class', ''))
    if dots != len(points):
        wrong('%d dots, %d points' % (dots, len(points)))
    heat = figures['heat']['ppm']
    if heat and abs(sum(heat) / len(heat) / 1e6 - report['all']['share']) > 0.02 * report['all']['share'] + 1e-6:
        wrong('the heat is %s, not %s' % (sum(heat) / len(heat) / 1e6, report['all']['share']))
    for svg in page.iter('svg'):
        if not svg.get('aria-label') or not svg.findall('.//text'):
            wrong('a chart without a name or a label')


def check_order(page):
    headings = [''.join(heading.itertext()) for heading in page.iter('h2')]
    if headings != ['What it costs', 'Who causes it', 'What to do', 'The evidence']:
        wrong('headings: %s' % headings)
    verdict = ''.join(page.find('.//h1').itertext())
    if not re.fullmatch(r'(Very quiet|Quiet|Fairly quiet|Noisy): .*[^.]\.', verdict):
        wrong('the verdict is no sentence: %r' % verdict)


def check(path, report_path):
    with open(path, encoding='utf-8') as file:
        text = file.read()
    with open(report_path, encoding='utf-8') as file:
        report = json.load(file)
    page = xml.fromstring(text)
    check_numbers(page, report_path)
    check_rest(page)
    check_alone(page, text)
    check_charts(page, report)
    check_order(page)
    if len(text.encode()) >= 2 << 20:
        wrong('%d bytes' % len(text.encode()))
    sys.exit(wrong.count != 0)


if len(sys.argv) != 4 or sys.argv[1] not in ('capture', 'check'):
    sys.exit(__doc__)
{'capture': capture, 'check': check}[sys.argv[1]](*sys.argv[2:])
