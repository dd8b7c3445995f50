// Diagonal recurrences as convolutions: with many modes, the kernel of a channel, its response to
// an impulse, costs less than the states of every example.
#pragma once

#include "kernels/scan/diagonal_scan.h"

namespace lra::kernels {

// diagonal_scan_forward() and diagonal_scan_backward() take this way if it is faster, which depends
// on shapes alone.
template <typename T>
bool is_faster_by_convolution(const DiagonalScan<T>& p);

// The same functions; the recurrence computes the kernel and takes its gradient back to the
// parameters. Error against fp64 (scan_by_convolution_test.cpp): that of the recurrence. Memory
// beyond the arguments: see kernels/convolution/transforms.h, for kernels of 2 length numbers.
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
