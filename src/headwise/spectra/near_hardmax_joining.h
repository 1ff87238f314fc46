/* Anchors, the slack of rows, and the columns of a matrix that are joined by sharing a row. */
#pragma once

#include "near_hardmax_matrix.h"

static int root_of(int *parent, int c) {
    while (parent[c] != c) c = parent[c] = parent[parent[c]];
    return c;
}

/* Loose entries are always held; ties are if they are strong. */
static inline int is_held(const struct desk *d, long e, double strong) {
    double energy = d->energy[d->column[e]];
    return energy == 0 || (strong < INFINITY && fabs(d->value[e]) >= strong * sqrt(energy));
}

/* Keep the anchors that are strong; their number. */
static long find_anchors(struct desk *d) {
    long anchors = 0;
    for (long c = 0; c < d->batch->m; c++) {
        d->energy[c] = d->energy[c] >= d->least ? d->energy[c] : 0;
        anchors += d->energy[c] > 0;
    }
    return anchors;
}

/* Weak rows that stand in an anchor all the same have no further part: they become empty.
 * Entries that are loose, that is in columns without anchor; the pull of the others. */
static long drop_anchored_rows(struct desk *d) {
    long loose = 0;
    double least = d->epsilon * d->epsilon;
    for (long r = 0; r < d->rows; r++) {
        long s = d->row_start[r], t = d->row_end[r];
        if (t - s == 1 && d->energy[d->column[s]] > 0) t = d->row_end[r] = s;
        for (long e = s; e < t; e++) {
            double energy = d->energy[d->column[e]];
            loose += energy == 0;
            d->pull[e] = energy == 0 ? 0 : fabs(d->value[e]) / sqrt(energy - least);
        }
    }
    return loose;
}

/* For each row, the absolute row sum of what M holds beyond the ties that are held. */
static void find_slack(struct desk *d, double strong) {
    memset(d->slack, 0, d->rows * sizeof *d->slack);
    if (strong == 0) return; /* every tie is held */
    memset(d->crowd, 0, d->batch->m * sizeof *d->crowd);
    memset(d->held, 0, d->batch->m * sizeof *d->held);
    for (int step = 0; step < 2; step++)
        for (long r = 0; r < d->rows; r++)
            for (long e = d->row_start[r]; e < d->row_end[r]; e++) {
                long c = d->column[e];
                if (d->energy[c] == 0) continue;
                int held = is_held(d, e, strong);
                if (step == 0) {
                    d->crowd[c] += d->pull[e];
                    d->held[c] += held ? d->pull[e] : 0;
                } else {
                    d->slack[r] += d->pull[e] * (held ? d->crowd[c] - d->held[c] : d->crowd[c]);
                }
            }
}

/* The root of a column, which stands alone when it is first seen. */
static int root_once_seen(struct desk *d, int *root, int c) {
    unsigned long *word = &d->seen[c / 64], bit = 1ul << c % 64;
    if (*word & bit) return root_of(root, c);
    *word |= bit;
    d->first_row[c] = d->first_column[c] = -1;
    return root[c] = c;
}

/* Chain columns and rows to their roots, in order, from the last to the first. */
static void chain(struct desk *d, struct joining *made) {
    made->count = 0;
    for (long w = (d->batch->m - 1) / 64; w >= 0; w--)
        for (unsigned long left = d->seen[w]; left;) {
            int bit = 63 - __builtin_clzl(left), c = 64 * w + bit, top = root_of(made->root, c);
            left ^= 1ul << bit;
            made->root[c] = top;
            if (d->first_column[top] < 0) made->tops[made->count++] = top;
            d->next_column[c] = d->first_column[top];
            d->first_column[top] = c;
        }
    for (long r = d->rows - 1; r >= 0; r--) {
        if (d->lead[r] < 0) continue;
        int top = made->root[d->lead[r]];
        d->next_row[r] = d->first_row[top];
        d->first_row[top] = r;
    }
}

/* Join the columns that share a row through entries that are held. */
static void join(struct desk *d, struct joining *made, double strong) {
    memset(d->seen, 0, ((d->batch->m - 1) / 64 + 1) * sizeof *d->seen);
    for (long r = 0; r < d->rows; r++) {
        int one = -1;
        for (long e = d->row_start[r]; e < d->row_end[r]; e++) {
            if (!is_held(d, e, strong)) continue;
            int c = root_once_seen(d, made->root, d->column[e]);
            if (one >= 0 && c != one) made->root[c] = one;
            else one = c;
        }
        d->lead[r] = one;
    }
    chain(d, made);
}
