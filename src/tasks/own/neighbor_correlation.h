// Tells measurements, of which neighbors are alike, from names of things.
#pragma once

namespace lra::tasks {

class NeighborCorrelation {
 public:
  // Adds two numbers at neighboring positions.
  void add(double before, double number) {
    ++num_pairs_;
    sum_ += number;
    squares_ += number * number;
    products_ += before * number;
  }
  bool is_known() const { return num_pairs_ > 0; }
  // Returns the correlation; 0 for numbers that never vary.
  double value() const {
    if (num_pairs_ == 0) return 0;
    const double mean = sum_ / num_pairs_;
    const double variance = squares_ / num_pairs_ - mean * mean;
    return variance > 0 ? (products_ / num_pairs_ - mean * mean) / variance : 0;
  }

 private:
  double num_pairs_ = 0, sum_ = 0, squares_ = 0, products_ = 0;  // of the second of each pair
};

}  // namespace lra::tasks
