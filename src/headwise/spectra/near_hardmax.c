/* Count the singular values of nearly one-hot matrices from their few entries.
 *
 * The method and its proof are in near_hardmax.py, which does the same with arrays and is the
 * judge of this file. Here each matrix is counted by one thread, from its entries row by row.
 * Blocks and components are found by joining the columns that share a row. A matrix with a
 * block too large for the plain factorisations below is left to the arrays.
 */
#include "parallel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_SIDE 64      /* of a block that is factored here: its smaller side */
#define LARGEST_AREA 16384   /* and its entries */
#define LARGEST_VALUE 1e60   /* squares and quotients of these stay within range */

enum fate { COUNTED = 0, TOO_DENSE = 1, TOO_LARGE = 2 };

struct constants {
    double anchor_strength, strong_ties[2], most_work, metric_rounding, largest_metric_error, rounding;
};

struct batch {
    const long *rows, *columns; /* of the entries, row by row, numbered across the batch */
    const double *values;
    const long *start; /* where the entries of each matrix begin; one more than matrices */
    long size, n, m;
    const double *epsilon;
    double *delta; /* is given without the rounding of what is done here, which is added */
    const struct constants *constants;
    long *low, *high;
    unsigned char *fate;
};

/* A matrix at work. Entries first <= e < last; rows and columns are numbered inside it. */
struct desk {
    const struct batch *batch;
    long matrix, first, last;
    double epsilon, delta;
    double *energy;           /* of each column: squared length of its anchor, or 0 */
    double *crowd, *held;     /* of each column: sum of pulls, and of those held */
    double *slack;            /* of each row: what M holds beyond the ties that are held */
    long *block, *component;  /* of each column: its root in the first and in later joinings */
    long *low, *high;         /* of each block, at its root */
    long *next_row, *next_column, *first_row, *first_column; /* chains, by root; -1 ends them */
    long *row_start, *row_end, *place;
    double *dense, *metric, *work;
};

static long root_of(long *parent, long c) {
    while (parent[c] != c) c = parent[c] = parent[parent[c]];
    return c;
}

static inline long column_of(const struct desk *d, long e) {
    return d->batch->columns[e] - d->matrix * d->batch->m;
}

static inline double length(const struct desk *d, long c) { return sqrt(d->energy[c]); }

/* How strongly an entry ties its row to an anchored column. */
static inline double pull_of(const struct desk *d, long e, long c) {
    return fabs(d->batch->values[e]) / sqrt(d->energy[c] - d->epsilon * d->epsilon);
}

/* Loose entries are always held; ties are if they are strong. */
static inline int is_held(const struct desk *d, long e, long c, double strong) {
    return d->energy[c] == 0 || fabs(d->batch->values[e]) >= strong * length(d, c);
}

/* Gather single-entry rows into anchors; the number of anchors. */
static long find_anchors(struct desk *d) {
    const struct batch *b = d->batch;
    double least = b->constants->anchor_strength * d->epsilon;
    long anchors = 0, e = d->first;
    for (long r = 0; r < b->n; r++) {
        long name = d->matrix * b->n + r;
        d->row_start[r] = e;
        while (e < d->last && b->rows[e] == name) e++;
        d->row_end[r] = e;
        if (e - d->row_start[r] == 1) d->energy[column_of(d, e - 1)] += b->values[e - 1] * b->values[e - 1];
    }
    for (long c = 0; c < b->m; c++) {
        if (!(d->energy[c] >= least * least)) d->energy[c] = 0;
        anchors += d->energy[c] > 0;
    }
    return anchors;
}

/* Rows that stand in an anchor have no further part: they become empty. Entries that are
 * loose, that is in columns without anchor. */
static long drop_anchored_rows(struct desk *d) {
    long loose = 0;
    for (long r = 0; r < d->batch->n; r++) {
        long s = d->row_start[r], t = d->row_end[r];
        if (t - s == 1 && d->energy[column_of(d, s)] > 0) d->row_end[r] = s;
        for (long e = s; e < d->row_end[r]; e++) loose += d->energy[column_of(d, e)] == 0;
    }
    return loose;
}

/* For each row, the absolute row sum of what M holds beyond the ties that are held. */
static void find_slack(struct desk *d, double strong) {
    const struct batch *b = d->batch;
    memset(d->crowd, 0, b->m * sizeof *d->crowd);
    memset(d->held, 0, b->m * sizeof *d->held);
    memset(d->slack, 0, b->n * sizeof *d->slack);
    if (strong == 0) return; /* every tie is held */
    for (int step = 0; step < 2; step++)
        for (long r = 0; r < b->n; r++)
            for (long e = d->row_start[r]; e < d->row_end[r]; e++) {
                long c = column_of(d, e);
                if (d->energy[c] == 0) continue;
                double pull = pull_of(d, e, c);
                int held = is_held(d, e, c, strong);
                if (step == 0) {
                    d->crowd[c] += pull;
                    d->held[c] += held ? pull : 0;
                } else {
                    d->slack[r] += pull * (held ? d->crowd[c] - d->held[c] : d->crowd[c]);
                }
            }
}

