// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * fft N: a three-dimensional Fourier transform of N^3 complex numbers by planes, as
 * NPB's FT does it, and with the same collectives: 8 alltoall (one to warm up, one
 * forward, six back), 6 reduce (checksums), 2 bcast, 1 barrier. Rank 0 does the same
 * alone and compares. N is a multiple of the number of ranks.
 */
#include <complex.h>
#include <fftw3.h>
#include <math.h>

#include "mpitest.h"

enum { STEPS = 6 };

static int n, rank, ranks, planes;	/* planes of z here; then rows of y */
static fftw_complex *grid, *turned, *buffer;
static fftw_plan planes_forward, planes_back, lines_forward, lines_back;

static size_t local(void)
{
	return (size_t)planes * n * n;
}

static double complex start_value(size_t index)
{
	uint64_t v = index * 0x9e3779b97f4a7c15ull;

	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
	return (double)(v >> 44) / (1 << 20) - 0.5 + I * ((double)(v >> 24 & 0xfffff) / (1 << 20));
}

/* What a step does to the number at these frequencies. */
static double factor(int x, int y, int z, int step)
{
	int kx = x > n / 2 ? x - n : x, ky = y > n / 2 ? y - n : y, kz = z > n / 2 ? z - n : z;

	return exp(-1e-4 * step * (kx * kx + ky * ky + kz * kz));
}

/*
 * [z here][y][x] to [y here][x][z]: every rank's part of y goes to it. The way back
 * is the same with the roles of y and z exchanged.
 */
static void turn(void)
{
	size_t block = (size_t)planes * planes * n;
	int to, y, z, x;

	for (to = 0; to < ranks; to++)
		for (z = 0; z < planes; z++)
			for (y = 0; y < planes; y++)
				for (x = 0; x < n; x++)
					buffer[to * block + ((size_t)y * n + x) * planes + z] =
						grid[((size_t)z * n + to * planes + y) * n + x];
	must(MPI_Alltoall(buffer, block * 2, MPI_DOUBLE, turned, block * 2, MPI_DOUBLE,
			  MPI_COMM_WORLD), "MPI_Alltoall");
	for (to = 0; to < ranks; to++)
		for (y = 0; y < planes; y++)
			for (x = 0; x < n; x++)
				memcpy(&buffer[((size_t)y * n + x) * n + to * planes],
				       &turned[to * block + ((size_t)y * n + x) * planes],
				       planes * sizeof(*buffer));
	memcpy(turned, buffer, local() * sizeof(*turned));
}

static void turn_back(void)
{
	size_t block = (size_t)planes * planes * n;
	int to, y, z, x;

	for (to = 0; to < ranks; to++)
		for (y = 0; y < planes; y++)
			for (x = 0; x < n; x++)
				for (z = 0; z < planes; z++)
					buffer[to * block + ((size_t)z * planes + y) * n + x] =
						turned[((size_t)y * n + x) * n + to * planes + z];
	must(MPI_Alltoall(buffer, block * 2, MPI_DOUBLE, grid, block * 2, MPI_DOUBLE,
			  MPI_COMM_WORLD), "MPI_Alltoall");
	memcpy(buffer, grid, local() * sizeof(*grid));
	for (to = 0; to < ranks; to++)
		for (z = 0; z < planes; z++)
			for (y = 0; y < planes; y++)
				memcpy(&grid[((size_t)z * n + to * planes + y) * n],
				       &buffer[to * block + ((size_t)z * planes + y) * n],
				       n * sizeof(*grid));
}

static void fill(void)
{
	size_t i;

	for (i = 0; i < local(); i++)
		grid[i] = start_value((size_t)rank * local() + i);
}

/* The spectrum, kept, times a step's factor into `turned`. */
static void evolve(const fftw_complex *spectrum, int step)
{
	size_t i = 0;
	int y, x, z;

	for (y = 0; y < planes; y++)
		for (x = 0; x < n; x++)
			for (z = 0; z < n; z++, i++)
				turned[i] = spectrum[i] * factor(x, rank * planes + y, z, step);
}

