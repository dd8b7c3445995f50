// Diagonal recurrences as convolutions: with many modes, the kernel of a channel, its response to
// an impulse, costs less than the states of every example.
#pragma once

#include "kernels/scan/diagonal_scan.h"

namespace lra::kernels {

// diagonal_scan_forward() and diagonal_scan_backward() use this path when it is faster. That
// depends on shapes alone, also on the number of examples.
template <typename T>
bool is_faster_by_convolution(const DiagonalScan<T>& p);

// The same functions; the recurrence computes the kernel and takes its gradient back to the
// parameters. Error against fp64 (diagonal_scan_test.cpp): that of transforms.h, which follows the
// norms of x and kernel and not single outputs. Memory beyond the arguments: that of transforms.h
// for kernels of 2 length numbers, and four such kernels.
template <typename T>
void scan_forward_by_convolution(const DiagonalScan<T>& p, T* y);
template <typename T>
void scan_backward_by_convolution(const DiagonalScanBackward<T>& p);

// The recurrence itself.
template <typename T>
void recurrence_forward(const DiagonalScan<T>& p, T* y);
template <typename T>
void recurrence_backward(const DiagonalScanBackward<T>& p);

}  // namespace lra::kernels
