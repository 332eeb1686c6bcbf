"""Both passes of exact inference as compiled loops over a tape, for batches on the CPU.

Read forwards, a tape gives the probability of the evidence; read backwards, its derivative. Every
row has a tangent beside its value (a dual number), so that the derivative of that derivative in one
direction, which is what backpropagation through posteriors asks for, is a third reading and not a
second algorithm: the Hessian of log P(evidence) is symmetric.

Samples stand on the last axis, so the innermost loop is over samples and is vectorised; a block of
samples goes through the whole tape while its rows are in the cache. Import this where it is used:
loading numba takes a while.
"""

from typing import no_type_check

import numpy as np
from numba import njit

from radreason.prob.tape import JOIN, SUM1

BLOCK = 64


@njit(cache=True, nogil=True, error_model="numpy")
@no_type_check
def _load(evidence, direction, start, n, first, value, tangent, log_z, faint, inverse_top):
    """Bring a block of evidence into the first rows, each variable's largest likelihood being one."""
    dual = direction.size > 0
    log_z[:] = 0.0
    value[: first[-1]] = 1.0
    tangent[: first[-1]] = 0.0
    for v in range(first.size - 1):
        for b in range(n):
            top = 0.0
            usable = True
            for r in range(first[v], first[v + 1]):
                x = evidence[start + b, r]
                usable = usable and x >= 0.0 and x < np.inf
                top = max(top, x)
            if not usable or not top > faint:
                log_z[b] = np.nan
                inverse_top[v, b] = 0.0
                continue
            log_z[b] += np.log(top)
            inverse_top[v, b] = 1.0 / top
            for r in range(first[v], first[v + 1]):
                value[r, b] = evidence[start + b, r] * inverse_top[v, b]
                if dual:
                    tangent[r, b] = value[r, b] * direction[start + b, r]


@njit(cache=True, nogil=True, error_model="numpy")
@no_type_check
def _collect(tape, value, tangent, scale, log_z, faint, dual, width):
    """Read the tape forwards. Sums are scaled to a largest entry of one; log_z collects the scales.

    What is lost to underflow beside an entry of one matters once that entry has shrunk as far. So it
    is the product of all shrinking (``left``) that must not come near underflow, not one step alone;
    its inverse bounds the derivatives, and its inverse squared the derivatives of these.
    """
    rows, weights = tape.rows, tape.weights
    left = np.ones(width, value.dtype)
    for step in range(tape.steps.shape[0]):
        kind, n_out, n_terms, out, w0, x0, y0 = tape.steps[step]
        if kind == JOIN:
            for i in range(n_out):
                z, x, y = out + i, rows[x0 + i], rows[y0 + i]
                for b in range(width):
                    value[z, b] = value[x, b] * value[y, b]
                if dual:
                    for b in range(width):
                        tangent[z, b] = tangent[x, b] * value[y, b] + value[x, b] * tangent[y, b]
            continue
        for s in range(n_out):
            z = out + s
            value[z, :width] = 0.0
            if dual:
                tangent[z, :width] = 0.0
            for i in range(s * n_terms, (s + 1) * n_terms):
                w = weights[w0 + i]
                if w == 0.0:
                    continue
                x = rows[x0 + i]
                if kind == SUM1:
                    for b in range(width):
                        value[z, b] += w * value[x, b]
                    if dual:
                        for b in range(width):
                            tangent[z, b] += w * tangent[x, b]
                else:
                    y = rows[y0 + i]
                    for b in range(width):
                        value[z, b] += w * value[x, b] * value[y, b]
                    if dual:
                        for b in range(width):
                            tangent[z, b] += w * (tangent[x, b] * value[y, b] + value[x, b] * tangent[y, b])
        for b in range(width):
            scale[step, b] = value[out, b]
        for z in range(out + 1, out + n_out):
            for b in range(width):
                scale[step, b] = max(scale[step, b], value[z, b])
        for b in range(width):
            left[b] *= min(scale[step, b], 1.0)
            if left[b] > faint:
                log_z[b] += np.log(scale[step, b])
                scale[step, b] = 1.0 / scale[step, b]
            else:  # close to underflow: the caller takes this sample through logarithms
                log_z[b] = np.nan
                scale[step, b] = 0.0
        for z in range(out, out + n_out):
            for b in range(width):
                value[z, b] *= scale[step, b]
            if dual:
                for b in range(width):
                    tangent[z, b] *= scale[step, b]


