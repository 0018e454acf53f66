// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <complex.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "spectrum.h"
#include "node/units.h"

/*
 * The number and the least width of time bins. Frequencies above those of the bins are aliased, so
 * an event is split between the two bins nearest to it, and only a quarter of the frequencies is
 * shown.
 */
enum { BINS_MAX = 1 << 20, BIN_NS = 20000, SHOWN = 4, HARMONICS = 8, BEATS = 32 };

/* ---- candidates ------------------------------------------------------------------------- */

static const struct candidate {
	double hz;
	const char *name;
	const char *path;	/* file with the machine's setting, ... */
	double scale;		/* ... in units of this many seconds; hz is then not used */
} candidates[] = {
	{ 1, "timers of 1 s (residual tick, deadline server)", NULL, 0 },
	{ 10, "polling every 100 ms", NULL, 0 },
	{ 0.1, "daemons of 10 s", NULL, 0 },
	{ 1 / 60., "daemons of 1 min", NULL, 0 },
	{ 0, "vm.stat_interval", "/proc/sys/vm/stat_interval", 1 },
	{ 0, "writeback (vm.dirty_writeback_centisecs)",
	  "/proc/sys/vm/dirty_writeback_centisecs", 0.01 },
	{ 0, "watchdog (kernel.watchdog_thresh * 2 / 5)", "/proc/sys/kernel/watchdog_thresh", 0.4 },
	{ 0, "khugepaged", "/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs",
	  0.001 },
	{ 0, "ksmd", "/sys/kernel/mm/ksm/sleep_millisecs", 0.001 },
};

static double candidate_hz(const struct candidate *candidate)
{
	FILE *from = candidate->path ? fopen(candidate->path, "re") : NULL;
	double value = 0;

	if (!candidate->path)
		return candidate->hz;
	if (from && fscanf(from, "%lf", &value) != 1)
		value = 0;
	if (from)
		fclose(from);
	return value > 0 ? 1 / (value * candidate->scale) : 0;
}

__attribute__((format(printf, 2, 3)))
static void add_name(struct noise_peak *peak, const char *format, ...)
{
	const size_t used = strlen(peak->name);
	va_list list;

	va_start(list, format);
	if (used)
		snprintf(peak->name + used, sizeof(peak->name) - used, "; ");
	vsnprintf(peak->name + strlen(peak->name), sizeof(peak->name) - strlen(peak->name), format,
		  list);
	va_end(list);
}

/* The coarse clocks step once a tick. */
static long tick_hz(void)
{
	struct timespec step;

	return !clock_getres(CLOCK_MONOTONIC_COARSE, &step) && step.tv_nsec ?
		       lround(1e9 / step.tv_nsec) : 0;
}

static void name_tick(struct noise_peak *peak, double near, bool here)
{
	const long known[] = { here ? tick_hz() : 1000, here ? 0 : 300, here ? 0 : 250,
			       here ? 0 : 100 };
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(*known); i++) {
		const long times = known[i] ? lround(peak->hz / known[i]) : 0;

		if (times < 1 || (times > 1 && !here) || fabs(peak->hz - times * known[i]) > near)
			continue;
		if (times == 1)
			add_name(peak, "tick (HZ=%ld)", known[i]);
		else
			add_name(peak, "tick (HZ=%ld) x %ld", known[i], times);
	}
}

/* All candidates within the resolution. `here`: the noise is of this machine. */
static void name_peak(struct noise_peak *peak, double step, bool here)
{
	const double near = peak->hz * 0.002 > step ? peak->hz * 0.002 : step;
	size_t i;

	name_tick(peak, near, here);
	for (i = 0; i < sizeof(candidates) / sizeof(*candidates); i++) {
		const double hz = here || !candidates[i].path ? candidate_hz(&candidates[i]) : 0;

		if (hz > 0 && fabs(hz - peak->hz) <= near && near < hz / 2)
			add_name(peak, "%s", candidates[i].name);
	}
}

/* ---- transform ---------------------------------------------------------------------------- */

