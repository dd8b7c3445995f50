#include "tasks/own/precision.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "tasks/own/channel_tally.h"

namespace lra::tasks {
namespace {

// The distance to the next larger number of float32.
double step_at(double magnitude) {
  const auto number = static_cast<float>(magnitude);
  return double{std::nextafter(number, INFINITY)} - number;
}

}  // namespace

void PrecisionLoss::add_channel(const OwnSequence& sequence, size_t channel) {
  constexpr double kKept = 0.01;       // root mean square of the error, as a share of the deviation
  constexpr double kConstant = 1e-12;  // noise of float64, as a share of the magnitude
  constexpr double kNoise = 2;         // noise of float32, in steps
  const size_t step = channels_.size();
  const double first = sequence.numbers[channel];
  double count = 0, sum = 0, squares = 0, lost = 0, magnitude = 0;
  bool has_fraction = false;
  for (size_t at = channel; at < sequence.numbers.size(); at += step) {
    const double rest = sequence.lost.empty() ? 0 : sequence.lost[at];
    const double number = sequence.numbers[at], from_first = number - first + rest;
    ++count;
    sum += from_first;
    squares += from_first * from_first;
    lost += rest * rest;
    magnitude = std::max(magnitude, std::abs(number));
    has_fraction = has_fraction || std::nearbyint(number) != number;
  }
  const double deviation = std::sqrt(std::max(0.0, squares / count - std::pow(sum / count, 2)));
  if (deviation <= kConstant * magnitude) return;
  Channel& found = channels_[channel];
  ++found.num_varying;
  double error = std::sqrt(lost / count);
  // Files of float32 lost it before. Whole numbers may be exact.
  const double grid = step_at(magnitude);
  if (lost == 0 && has_fraction && deviation > kNoise * grid) error = grid / std::sqrt(12.0);
  if (error <= kKept * deviation) return;
  if (found.num_lossy++ > 0) return;
  found.deviation = deviation;
  found.magnitude = magnitude;
}

void PrecisionLoss::add(const OwnSequence& sequence, int64_t channels) {
  if (channels < 1 || sequence.numbers.empty()) return;
  channels_.resize(static_cast<size_t>(channels));  // the same for all, or they are refused
  ++num_sequences_;
  for (size_t c = 0; c < channels_.size(); ++c) add_channel(sequence, c);
}

std::string PrecisionLoss::doubt() const {
  constexpr int64_t kFewest = 10, kMostPerLossy = 20;
  for (size_t c = 0; c < channels_.size(); ++c) {
    const Channel& channel = channels_[c];
    if (channel.num_lossy < kFewest || 2 * channel.num_lossy <= channel.num_varying ||
        kMostPerLossy * channel.num_lossy < num_sequences_) {
      continue;
    }
    std::ostringstream text;
    text << "values" << of_channel(c, static_cast<int64_t>(channels_.size()))
         << " are stored as float32, which has steps of " << step_at(channel.magnitude) << " at "
         << channel.magnitude << ", and deviate by " << channel.deviation
         << " within an example: subtract an offset from them before the import";
    return text.str();
  }
  return "";
}

}  // namespace lra::tasks
