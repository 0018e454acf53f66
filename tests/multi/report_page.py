#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""report_page.py PAGE JSON: the page of coll report is well-formed, needs no other file, has its
parts in order, and each number that it says is the one of the JSON."""
import json
import subprocess
import sys
import xml.etree.ElementTree as xml

page_path, json_path = sys.argv[1:]
page = xml.parse(page_path).getroot()
wrong = []

data = list(page.iter('data'))
places = sorted({element.get('data-json') for element in data})
answer = subprocess.run(['jq', '-c', '[' + ', '.join('(%s)' % place for place in places) + ']', json_path],
                        check=True, capture_output=True, text=True)
values = dict(zip(places, json.loads(answer.stdout)))
for element in data:
    said, value = float(element.get('value')), values[element.get('data-json')]
    if value is None or abs(said - value) > 1e-6 * max(abs(said), abs(value), 1e-3):
        wrong.append('%s is %s, the page says %s' % (element.get('data-json'), value, said))
if len(data) < 30:
    wrong.append('only %d numbers' % len(data))

for element in page.iter():
    if element.tag in ('script', 'link', 'iframe', 'img', 'object', 'embed', 'form'):
        wrong.append('<%s>' % element.tag)
    wrong += ['%s=%s' % item for item in element.items()
              if item[0] in ('src', 'href', 'action') or item[0].startswith('on')]
if any(word in open(page_path, encoding='utf-8').read() for word in ('@import', 'http://', 'https://')):
    wrong.append('it refers to something outside')

def seconds_of(place):
    return json.loads(subprocess.run(['jq', '-c', place, json_path], check=True, capture_output=True,
                                     text=True).stdout)


picture = page.find('.//svg')
rows = picture.findall('g')
unit = float(picture.get('data-end')) / 100 * seconds_of('.seconds') / float(picture.get('data-width'))
nodes, ranks = seconds_of('.node | length'), seconds_of('.rank | length')
if len(rows) != min(nodes if nodes > 1 else ranks, 32):
    wrong.append('%d rows of %d nodes, %d ranks' % (len(rows), nodes, ranks))
for row in rows:
    bars = [float(bar.get('width')) for bar in row.findall('rect') if bar.get('class') == 'spent']
    inside = seconds_of(row.get('data-of') + '.inside_seconds')
    if abs(sum(bars) * unit - inside) > max(0.01 * inside, 0.002 * len(bars) * unit):
        wrong.append('%s: bars of %g s, not %g' % (row.get('data-of'), sum(bars) * unit, inside))
    if any(float(bar.get('x')) + float(bar.get('width')) > 850.1 for bar in row.findall('rect')):
        wrong.append('%s: a bar is longer than the axis' % row.get('data-of'))
    if not all(bar.find('title') is not None for bar in row.findall('rect')):
        wrong.append('%s: a bar says nothing' % row.get('data-of'))

headings = [''.join(heading.itertext()) for heading in page.iter('h2')]
if headings != ['What it costs', 'Who causes it', 'What to do', 'The evidence']:
    wrong.append('headings: %s' % headings)
verdict = ''.join(page.find('.//h1').itertext())
if verdict.split(':')[0] not in ('Much is lost', 'Some is lost', 'Little is lost') or verdict[-1] != '.':
    wrong.append('the verdict is no sentence: %s' % verdict)
print('\n'.join(wrong), end='')
sys.exit(bool(wrong))
