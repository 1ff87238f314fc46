/* A matrix at work: its entries row by row, and the memory of the thread that counts it.
 *
 * Entries come in lists, or packed as a device sends them. Rows of one strong entry, which is
 * most of them, go to their column's anchor as they are read; no later step sees them.
 */
#pragma once

#include "weighing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_AREA 16384   /* entries of a block that is factored here */
#define LARGEST_VALUE 1e60   /* squares and quotients of these stay within range */

struct constants {
    double anchor_strength, strong_ties[2], most_work, metric_rounding, largest_metric_error, rounding;
    double solving_share; /* of δ, that solving may add to it */
};

/* Entries of a batch row by row, numbered across it; `start` has one more than matrices. */
struct lists {
    const long *rows, *columns;
    const double *values;
    const long *start;
};

/* Entries of a batch as a device sends them; `Packed` in large_entries.py describes the layout. */
struct packed {
    const long *table, *columns;
    const double *values;
    const unsigned char *sparse;
    long room, softmax;
};

struct desk;

struct batch {
    struct lists lists;
    struct packed packed;
    void (*take)(struct desk *); /* the entries of a matrix, from one of the two */
    long n, m, most_entries;     /* of a matrix */
    const double *epsilon;
    double *delta; /* is given without the rounding of what is done here, which is added */
    const struct constants *constants;
    long *low, *high;
    unsigned char *fate;
};

/* Columns that are joined: the root of each, and each root that there is. */
struct joining {
    int *root, *tops;
    long count;
};

/* A matrix at work; rows are numbered in order, without those that only make an anchor. */
struct desk {
    const struct batch *batch;
    long matrix, rows, entries;
    double epsilon, delta;
    double least;             /* energy from which on a column is anchored */
    double total;             /* energy of all entries */
    int strange;              /* some entry is out of range */
    int *column;              /* of each entry */
    double *value, *pull;     /* of each entry; how strongly it ties its row to an anchor */
    int *row_start, *row_end; /* of each row: its entries */
    double *energy;           /* of each column: squared length of its anchor, or 0 */
    double *crowd, *held;     /* of each column: sum of pulls, and of those held */
    double *slack;            /* of each row: what M holds beyond the ties that are held */
    struct joining blocks, components;
    long *low, *high;         /* of each block, at its root */
    int *next_row, *next_column, *first_row, *first_column; /* chains, by root; -1 ends them */
    int *lead, *place;        /* of each row: a column it is joined to; of a column: in its block */
    unsigned long *seen;      /* columns that are joined, one bit each */
    unsigned char *open;
    double *dense, *metric, *work;
};

/* The row whose entries were written behind those there are. One that is a single strong entry
 * is an anchor, whatever else lies in its column, and takes no room. */
static inline void add_row(struct desk *d, long count) {
    long s = d->entries;
    for (long e = s; e < s + count; e++) {
        d->total += d->value[e] * d->value[e];
        d->strange |= !(fabs(d->value[e]) < LARGEST_VALUE);
    }
    if (count == 1) {
        double energy = d->value[s] * d->value[s];
        d->energy[d->column[s]] += energy;
        if (energy >= d->least) return;
    }
    d->row_start[d->rows] = s;
    d->row_end[d->rows++] = d->entries = s + count;
}

static void take_lists(struct desk *d) {
    const struct lists *from = &d->batch->lists;
    long e = from->start[d->matrix], end = from->start[d->matrix + 1], before = d->matrix * d->batch->m;
    while (e < end) {
        long row = from->rows[e], count = 0;
        for (; e < end && from->rows[e] == row; e++, count++) {
            d->column[d->entries + count] = from->columns[e] - before;
            d->value[d->entries + count] = from->values[e];
        }
        add_row(d, count);
    }
}

static void take_packed(struct desk *d) {
    const struct packed *from = &d->batch->packed;
    const long *table = from->table + d->matrix * d->batch->n;
    if (!from->sparse[d->matrix]) return;
    for (long r = 0; r < d->batch->n; r++) {
        long count = table[r] & 0xffffffff, at = table[r] >> 32;
        if (count == 0) continue;
        double *value = d->value + d->entries;
        if (from->softmax && count == 1) {
            d->column[d->entries] = at;
            *value = 1;
        } else {
            at += d->matrix * from->room;
            for (long k = 0; k < count; k++) d->column[d->entries + k] = from->columns[at + k];
            memcpy(value, from->values + at, count * sizeof *value);
            if (from->softmax) weigh(value, count, 1);
        }
        add_row(d, count);
    }
}

/* Memory of a thread, cut into pieces; all at once, so that one test and one free do. */
static char *make_desk(struct desk *d) {
    long n = d->batch->n, m = d->batch->m, most = d->batch->most_entries, side = n > m ? n : m;
    long doubles = 3 * m + n + 2 * most + 2 * LARGEST_AREA + 2 * side, longs = 2 * m + m / 64 + 1;
    long ints = 8 * m + 4 * n + most;
    char *memory = malloc(8 * (doubles + longs) + 4 * ints + m);
    if (!memory) return 0;
    double *x = (double *)memory;
    d->energy = x, x += m, d->crowd = x, x += m, d->held = x, x += m, d->slack = x, x += n;
    d->value = x, x += most, d->pull = x, x += most, d->work = x, x += 2 * side;
    d->dense = x, x += LARGEST_AREA, d->metric = x, x += LARGEST_AREA;
    long *y = (long *)x;
    d->low = y, y += m, d->high = y, y += m, d->seen = (unsigned long *)y, y += m / 64 + 1;
    int *z = (int *)y;
    d->blocks.root = z, z += m, d->blocks.tops = z, z += m;
    d->components.root = z, z += m, d->components.tops = z, z += m;
    d->next_column = z, z += m, d->first_row = z, z += m, d->first_column = z, z += m, d->place = z, z += m;
    d->next_row = z, z += n, d->row_start = z, z += n, d->row_end = z, z += n, d->lead = z, z += n;
    d->column = z, z += most;
    d->open = (unsigned char *)z;
    return memory;
}

static void take_up(struct desk *d, long matrix) {
    const struct batch *b = d->batch;
    d->matrix = matrix;
    d->epsilon = b->epsilon[matrix];
    d->rows = d->entries = d->strange = d->total = 0;
    d->least = b->constants->anchor_strength * d->epsilon;
    d->least *= d->least;
    memset(d->energy, 0, b->m * sizeof *d->energy);
    b->take(d);
    d->delta = b->delta[matrix] += b->constants->rounding * sqrt(d->total);
}