@njit(cache=True, nogil=True, error_model="numpy")
@no_type_check
def _distribute(tape, value, tangent, scale, d_value, d_tangent, dual, width):
    """Read the tape backwards: derivatives of the probability of the evidence by every row."""
    rows, weights = tape.rows, tape.weights
    d_value[:] = 0.0
    d_tangent[:] = 0.0
    for r in tape.roots:  # scaled, each root is one, and so is the product of the others
        d_value[r] = 1.0
        for other in tape.roots:
            if dual and other != r:
                d_tangent[r] += tangent[other]
    for step in range(tape.steps.shape[0] - 1, -1, -1):
        kind, n_out, n_terms, out, w0, x0, y0 = tape.steps[step]
        if kind == JOIN:
            for i in range(n_out):
                z, x, y = out + i, rows[x0 + i], rows[y0 + i]
                for b in range(width):
                    d_value[x, b] += d_value[z, b] * value[y, b]
                    d_value[y, b] += d_value[z, b] * value[x, b]
                if dual:
                    for b in range(width):
                        d_tangent[x, b] += d_tangent[z, b] * value[y, b] + d_value[z, b] * tangent[y, b]
                        d_tangent[y, b] += d_tangent[z, b] * value[x, b] + d_value[z, b] * tangent[x, b]
            continue
        for z in range(out, out + n_out):
            for b in range(width):
                d_value[z, b] *= scale[step, b]
            if dual:
                for b in range(width):
                    d_tangent[z, b] *= scale[step, b]
        for s in range(n_out):
            z = out + s
            for i in range(s * n_terms, (s + 1) * n_terms):
                w = weights[w0 + i]
                if w == 0.0:
                    continue
                x = rows[x0 + i]
                if kind == SUM1:
                    for b in range(width):
                        d_value[x, b] += w * d_value[z, b]
                    if dual:
                        for b in range(width):
                            d_tangent[x, b] += w * d_tangent[z, b]
                else:
                    y = rows[y0 + i]
                    for b in range(width):
                        d_value[x, b] += w * d_value[z, b] * value[y, b]
                        d_value[y, b] += w * d_value[z, b] * value[x, b]
                    if dual:
                        for b in range(width):
                            d_tangent[x, b] += w * (
                                d_tangent[z, b] * value[y, b] + d_value[z, b] * tangent[y, b]
                            )
                            d_tangent[y, b] += w * (
                                d_tangent[z, b] * value[x, b] + d_value[z, b] * tangent[x, b]
                            )


@njit(cache=True, nogil=True, error_model="numpy")
@no_type_check
def run(tape, evidence, by_posterior, by_log_z, faint, result, log_z):
    """Fill ``result`` with posteriors, or with the gradient by the evidence if gradients are given.

    ``by_posterior`` (B, K) and ``by_log_z`` (B,) are gradients with respect to the posteriors and to
    the log-probability of the evidence, or empty. Samples whose ``log_z`` is NaN were not computed.

    With q = d log Z / d evidence, a posterior is evidence * q, so its gradient g pulls back to
    g * q + D q, where D is the derivative in the direction evidence * g: the tangents.
    """
    dual = by_posterior.size > 0
    width = min(BLOCK, (evidence.shape[0] + 7) // 8 * 8)
    n_evidence = tape.first[-1]
    value = np.empty((tape.n_rows, width), evidence.dtype)
    d_value = np.empty_like(value)
    tangent = np.empty_like(value) if dual else np.empty((n_evidence, width), evidence.dtype)
    d_tangent = np.empty_like(value) if dual else np.empty((n_evidence, width), evidence.dtype)
    scale = np.empty((tape.steps.shape[0], width), evidence.dtype)
    inverse_top = np.empty((tape.first.size - 1, width), evidence.dtype)
    block_log_z = np.empty(width, evidence.dtype)
    for start in range(0, evidence.shape[0], width):
        n = min(width, evidence.shape[0] - start)
        _load(evidence, by_posterior, start, n, tape.first, value, tangent, block_log_z, faint, inverse_top)
        _collect(tape, value, tangent, scale, block_log_z, faint, dual, width)
        _distribute(tape, value, tangent, scale, d_value, d_tangent, dual, width)
        for b in range(n):
            log_z[start + b] = block_log_z[b]
            if not dual:
                for r in range(n_evidence):
                    result[start + b, r] = value[r, b] * d_value[r, b]
                continue
            change = -by_log_z[start + b]
            for r in tape.roots:
                change += tangent[r, b]
            for v in range(tape.first.size - 1):
                for r in range(tape.first[v], tape.first[v + 1]):
                    slope = d_value[r, b] * (by_posterior[start + b, r] - change) + d_tangent[r, b]
                    result[start + b, r] = slope * inverse_top[v, b]


@njit(cache=True, nogil=True, error_model="numpy")
@no_type_check
def count(tape, evidence, case_weights, faint, totals, log_z):
    """Add up the posterior of every term of every sum: expected counts of the buckets, by weight of case.

    Samples whose ``log_z`` is NaN were not counted.
    """
    width = min(BLOCK, (evidence.shape[0] + 7) // 8 * 8)
    value = np.empty((tape.n_rows, width), evidence.dtype)
    d_value = np.empty_like(value)
    unused = np.empty((tape.first[-1], width), evidence.dtype)
    none = np.empty((0, 0), evidence.dtype)
    scale = np.empty((tape.steps.shape[0], width), evidence.dtype)
    inverse_top = np.empty((tape.first.size - 1, width), evidence.dtype)
    share = np.empty(width, evidence.dtype)
    block_log_z = np.empty(width, evidence.dtype)
    for start in range(0, evidence.shape[0], width):
        n = min(width, evidence.shape[0] - start)
        _load(evidence, none, start, n, tape.first, value, unused, block_log_z, faint, inverse_top)
        _collect(tape, value, unused, scale, block_log_z, faint, False, width)
        _distribute(tape, value, unused, scale, d_value, unused, False, width)
        share[:] = 0.0
        for b in range(n):
            log_z[start + b] = block_log_z[b]
            if not np.isnan(block_log_z[b]):
                share[b] = case_weights[start + b]
        for step in range(tape.steps.shape[0]):
            kind, n_out, n_terms, out, w0, x0, y0 = tape.steps[step]
            if kind == JOIN:
                continue
            for i in range(n_out * n_terms):
                z, x = out + i // n_terms, tape.rows[x0 + i]
                total = 0.0
                if kind == SUM1:
                    for b in range(width):
                        total += share[b] * value[x, b] * d_value[z, b]
                else:
                    y = tape.rows[y0 + i]
                    for b in range(width):
                        total += share[b] * value[x, b] * value[y, b] * d_value[z, b]
                totals[w0 + i] += tape.weights[w0 + i] * total
