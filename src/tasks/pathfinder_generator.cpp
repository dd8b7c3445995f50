#include "tasks/pathfinder_generator.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "base/error.h"
#include "base/rng.h"
#include "tasks/occupancy.h"

namespace lra::tasks {
namespace {

// Limits of the released generator.
constexpr int kSeedTrials = 3;
constexpr int kDashDraws = 3;
constexpr int kDistractorTries = 5;
constexpr double kLeastWeight = 1e-4;  // of all candidates together

struct PlacedDash {
  int dash = 0;
  Point start;
};

// A contour while it grows.
struct Contour {
  Point origin, tip;  // the two ends that a marker can stand on
  Point pivot;
  int direction = 0;
  std::vector<PlacedDash> dashes;
};

class ImageDrawer {
 public:
  ImageDrawer(const PathfinderSettings& settings, const PathfinderGeometry& geometry,
              const PathfinderTables& tables, RandomStream& random)
      : settings_(settings),
        geometry_(geometry),
        tables_(tables),
        random_(random),
        occupancy_(geometry.size, geometry.padding),
        weights_(tables.candidates.size()) {}

  void draw(PathfinderImage& image, const Reduction& reduction) {
    do ++image.num_attempts;
    while (!try_targets());
    for (int i = 0; i < geometry_.num_distractors; ++i) {
      for (int attempt = 0; attempt < kDistractorTries; ++attempt) {
        if (!try_distractor()) continue;
        ++image.num_distractors;
        break;
      }
    }
    const size_t first = random_.below(2);
    const size_t second = image.label == 1 ? first : 1 - first;
    image.markers = {targets_[first].origin, targets_[second].tip};
    render(image, reduction);
  }

 private:
  const Dash& dash(int index) const { return tables_.dashes[static_cast<size_t>(index)]; }

  void merge_newest(const Contour& contour) {
    const PlacedDash& newest = contour.dashes.back();
    occupancy_.add(dash(newest.dash), newest.start);
  }

  bool start_contour(Contour& contour, uint32_t degree, Point start) const {
    const PathfinderTables::Seed& seed = tables_.seeds[degree];
    if (!occupancy_.contains(start + seed.head) || !occupancy_.contains(start + seed.pivot)) {
      return false;
    }
    contour.origin = start;
    contour.pivot = start + seed.pivot;
    contour.direction = static_cast<int>(degree);
    contour.dashes.assign(1, {.dash = seed.dash, .start = start});
    return true;
  }

  bool start_first_target() {
    for (int trial = 0; trial < kSeedTrials; ++trial) {
      const uint32_t degree = random_.below(PathfinderTables::kNumDegrees);
      const std::vector<Point>& places = tables_.seeds[degree].places;
      if (places.empty()) return false;
      const Point start = places[random_.below(static_cast<uint32_t>(places.size()))];
      if (start_contour(targets_[0], degree, start)) return true;
    }
    return false;
  }

  // Stands at the seed distance from the first, over whatever is there.
  bool start_second_target() {
    for (int trial = 0; trial < kSeedTrials; ++trial) {
      const uint32_t degree = random_.below(PathfinderTables::kNumDegrees);
      const double angle = random_.below(360) * std::numbers::pi / 180;
      const Point start =
          targets_[0].origin +
          Point{static_cast<int>(std::lround(geometry_.seed_distance * std::sin(angle))),
                static_cast<int>(std::lround(geometry_.seed_distance * std::cos(angle)))};
      if (start_contour(targets_[1], degree, start)) return true;
    }
    return false;
  }

  bool start_distractor(Contour& contour) {
    const int64_t num_pixels = int64_t{settings_.size} * settings_.size;
    for (int trial = 0; trial < kSeedTrials; ++trial) {
      if (100 * occupancy_.num_untaken() < num_pixels) return false;
      const uint32_t degree = random_.below(PathfinderTables::kNumDegrees);
      // The release blocks a frame of one pixel for this; every size's padding covers it.
      occupancy_.find_free(tables_.seeds[degree].kernel);
      if (occupancy_.num_free() == 0) return false;
      const Point start =
          occupancy_.free_pixel(random_.below(static_cast<uint32_t>(occupancy_.num_free())));
      if (start_contour(contour, degree, start)) return true;
    }
    return false;
  }

  // Sets the running sums of the candidates' weights around `pivot`; returns the whole sum.
  double weigh_candidates(Point pivot, int direction) {
    const std::vector<double>& turns = tables_.directions[static_cast<size_t>(direction)].weight;
    double sum = 0;
    for (size_t i = 0; i < weights_.size(); ++i) {
      const Point at = pivot + tables_.candidates[i].at;
      if (turns[i] > 0 && occupancy_.contains(at)) {
        const int occupied = occupancy_.largest(at, tables_.disc);
        sum += turns[i] * (255 - occupied) / 255;
      }
      weights_[i] = sum;
    }
    return sum;
  }

