/* Softmax weights of one row from what is kept of its log-weights. */
#ifndef HEADWISE_WEIGHING_H
#define HEADWISE_WEIGHING_H

#include <math.h>

/* From differences of log-weights, so many apart, to weights; the sum over what was kept. */
static double weigh(double *values, long count, long apart) {
    double total = 0;
    for (double *x = values; x < values + count * apart; x += apart) {
        *x = *x == 0 ? 1 : exp(*x);
        total += *x;
    }
    for (double *x = values; x < values + count * apart; x += apart) *x /= total;
    return total;
}

#endif