/* Of some numbers all over the grid. */
static double complex sum_some(const fftw_complex *part, size_t first, size_t count)
{
	const size_t all = (size_t)n * n * n;
	double complex sum = 0;
	size_t j, i;

	for (j = 1; j <= 1024; j++) {
		i = j * 7919 % all;
		if (i >= first && i < first + count)
			sum += part[i - first] / all;
	}
	return sum;
}

static void plan(void)
{
	const int plane[2] = { n, n };

	planes_forward = fftw_plan_many_dft(2, plane, planes, grid, NULL, 1, n * n, grid, NULL, 1,
					    n * n, FFTW_FORWARD, FFTW_ESTIMATE);
	planes_back = fftw_plan_many_dft(2, plane, planes, grid, NULL, 1, n * n, grid, NULL, 1,
					 n * n, FFTW_BACKWARD, FFTW_ESTIMATE);
	lines_forward = fftw_plan_many_dft(1, &n, planes * n, turned, NULL, 1, n, turned, NULL, 1,
					   n, FFTW_FORWARD, FFTW_ESTIMATE);
	lines_back = fftw_plan_many_dft(1, &n, planes * n, turned, NULL, 1, n, turned, NULL, 1, n,
					FFTW_BACKWARD, FFTW_ESTIMATE);
}

/* The same on one rank by one plan, to compare with. */
static void check(const double complex *sums)
{
	const size_t all = (size_t)n * n * n;
	fftw_complex *whole = fftw_alloc_complex(all), *stepped = fftw_alloc_complex(all);
	fftw_plan forward = fftw_plan_dft_3d(n, n, n, whole, whole, FFTW_FORWARD, FFTW_ESTIMATE);
	fftw_plan back = fftw_plan_dft_3d(n, n, n, stepped, stepped, FFTW_BACKWARD, FFTW_ESTIMATE);
	size_t i;
	int step;

	for (i = 0; i < all; i++)
		whole[i] = start_value(i);
	fftw_execute(forward);
	for (step = 0; step < STEPS; step++) {
		double complex want;

		for (i = 0; i < all; i++)
			stepped[i] = whole[i] * factor(i % n, i / n % n, i / n / n, step);
		fftw_execute(back);
		want = sum_some(stepped, 0, all);
		if (cabs(want - sums[step]) > 1e-9 * (1 + cabs(want)))
			fail("step %d: the checksum is %.12g%+.12gi, not %.12g%+.12gi", step,
			     creal(sums[step]), cimag(sums[step]), creal(want), cimag(want));
	}
	fftw_destroy_plan(forward);
	fftw_destroy_plan(back);
	fftw_free(whole);
	fftw_free(stepped);
}

int main(int argc, char **argv)
{
	double complex sums[STEPS];
	fftw_complex *spectrum;
	int step, steps = STEPS;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	n = argc > 1 ? atoi(argv[1]) : 32;
	MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Bcast(&steps, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (n % ranks)
		fail("N must be a multiple of the number of ranks");
	planes = n / ranks;
	grid = fftw_alloc_complex(local());
	turned = fftw_alloc_complex(local());
	buffer = fftw_alloc_complex(local());
	spectrum = fftw_alloc_complex(local());
	plan();
	fill();
	turn();			/* to warm up */
	MPI_Barrier(MPI_COMM_WORLD);
	fill();
	fftw_execute(planes_forward);
	turn();
	fftw_execute(lines_forward);
	memcpy(spectrum, turned, local() * sizeof(*spectrum));
	for (step = 0; step < steps; step++) {
		double complex sum;

		evolve(spectrum, step);
		fftw_execute(lines_back);
		turn_back();
		fftw_execute(planes_back);
		sum = sum_some(grid, rank * local(), local());
		MPI_Reduce(&sum, &sums[step], 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM, 0, MPI_COMM_WORLD);
	}
	must_have_counted(17, 0, "fft");
	if (!rank)
		check(sums);
	if (!rank)
		printf("fft of %d^3 on %d ranks is right\n", n, ranks);
	MPI_Finalize();
	return 0;
}