/* Join the columns that share a row through entries that are held; chain rows and columns. */
static void join(struct desk *d, long *root, double strong) {
    const struct batch *b = d->batch;
    for (long c = 0; c < b->m; c++) {
        root[c] = c;
        d->first_row[c] = d->first_column[c] = d->place[c] = -1;
    }
    for (long r = 0; r < b->n; r++) {
        long one = -1;
        for (long e = d->row_start[r]; e < d->row_end[r]; e++) {
            long c = column_of(d, e);
            if (!is_held(d, e, c, strong)) continue;
            d->place[c] = 0; /* seen */
            c = root_of(root, c);
            if (one >= 0 && c != one) root[c] = one;
            else one = c;
        }
    }
    for (long c = b->m - 1; c >= 0; c--) {
        if (d->place[c] < 0) continue;
        long top = root[c] = root_of(root, c);
        d->next_column[c] = d->first_column[top];
        d->first_column[top] = c;
    }
    for (long r = b->n - 1; r >= 0; r--)
        for (long e = d->row_start[r]; e < d->row_end[r]; e++) {
            long c = column_of(d, e);
            if (!is_held(d, e, c, strong)) continue;
            d->next_row[r] = d->first_row[root[c]];
            d->first_row[root[c]] = r;
            break;
        }
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
        for (long e = d->row_start[r]; e < d->row_end[r]; e++) {
            long c = column_of(d, e);
            if (is_held(d, e, c, strong)) row[d->place[c]] = d->batch->values[e];
        }
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

/* The loose columns as columns one after the other, as many as the smaller side. */
static void stand_upright(double *to, const double *dense, long h, long loose, long width) {
    for (long i = 0; i < h; i++)
        for (long j = 0; j < loose; j++)
            to[h >= loose ? j * h + i : i * loose + j] = dense[i * width + j];
}

/* Householder's reflection that leaves of x (length, stride) its first entry alone: x becomes
 * its vector, with v_0 = 1; the factor of v vᵀ is returned, and what x_0 became is put in *left. */
static double reflection(double *x, long length, long stride, double *left) {
    double rest = 0;
    for (long i = 1; i < length; i++) rest += x[i * stride] * x[i * stride];
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
            double *column = a + j * rows + k, sum = column[0];
            for (long i = 1; i < rows - k; i++) sum += pivot[i] * column[i];
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

/* Count the σ of M^{-1/2} B_U in a block, those at least `sure` and at least `possible`. */
static enum fate count_block(struct desk *d, struct block block, double strong, double above, double under,
                             long *low, long *high) {
    const struct constants *given = d->batch->constants;
    long h = block.height, loose = write_out(d, block, strong);
    if (loose < block.width) {
        if (h * h > LARGEST_AREA) return TOO_LARGE;
        double error = given->metric_rounding * sqrt(h) * write_metric(d, block, loose);
        if (error > given->largest_metric_error) return TOO_DENSE;
        above += error;
        under += error;
        if (!whiten(d, block, loose)) return TOO_DENSE;
    }
    double sure = sqrt(1 + above) * (d->epsilon + d->delta);
    double possible = sqrt(under < 1 ? 1 - under : 0) * (d->epsilon - d->delta);
    long columns = smaller(h, loose), rows = h + loose - columns;
    double *upright = d->metric, *between = d->work;
    if (columns == 0) {
        *low = *high = 0;
        return COUNTED;
    }
    stand_upright(upright, d->dense, h, loose, block.width);
    bidiagonalise(upright, rows, columns, between);
    *low = at_least(between, columns, sure);
    *high = at_least(between, columns, possible);
    return COUNTED;
}

/* Count the blocks of B_U by themselves. */
static enum fate count_blocks(struct desk *d) {
    const struct batch *b = d->batch;
    double work = 0;
    int large = 0;
    for (long c = 0; c < b->m; c++) {
        d->low[c] = d->high[c] = 0;
        if (d->first_row[c] < 0) continue;
        struct block block = measure(d, c);
        work += work_of(block);
        if (work > b->constants->most_work) return TOO_DENSE;
        if (!fits(block)) large = 1;
        else if (!large) count_block(d, block, INFINITY, block.slack, 0, &d->low[c], &d->high[c]);
    }
    return large ? TOO_LARGE : COUNTED;
}

/* Is the count of any block open? Marks the components that hold one. */
static int mark_open(struct desk *d, unsigned char *open) {
    int found = 0;
    if (open) memset(open, 0, d->batch->m);
    for (long c = 0; c < d->batch->m; c++)
        if (d->low[c] != d->high[c]) {
            found = 1;
            if (open) open[d->component[c]] = 1;
        }
    return found;
}

/* Let the count of a component stand for those of all its blocks. */
static void replace(struct desk *d, long root, long low, long high) {
    for (long c = d->first_column[root]; c >= 0; c = d->next_column[c]) {
        if (d->energy[c] > 0 || d->block[c] != c) continue;
        d->low[c] = low;
        d->high[c] = high;
        low = high = 0; /* the first block carries it */
    }
}

/* Where blocks left a doubt, count again with the strong ties of M in full. */
static enum fate settle(struct desk *d, double strong, unsigned char *open) {
    find_slack(d, strong);
    join(d, d->component, strong);
    mark_open(d, open);
    for (long root = 0; root < d->batch->m; root++) {
        if (!open[root]) continue;
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

static double norm_of(const struct desk *d) {
    double energy = 0;
    for (long e = d->first; e < d->last; e++) energy += d->batch->values[e] * d->batch->values[e];
    return sqrt(energy);
}

static int out_of_range(const struct desk *d) {
    if (!(d->epsilon > 1 / LARGEST_VALUE)) return 1;
    for (long e = d->first; e < d->last; e++)
        if (!(fabs(d->batch->values[e]) < LARGEST_VALUE)) return 1;
    return 0;
}

static enum fate count_matrix(struct desk *d, unsigned char *open, long *low, long *high) {
    if (out_of_range(d)) return TOO_LARGE;
    memset(d->energy, 0, d->batch->m * sizeof *d->energy);
    *low = *high = find_anchors(d);
    if (drop_anchored_rows(d) == 0) return COUNTED;
    find_slack(d, INFINITY);
    join(d, d->block, INFINITY);
    enum fate fate = count_blocks(d);
    for (int s = 0; s < 2 && fate == COUNTED && mark_open(d, 0); s++)
        fate = settle(d, d->batch->constants->strong_ties[s], open);
    for (long c = 0; c < d->batch->m; c++) {
        *low += d->low[c];
        *high += d->high[c];
    }
    return fate;
}

/* Memory of a thread, cut into pieces; all at once, so that one test and one free do. */
static int make_desk(struct desk *d, unsigned char **open, char **memory) {
    long n = d->batch->n, m = d->batch->m, side = n > m ? n : m;
    long doubles = 3 * m + n + 2 * LARGEST_AREA + 2 * side, longs = 8 * m + 3 * n;
    *memory = malloc(8 * (doubles + longs) + m);
    if (!*memory) return 0;
    double *x = (double *)*memory;
    d->energy = x, x += m, d->crowd = x, x += m, d->held = x, x += m, d->slack = x, x += n;
    d->dense = x, x += LARGEST_AREA, d->metric = x, x += LARGEST_AREA, d->work = x, x += 2 * side;
    long *y = (long *)x;
    d->block = y, y += m, d->component = y, y += m, d->low = y, y += m, d->high = y, y += m;
    d->next_column = y, y += m, d->first_row = y, y += m, d->first_column = y, y += m;
    d->place = y, y += m, d->next_row = y, y += n, d->row_start = y, y += n, d->row_end = y, y += n;
    *open = (unsigned char *)y;
    return 1;
}

static void count_some(void *job, struct queue *queue) {
    const struct batch *b = job;
    struct desk desk;
    desk.batch = b;
    unsigned char *open;
    char *memory;
    if (!make_desk(&desk, &open, &memory)) return; /* what nobody counts is left to the arrays */
    for (long i; (i = next_unit(queue)) >= 0;) {
        desk.matrix = i;
        desk.first = b->start[i];
        desk.last = b->start[i + 1];
        desk.epsilon = b->epsilon[i];
        desk.delta = b->delta[i] += b->constants->rounding * norm_of(&desk);
        b->fate[i] = count_matrix(&desk, open, &b->low[i], &b->high[i]);
    }
    free(memory);
}

/* Counts of every matrix of a batch; sizes: batch, n, m, threads. */
void near_hardmax_count(const long *rows, const long *columns, const double *values, const long *start,
                        const long *sizes, const double *epsilon, double *delta,
                        const struct constants *constants, long *low, long *high, unsigned char *fate) {
    struct batch batch = {rows, columns, values, start, sizes[0], sizes[1], sizes[2], epsilon, delta,
                          constants, low, high, fate};
    memset(fate, TOO_LARGE, sizes[0]);
    in_parallel(count_some, &batch, sizes[0], sizes[3]);
}
