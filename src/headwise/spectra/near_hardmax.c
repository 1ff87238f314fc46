/* Count the singular values of nearly one-hot matrices from their few entries.
 *
 * The method and its proof are in near_hardmax.py, which does the same with arrays and is the
 * judge of this file. Here each matrix is counted by one thread, from its entries row by row.
 * Most rows have one entry: they go to their column's anchor as they are read, and no later
 * step sees them. Blocks and components are found by joining the columns that share a row. A
 * matrix with a block too large for the plain factorisations below is left to the arrays.
 */
#include "bidiagonal.h"
#include "parallel.h"
#include "weighing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_SIDE 64      /* of a block that is factored here: its smaller side */
#define LARGEST_AREA 16384   /* and its entries */
#define LARGEST_VALUE 1e60   /* squares and quotients of these stay within range */

enum fate { COUNTED = 0, TOO_DENSE = 1, TOO_LARGE = 2 };

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

/* Entries of a batch as a device sends them; what is where is said in packed.py. */
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

/* Count the blocks of B_U by themselves. */
static enum fate count_blocks(struct desk *d) {
    double work = 0;
    int large = 0;
    for (long i = 0; i < d->blocks.count; i++) {
        long c = d->blocks.tops[i];
        struct block block = measure(d, c);
        d->low[c] = d->high[c] = 0;
        work += work_of(block);
        if (work > d->batch->constants->most_work) return TOO_DENSE;
        if (!fits(block)) large = 1;
        else if (!large) count_block(d, block, INFINITY, block.slack, 0, &d->low[c], &d->high[c]);
    }
    return large ? TOO_LARGE : COUNTED;
}

/* Is the count of any block open? */
static int any_open(const struct desk *d) {
    for (long i = 0; i < d->blocks.count; i++)
        if (d->low[d->blocks.tops[i]] != d->high[d->blocks.tops[i]]) return 1;
    return 0;
}

/* Mark the components that hold an open block. */
static void mark_open(struct desk *d) {
    memset(d->open, 0, d->batch->m);
    for (long i = 0; i < d->blocks.count; i++) {
        long c = d->blocks.tops[i];
        if (d->low[c] != d->high[c]) d->open[d->components.root[c]] = 1;
    }
}

/* Let the count of a component stand for those of all its blocks. */
static void replace(struct desk *d, long root, long low, long high) {
    for (long c = d->first_column[root]; c >= 0; c = d->next_column[c]) {
        if (d->energy[c] > 0 || d->blocks.root[c] != c) continue;
        d->low[c] = low;
        d->high[c] = high;
        low = high = 0; /* the first block carries it */
    }
}

/* Where blocks left a doubt, count again with the strong ties of M in full. */
static enum fate settle(struct desk *d, double strong) {
    find_slack(d, strong);
    join(d, &d->components, strong);
    mark_open(d);
    for (long i = 0; i < d->components.count; i++) {
        long root = d->components.tops[i];
        if (!d->open[root]) continue;
        struct block block = measure(d, root);
        if (work_of(block) > d->batch->constants->most_work) return TOO_DENSE;
        if (!fits(block)) return TOO_LARGE;
        long low, high;
        enum fate fate = count_block(d, block, strong, block.slack, block.slack, &low, &high);
        if (fate != COUNTED) return fate;
        replace(d, root, low, high);
    }
    return COUNTED;
}

static enum fate count_matrix(struct desk *d, long *low, long *high) {
    if (d->strange || !(d->epsilon > 1 / LARGEST_VALUE)) return TOO_LARGE;
    *low = *high = find_anchors(d);
    if (drop_anchored_rows(d) == 0) return COUNTED;
    find_slack(d, INFINITY);
    join(d, &d->blocks, INFINITY);
    enum fate fate = count_blocks(d);
    for (int s = 0; s < 2 && fate == COUNTED && any_open(d); s++)
        fate = settle(d, d->batch->constants->strong_ties[s]);
    for (long i = 0; i < d->blocks.count && fate == COUNTED; i++) {
        *low += d->low[d->blocks.tops[i]];
        *high += d->high[d->blocks.tops[i]];
    }
    return fate;
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

static void count_some(void *job, struct queue *queue) {
    const struct batch *b = job;
    struct desk desk;
    desk.batch = b;
    char *memory = make_desk(&desk);
    if (!memory) return; /* what nobody counts is left to the arrays */
    for (long i; (i = next_unit(queue)) >= 0;) {
        take_up(&desk, i);
        b->fate[i] = count_matrix(&desk, &b->low[i], &b->high[i]);
    }
    free(memory);
}

static long most_between(const long *start, long count) {
    long most = 0;
    for (long i = 0; i < count; i++) most = start[i + 1] - start[i] > most ? start[i + 1] - start[i] : most;
    return most;
}

/* Counts of every matrix of a batch; sizes: batch, n, m, threads. */
void near_hardmax_count(const long *rows, const long *columns, const double *values, const long *start,
                        const long *sizes, const double *epsilon, double *delta,
                        const struct constants *constants, long *low, long *high, unsigned char *fate) {
    struct batch batch = {
        .lists = {rows, columns, values, start}, .take = take_lists,
        .n = sizes[1], .m = sizes[2], .most_entries = most_between(start, sizes[0]) + 1,
        .epsilon = epsilon, .delta = delta, .constants = constants,
        .low = low, .high = high, .fate = fate};
    memset(fate, TOO_LARGE, sizes[0]);
    in_parallel(count_some, &batch, sizes[0], sizes[3]);
}

/* The same from what a device sent; sizes: batch, n, m, threads, room, softmax. */
void near_hardmax_count_packed(const long *numbers, const unsigned char *sparse, const long *sizes,
                               const double *epsilon, double *delta, const struct constants *constants,
                               long *low, long *high, unsigned char *fate) {
    long rows = sizes[0] * sizes[1], room = sizes[4];
    const long *table = numbers + 2 * sizes[0], *columns = table + 2 * rows;
    const double *values = (const double *)(columns + sizes[0] * room);
    struct batch batch = {
        .packed = {table, columns, values, sparse, room, sizes[5]}, .take = take_packed,
        .n = sizes[1], .m = sizes[2], .most_entries = room + sizes[1] + 1,
        .epsilon = epsilon, .delta = delta, .constants = constants,
        .low = low, .high = high, .fate = fate};
    memset(fate, TOO_LARGE, sizes[0]);
    in_parallel(count_some, &batch, sizes[0], sizes[3]);
}
