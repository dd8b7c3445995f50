// Compares examples of two splits, or of data and a generator, by figures of each example.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace lra::tasks {

// A figure over many examples.
struct Spread {
  double mean = 0, deviation = 0;
  int64_t count = 0;

  static Spread of(const std::vector<double>& values);
};

// True if the means are apart by more than so many of the larger deviation, and by more than six
// standard errors with it. The halves of IMDb are 0.03 deviations apart in length, those of
// CIFAR-10 0.01 in brightness.
bool is_shifted(const Spread& a, const Spread& b, double fewest_deviations = 0.25);

// Returns a sentence for each of val and test whose examples differ from those of train in their
// number of tokens, in the mean or deviation of their tokens or, for a user's own numbers, in the
// difference of neighboring ones, as pixels in another order do. Two parts of one set of data are
// alike; one that was cleaned, darkened or inverted is not. Splits of fewer than 200 examples are
// not judged. Own data, which may be split by time or place, is judged by whole deviations; of its
// values only the number counts.
std::vector<std::string> doubts_of_shift(const Dataset& dataset);

}  // namespace lra::tasks