  // Adds one dash. The contour's newest dash enters the occupancy only when the next one stands, so
  // a dash never collides with its predecessor.
  bool extend(Contour& contour) {
    const Point pivot =
        contour.pivot + tables_.directions[static_cast<size_t>(contour.direction)].advance;
    const double sum = weigh_candidates(pivot, contour.direction);
    if (sum < kLeastWeight) return false;
    for (int draw = 0; draw < kDashDraws; ++draw) {
      const double target = random_.uniform() * sum;
      const auto chosen = static_cast<size_t>(
          std::upper_bound(weights_.begin(), weights_.end(), target) - weights_.begin());
      // Rounding may leave the target at the sum itself: then it is the last one with weight.
      const auto last = static_cast<size_t>(
          std::lower_bound(weights_.begin(), weights_.end(), sum) - weights_.begin());
      const PathfinderTables::Candidate& candidate = tables_.candidates[std::min(chosen, last)];
      const Point start = pivot + candidate.at;
      if (!occupancy_.has_room(dash(candidate.dash), start)) continue;
      merge_newest(contour);
      contour.dashes.push_back({.dash = candidate.dash, .start = start});
      contour.pivot = pivot;
      contour.direction = candidate.direction;
      contour.tip = start;
      return true;
    }
    return false;
  }

  bool try_targets() {
    if (!start_first_target() || !start_second_target()) return false;
    for (int length = 1; length < settings_.contour_length(); ++length) {
      if (extend(targets_[0]) && extend(targets_[1])) continue;
      occupancy_.roll_back();
      return false;
    }
    // The last dash of the first contour is left out, as in the release: distractors may touch it.
    merge_newest(targets_[1]);
    occupancy_.commit();
    return true;
  }

  bool try_distractor() {
    Contour contour;
    if (!start_distractor(contour)) return false;
    for (int length = 1; length < settings_.distractor_length(); ++length) {
      if (extend(contour)) continue;
      occupancy_.roll_back();
      return false;
    }
    merge_newest(contour);
    occupancy_.commit();
    distractors_.insert(distractors_.end(), contour.dashes.begin(), contour.dashes.end());
    return true;
  }

  void paint(const PlacedDash& placed, double contrast, std::vector<float>& canvas) const {
    const Dash& shape = dash(placed.dash);
    const int side = 2 * shape.half + 1;
    for (int y = -shape.half; y <= shape.half; ++y) {
      for (int x = -shape.half; x <= shape.half; ++x) {
        const Point p = placed.start + Point{y, x};
        if (!occupancy_.contains(p)) continue;
        const float value =
            shape.picture[static_cast<size_t>((y + shape.half) * side + x + shape.half)];
        float& pixel = canvas[static_cast<size_t>(p.y * settings_.size + p.x)];
        pixel = std::max(pixel, static_cast<float>(contrast * value));
      }
    }
  }

  // The archive's grey values: dashes relative to the brightest pixel of all dashes, then discs,
  // then 255 for the brightest pixel of the image, rounded down.
  void render(PathfinderImage& image, const Reduction& reduction) const {
    const auto num_pixels =
        static_cast<size_t>(settings_.size) * static_cast<size_t>(settings_.size);
    std::vector<float> canvas(num_pixels);
    for (const Contour& contour : targets_) {
      for (const PlacedDash& placed : contour.dashes) {
        paint(placed, geometry_.target_contrast, canvas);
      }
    }
    for (const PlacedDash& placed : distractors_) paint(placed, 1, canvas);
    const float brightest = *std::max_element(canvas.begin(), canvas.end());
    LRA_CHECK_GT(brightest, 0.0F);
    for (float& pixel : canvas) pixel /= brightest;
    for (const Point marker : image.markers) {
      add_disc(reduction, marker, geometry_.marker_radius, canvas);
    }
    const double most = *std::max_element(canvas.begin(), canvas.end());
    image.pixels.resize(num_pixels);
    for (size_t i = 0; i < num_pixels; ++i) {
      image.pixels[i] = static_cast<uint8_t>(255.0 * canvas[i] / most);
    }
  }

  const PathfinderSettings& settings_;
  const PathfinderGeometry& geometry_;
  const PathfinderTables& tables_;
  RandomStream& random_;
  Occupancy occupancy_;
  std::vector<double> weights_;
  std::array<Contour, 2> targets_;
  std::vector<PlacedDash> distractors_;
};

}  // namespace

PathfinderGenerator::PathfinderGenerator(const PathfinderSettings& settings, uint64_t seed)
    : settings_(settings),
      geometry_(pathfinder_geometry(settings.size)),
      seed_(seed),
      reduction_(kFineScale * settings.size, settings.size) {
  LRA_CHECK(settings.difficulty >= 0 && settings.difficulty < 3);
  for (const int margin : geometry_.margins) {
    if (tables_.empty() || tables_.back().margin != margin) tables_.emplace_back(geometry_, margin);
  }
}

PathfinderImage PathfinderGenerator::draw(int64_t index) const {
  LRA_CHECK(index >= 0 && index <= INT64_C(0xFFFFFFFF));
  RandomStream random(derive_key(seed_, RandomUse::kSample, static_cast<uint32_t>(settings_.size),
                                 static_cast<uint32_t>(settings_.difficulty),
                                 static_cast<uint32_t>(index)));
  PathfinderImage image;
  image.label = static_cast<int>(random.below(2));
  const PathfinderTables& tables = tables_[random.below(static_cast<uint32_t>(tables_.size()))];
  image.margin = tables.margin;
  ImageDrawer(settings_, geometry_, tables, random).draw(image, reduction_);
  return image;
}

}  // namespace lra::tasks
