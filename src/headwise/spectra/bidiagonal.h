/* Count the singular values of a small dense matrix above a threshold, by its bidiagonal form. */
#ifndef HEADWISE_BIDIAGONAL_H
#define HEADWISE_BIDIAGONAL_H

#include <math.h>

/* Sums run in so many lanes. Equal terms round the same way each time, so the error of a sum can
 * grow with its length: eight short sums keep it below the bound that near_hardmax.py states. */
#define LANES 8

static double dot(const double *x, const double *y, long count) {
    double lanes[LANES] = {0}, sum = 0;
    long i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int k = 0; k < LANES; k++) lanes[k] += x[i + k] * y[i + k];
    for (; i < count; i++) sum += x[i] * y[i];
    for (int k = 0; k < LANES; k++) sum += lanes[k];
    return sum;
}

/* The only singular value of a row or column, in the order of sums of the reflection below. */
static double length_of(const double *x, long count) {
    double rest = dot(x + 1, x + 1, count - 1);
    return rest == 0 ? x[0] : sqrt(x[0] * x[0] + rest);
}

/* Householder's reflection that leaves of x (length, stride) its first entry alone: x becomes
 * its vector, with v_0 = 1; the factor of v vᵀ is returned, and what x_0 became is put in *left. */
static double reflection(double *x, long length, long stride, double *left) {
    double rest = 0;
    if (stride == 1) rest = dot(x + 1, x + 1, length - 1);
    else for (long i = 1; i < length; i++) rest += x[i * stride] * x[i * stride];
    *left = x[0];
    if (rest == 0) return 0;
    double norm = sqrt(x[0] * x[0] + rest);
    *left = x[0] > 0 ? -norm : norm;
    double head = x[0] - *left, factor = -head / *left;
    for (long i = 1; i < length; i++) x[i * stride] /= head;
    return factor;
}

/* Bring a (rows × columns, rows >= columns, column after column) to bidiagonal form; its
 * diagonal and upper diagonal, in turns, to `between`. */
static void bidiagonalise(double *a, long rows, long columns, double *between) {
    for (long k = 0; k < columns; k++) {
        double *pivot = a + k * rows + k;
        double factor = reflection(pivot, rows - k, 1, &between[2 * k]);
        for (long j = k + 1; j < columns && factor != 0; j++) {
            double *column = a + j * rows + k, sum = column[0] + dot(pivot + 1, column + 1, rows - k - 1);
            column[0] -= factor * sum;
            for (long i = 1; i < rows - k; i++) column[i] -= factor * sum * pivot[i];
        }
        if (k + 1 == columns) return;
        double *across = a + (k + 1) * rows + k;
        factor = reflection(across, columns - k - 1, rows, &between[2 * k + 1]);
        for (long i = 1; i < rows - k && factor != 0; i++) {
            double sum = across[i];
            for (long j = 1; j < columns - k - 1; j++) sum += across[j * rows] * across[j * rows + i];
            across[i] -= factor * sum;
            for (long j = 1; j < columns - k - 1; j++) across[j * rows + i] -= factor * sum * across[j * rows];
        }
    }
}

/* How many singular values of a bidiagonal matrix are at least x: its diagonals, in turns, are
 * the off-diagonal of a symmetric tridiagonal matrix of twice the size with eigenvalues ±σ. */
static long at_least(const double *between, long columns, double x) {
    if (x <= 0) return columns;
    double pivot = -x;
    long below = 1;
    for (long k = 0; k < 2 * columns - 1; k++) {
        pivot = -x - between[k] * between[k] / pivot;
        if (fabs(pivot) < 1e-280) pivot = -1e-280;
        below += pivot < 0;
    }
    return 2 * columns - below;
}

#endif