/* In place; `count` is a power of two (Cooley and Tukey). */
static void spectrum_transform(double complex *value, u32 count)
{
	u32 i, j = 0, half;

	for (i = 1; i < count; i++) {
		u32 bit = count >> 1;

		for (; j & bit; bit >>= 1)
			j ^= bit;
		j ^= bit;
		if (i < j) {
			const double complex other = value[i];

			value[i] = value[j];
			value[j] = other;
		}
	}
	for (half = 1; half < count; half *= 2) {
		for (j = 0; j < half; j++) {
			const double complex turn = cexp(-M_PI * I * j / half);

			for (i = j; i < count; i += 2 * half) {
				const double complex odd = value[i + half] * turn;

				value[i + half] = value[i] - odd;
				value[i] += odd;
			}
		}
	}
}

/* Random events have power 1 everywhere. */
static void add_power(const struct node_capture *capture, u32 cpu, double bin_ns, u32 bins,
		      double complex *value, double *power)
{
	const struct coll_noise_event *event = node_capture_events(capture, cpu);
	const u64 first = capture->cpu[cpu].first, events = capture->cpu[cpu].events;
	double mean;
	u64 i;

	memset(value, 0, bins * sizeof(*value));
	for (i = 0; i < events; i++) {
		const double at = event[i].start >= first ? (event[i].start - first) / bin_ns : 0;
		const u32 bin = at < bins - 1 ? at : bins - 2;
		const double rest = at - bin < 1 ? at - bin : 1;

		value[bin] += 1 - rest;
		value[bin + 1] += rest;
	}
	mean = (double)events / bins;
	for (i = 0; i < bins; i++)
		value[i] -= mean;
	spectrum_transform(value, bins);
	for (i = 0; i < bins / SHOWN; i++)
		power[i] += creal(value[i] * conj(value[i])) / events / capture->head.cpus;
}

/* ---- peaks ----------------------------------------------------------------------------------- */

static double spectrum_median(double *values, u32 count)
{
	u32 low = 0, high = count - 1;

	while (low < high) {	/* quickselect */
		const double pivot = values[(low + high) / 2];
		u32 i = low, j = high;

		while (i <= j) {
			while (values[i] < pivot)
				i++;
			while (values[j] > pivot)
				j--;
			if (i <= j) {
				const double other = values[i];

				values[i++] = values[j];
				values[j] = other;
				if (!j)
					break;
				j--;
			}
		}
		if (count / 2 <= j)
			high = j;
		else if (count / 2 >= i)
			low = i;
		else
			break;
	}
	return values[count / 2];
}

/*
 * Bursts raise whole ranges of frequencies, low ones most. Each half octave is divided by its own
 * median; the median of random events is ln 2.
 */
static int spectrum_flatten(struct noise_spectrum *s)
{
	double *band = malloc(s->points * sizeof(*band));
	u32 from = 1, end, k;

	if (!band)
		return -ENOMEM;
	for (; from < s->points; from = end) {
		double level;

		end = from + (from / 2 > 24 ? from / 2 : 24);
		end = end + 24 > s->points ? s->points : end;
		memcpy(band, s->power + from, (end - from) * sizeof(*band));
		level = spectrum_median(band, end - from) / M_LN2;
		for (k = from; k < end && level > 0; k++)
			s->power[k] /= level;
	}
	s->power[0] = 0;
	free(band);
	return 0;
}

static bool is_peak(const struct noise_spectrum *s, u32 k)
{
	return k >= 2 && k + 1 < s->points && s->power[k] > s->least &&
	       s->power[k] >= s->power[k - 1] && s->power[k] > s->power[k + 1];
}

/* Near a frequency: within the drift of a beat that is one point off, over `multiple`. */
static bool peak_near(const struct noise_spectrum *s, double at, u32 multiple)
{
	const double reach = 1 + multiple / 2.;
	u32 k = at > reach ? at - reach : 0;

	for (; k <= at + reach && k < s->points; k++)
		if (is_peak(s, k))
			return true;
	return false;
}

static u32 count_harmonics(const struct noise_spectrum *s, double at)
{
	u32 multiple, found = 0;

	for (multiple = 2; multiple <= HARMONICS && multiple * at < s->points; multiple++)
		found += peak_near(s, multiple * at, multiple);
	return found;
}

/* Beats found so far, low frequencies first. Most of their multiples explain the later ones. */
struct beats {
	double at[BEATS];	/* in points */
	u32 count;
};

