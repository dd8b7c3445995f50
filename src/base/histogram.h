// Histograms as TensorBoard draws them: buckets whose limits grow by a tenth, around zero.
#pragma once

#include <span>
#include <vector>

namespace lra {

struct Histogram {
  double min = 0, max = 0, count = 0, sum = 0, sum_squares = 0;  // of the finite values
  // Bucket i holds values in [limits[i-1], limits[i]); the first begins at minus infinity. Only the
  // stretch from the first to the last bucket that holds something, and one empty bucket before it.
  std::vector<double> limits, counts;
};

// Values that are not finite are left out.
Histogram histogram_of(std::span<const float> values);

}  // namespace lra
