/* Blocks of joined columns: their metric M, and the count of their singular values. */
#pragma once

#include "bidiagonal.h"
#include "near_hardmax_joining.h"

#define LARGEST_SIDE 64 /* of a block that is factored here: its smaller side */

enum fate { COUNTED = 0, TOO_DENSE = 1, TOO_LARGE = 2 };

struct block {
    long root, height, width;
    double slack; /* the largest of its rows */
};

static struct block measure(const struct desk *d, long root) {
    struct block found = {root, 0, 0, 0};
    for (long c = d->first_column[root]; c >= 0; c = d->next_column[c]) found.width++;
    for (long r = d->first_row[root]; r >= 0; r = d->next_row[r]) {
        found.height++;
        if (d->slack[r] > found.slack) found.slack = d->slack[r];
    }
    return found;
}

static long smaller(long a, long b) { return a < b ? a : b; }

static double work_of(struct block block) {
    return (double)block.height * block.width * smaller(block.height, block.width);
}

static int fits(struct block block) {
    return smaller(block.height, block.width) <= LARGEST_SIDE && block.height * block.width <= LARGEST_AREA;
}

/* The block as a matrix, row by row. Anchored columns go last; the number of loose ones. */
static long write_out(struct desk *d, struct block block, double strong) {
    long loose = 0, tied = block.width;
    for (long c = d->first_column[block.root]; c >= 0; c = d->next_column[c])
        d->place[c] = d->energy[c] > 0 ? --tied : loose++;
    memset(d->dense, 0, block.height * block.width * sizeof *d->dense);
    double *row = d->dense;
    for (long r = d->first_row[block.root]; r >= 0; r = d->next_row[r], row += block.width)
        for (long e = d->row_start[r]; e < d->row_end[r]; e++)
            if (is_held(d, e, strong)) row[d->place[d->column[e]]] = d->value[e];
    return loose;
}

/* Lower triangle of M = I + B_S (D² − ε²)^{-1} B_Sᵀ; its trace. */
static double write_metric(struct desk *d, struct block block, long loose) {
    long h = block.height, w = block.width;
    double *scale = d->work, trace = 0;
    for (long c = d->first_column[block.root]; c >= 0; c = d->next_column[c])
        if (d->energy[c] > 0) scale[d->place[c]] = sqrt(d->energy[c] - d->epsilon * d->epsilon);
    for (long i = 0; i < h; i++)
        for (long j = loose; j < w; j++) d->dense[i * w + j] /= scale[j];
    for (long i = 0; i < h; i++) {
        for (long k = 0; k <= i; k++) {
            double sum = i == k;
            for (long j = loose; j < w; j++) sum += d->dense[i * w + j] * d->dense[k * w + j];
            d->metric[i * h + k] = sum;
        }
        trace += d->metric[i * h + i];
    }
    return trace;
}

/* M = LLᵀ in place, and L^{-1} onto the loose columns. 0 if M is not positive by rounding. */
static int whiten(struct desk *d, struct block block, long loose) {
    long h = block.height, w = block.width;
    double *l = d->metric;
    for (long i = 0; i < h; i++)
        for (long k = 0; k <= i; k++) {
            double sum = l[i * h + k];
            for (long j = 0; j < k; j++) sum -= l[i * h + j] * l[k * h + j];
            if (k < i) l[i * h + k] = sum / l[k * h + k];
            else if (sum > 0) l[i * h + i] = sqrt(sum);
            else return 0;
        }
    for (long i = 0; i < h; i++) {
        double *row = d->dense + i * w;
        for (long k = 0; k < i; k++)
            for (long j = 0; j < loose; j++) row[j] -= l[i * h + k] * d->dense[k * w + j];
        for (long j = 0; j < loose; j++) row[j] /= l[i * h + i];
    }
    return 1;
}

/* How much solving with L can have moved a σ: by the rounding of |L||L^{-1}B_U|, since M is at least I. */
static double solving_error(const struct desk *d, struct block block, long loose) {
    long h = block.height, w = block.width;
    double sum = 0;
    for (long k = 0; k < h; k++) {
        double column = 0, row = 0;
        for (long i = k; i < h; i++) column += d->metric[i * h + k] * d->metric[i * h + k];
        for (long j = 0; j < loose; j++) row += d->dense[k * w + j] * d->dense[k * w + j];
        sum += sqrt(column) * sqrt(row);
    }
    return d->batch->constants->metric_rounding * (sqrt(h) + h / 8.0) * sum;
}

/* The loose columns as columns one after the other, as many as the smaller side. */
static void stand_upright(double *to, const double *dense, long h, long loose, long width) {
    for (long i = 0; i < h; i++)
        for (long j = 0; j < loose; j++)
            to[h >= loose ? j * h + i : i * loose + j] = dense[i * width + j];
}

/* Count the σ of M^{-1/2} B_U in a block, those at least `sure` and at least `possible`. */
static enum fate count_block(struct desk *d, struct block block, double strong, double above, double under,
                             long *low, long *high) {
    const struct constants *given = d->batch->constants;
    long h = block.height, loose = write_out(d, block, strong);
    double delta = d->delta;
    if (loose < block.width) {
        if (h * h > LARGEST_AREA) return TOO_LARGE;
        double error = given->metric_rounding * sqrt(h) * write_metric(d, block, loose);
        if (error > given->largest_metric_error) return TOO_DENSE;
        above += error;
        under += error;
        if (!whiten(d, block, loose)) return TOO_DENSE;
        double share = given->solving_share * d->delta;
        if (!(solving_error(d, block, loose) <= share)) return TOO_DENSE;
        d->batch->delta[d->matrix] = delta += share;
    }
    double sure = sqrt(1 + above) * (d->epsilon + delta);
    double possible = sqrt(under < 1 ? 1 - under : 0) * (d->epsilon - delta);
    long columns = smaller(h, loose), rows = h + loose - columns;
    double *upright = d->metric, *between = d->work;
    if (columns == 0) {
        *low = *high = 0;
        return COUNTED;
    }
    if (columns == 1 && loose == block.width) {
        between[0] = length_of(d->dense, rows); /* most blocks are one row or one column */
    } else {
        stand_upright(upright, d->dense, h, loose, block.width);
        bidiagonalise(upright, rows, columns, between);
    }
    *low = at_least(between, columns, sure);
    *high = at_least(between, columns, possible);
    return COUNTED;
}