static bool is_harmonic(const struct beats *beats, double at)
{
	u32 i;

	for (i = 0; i < beats->count; i++) {
		const double multiple = at / beats->at[i], off = fabs(multiple - round(multiple));
		const double reach = 1 + multiple / 2;

		if (multiple > 1.5 && off * beats->at[i] <= reach && reach < beats->at[i] / 4)
			return true;
	}
	return false;
}

/* The position between points: the vertex of a parabola through the roots of three points. */
static double spectrum_top(const struct noise_spectrum *s, u32 k)
{
	const double a = sqrt(s->power[k - 1]), b = sqrt(s->power[k]), c = sqrt(s->power[k + 1]);
	const double bend = a - 2 * b + c;

	return k + (bend < 0 ? (a - c) / (2 * bend) : 0);
}

/* The strongest NOISE_PEAKS, in order. */
static void keep_peak(struct noise_spectrum *s, const struct noise_peak *peak)
{
	u32 i = s->peaks < NOISE_PEAKS ? s->peaks++ : NOISE_PEAKS;

	if (i == NOISE_PEAKS && s->peak[--i].power >= peak->power)
		return;
	for (; i && s->peak[i - 1].power < peak->power; i--)
		s->peak[i] = s->peak[i - 1];
	s->peak[i] = *peak;
}

static void find_peaks(struct noise_spectrum *s, bool here)
{
	const double bins = (double)s->points * SHOWN;
	struct beats beats = { .count = 0 };
	u32 k;

	for (k = 2; k + 1 < s->points; k++) {
		struct noise_peak peak = { .power = s->power[k] };

		if (!is_peak(s, k) || is_harmonic(&beats, spectrum_top(s, k)) ||
		    is_harmonic(&beats, bins - spectrum_top(s, k)) ||
		    is_harmonic(&beats, bins + spectrum_top(s, k)))
			continue;	/* the latter two are limited by the bins */
		peak.hz = spectrum_top(s, k) * s->step;
		peak.harmonics = count_harmonics(s, spectrum_top(s, k));
		if (2 * peak.harmonics >= HARMONICS - 1 && beats.count < BEATS)
			beats.at[beats.count++] = spectrum_top(s, k);
		name_peak(&peak, s->step, here);
		keep_peak(s, &peak);
	}
}

static bool is_this_machine(const struct node_capture *capture)
{
	struct utsname name;

	return !uname(&name) && !strcmp(name.nodename, capture->head.host) &&
	       !strcmp(name.release, capture->head.kernel);
}

int noise_spectrum(const struct node_capture *capture, struct noise_spectrum *spectrum)
{
	double complex *value;
	double span = 0, bin_ns = BIN_NS;
	u64 events = 0;
	u32 bins = 1, c;

	*spectrum = (struct noise_spectrum){ 0 };
	for (c = 0; c < capture->head.cpus; c++) {
		const struct coll_noise_cpu *cpu = &capture->cpu[c];
		const struct coll_noise_event *event = node_capture_events(capture, c);
		const double last =
			cpu->events ? (double)event[cpu->events - 1].start - cpu->first : 0;

		span = last > span ? last : span;
		span = cpu->watched > span ? cpu->watched : span;
		events += cpu->events;
	}
	while (bins < BINS_MAX && bins * bin_ns < span)
		bins *= 2;
	if (bins < 16 || !events)
		return 0;
	bin_ns = span / bins;
	value = calloc(bins, sizeof(*value));
	spectrum->power = calloc(bins / SHOWN, sizeof(*spectrum->power));
	if (!value || !spectrum->power) {
		free(value);
		noise_spectrum_free(spectrum);
		return -ENOMEM;
	}
	spectrum->points = bins / SHOWN;
	spectrum->step = 1e9 / span;
	spectrum->longest = span / 1e10;
	for (c = 0; c < capture->head.cpus; c++)
		if (capture->cpu[c].events)
			add_power(capture, c, bin_ns, bins, value, spectrum->power);
	free(value);
	if (spectrum_flatten(spectrum)) {
		noise_spectrum_free(spectrum);
		return -ENOMEM;
	}
	/* By chance one of a thousand captures has such a peak. */
	spectrum->least = log(spectrum->points * 1e3);
	find_peaks(spectrum, is_this_machine(capture));
	return 0;
}

void noise_spectrum_free(struct noise_spectrum *spectrum)
{
	free(spectrum->power);
	spectrum->power = NULL;
}
