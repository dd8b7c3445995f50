#include "tasks/pathfinder/generator.h"

#include <algorithm>
#include <numbers>
#include <optional>

#include "base/error.h"
#include "base/rng.h"
#include "tasks/pathfinder/occupancy.h"

namespace lra::tasks {
namespace {

// Limits of the released generator.
constexpr int kSeedTrials = 3;
constexpr int kDashDraws = 3;
constexpr int kDistractorTries = 5;
// Least sum of the weights of all turns: 1e-4, with the occupancy's 0 .. 255 as 0 .. 1.
constexpr uint32_t kLeastWeight = 255 * PathfinderTables::kWhole / 10000;

struct PlacedDash {
  int shape = 0;
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
        occupancy_(geometry.size, geometry.padding, tables.margin),
        sums_(tables.candidates.size()) {}

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
  const PathfinderTables::Shape& shape(int index) const {
    return tables_.shapes[static_cast<size_t>(index)];
  }

  void merge_newest(const Contour& contour) {
    const PlacedDash& newest = contour.dashes.back();
    occupancy_.add(shape(newest.shape).footprint, newest.start);
  }

  // Places the first dash, of a random angle, at a start that `draw_start` chooses for its seed;
  // gives up when there is none.
  template <typename DrawStart>
  bool start_contour(Contour& contour, const DrawStart& draw_start) {
    for (int trial = 0; trial < kSeedTrials; ++trial) {
      const uint32_t degree = random_.below(PathfinderTables::kNumDegrees);
      const PathfinderTables::Seed& seed = tables_.seeds[degree];
      const std::optional<Point> start = draw_start(seed);
      if (!start) return false;
      const Point head = round_up(*start, seed.head), pivot = round_up(head, seed.pivot);
      if (!occupancy_.contains(head) || !occupancy_.contains(pivot)) continue;
      contour.origin = *start;
      contour.pivot = pivot;
      contour.direction = static_cast<int>(degree);
      contour.dashes.assign(1, {.shape = seed.shape, .start = *start});
      return true;
    }
    return false;
  }

  bool start_first_target() {
    using Start = std::optional<Point>;
    return start_contour(targets_[0], [&](const PathfinderTables::Seed& seed) -> Start {
      const auto num_places = static_cast<uint32_t>(seed.rows * seed.columns);
      if (num_places == 0) return std::nullopt;
      const auto place = static_cast<int>(random_.below(num_places));
      return seed.place + Point{place / seed.columns, place % seed.columns};
    });
  }

  // Starts the second target at the seed distance from the first, over any other pixels.
  bool start_second_target() {
    return start_contour(targets_[1], [&](const PathfinderTables::Seed&) {
      const double angle = random_.below(360) * std::numbers::pi / 180;
      return round_nearest(targets_[0].origin, displacement(angle, geometry_.seed_distance));
    });
  }

  bool start_distractor(Contour& contour) {
    using Start = std::optional<Point>;
    const int64_t num_pixels = int64_t{settings_.size} * settings_.size;
    if (100 * occupancy_.num_untaken() < num_pixels) return false;
    return start_contour(contour, [&](const PathfinderTables::Seed& seed) -> Start {
      // The release blocks a frame of one pixel for this; every size's padding covers it.
      if (seed.kernel.empty()) return std::nullopt;
      occupancy_.find_free(seed.kernel);
      if (occupancy_.num_free() == 0) return std::nullopt;
      return occupancy_.free_pixel(random_.below(static_cast<uint32_t>(occupancy_.num_free())));
    });
  }

  // Sets the running sums of the turns' weights around `pivot`; returns the whole sum.
  uint32_t weigh_turns(Point pivot, const std::vector<PathfinderTables::Turn>& turns) {
    const int radius = geometry_.dash_length + tables_.margin;
    const int low = std::min(pivot.y, pivot.x), high = std::max(pivot.y, pivot.x);
    if (low < -radius || high >= geometry_.size + radius) return 0;
    const uint8_t* taken = occupancy_.dilated(pivot);
    uint32_t sum = 0;
    for (size_t i = 0; i < turns.size(); ++i) {
      sum += turns[i].weight * (255U - taken[turns[i].offset]);
      sums_[i] = sum;
    }
    return sum;
  }

  // Adds one dash. The contour's newest dash enters the occupancy only when the next one is placed,
  // so a dash never collides with its predecessor.
  bool extend(Contour& contour) {
    const auto& direction = tables_.directions[static_cast<size_t>(contour.direction)];
    const Point pivot = round_up(contour.pivot, direction.advance);
    const uint32_t sum = weigh_turns(pivot, direction.turns);
    if (sum < kLeastWeight) return false;
    for (int draw = 0; draw < kDashDraws; ++draw) {
      const uint32_t target = random_.below(sum);
      size_t turn = 0;
      while (sums_[turn] <= target) ++turn;
      const int chosen = direction.turns[turn].candidate;
      const auto& candidate = tables_.candidates[static_cast<size_t>(chosen)];
      const Point start = pivot + candidate.at;
      if (!occupancy_.has_room(shape(candidate.shape).footprint, start)) continue;
      merge_newest(contour);
      contour.dashes.push_back({.shape = candidate.shape, .start = start});
      contour.pivot = pivot;
      contour.direction = PathfinderTables::kNumDegrees + chosen;
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
    const Dash& picture = shape(placed.shape).dash;
    const int side = 2 * picture.half + 1;
    for (int y = -picture.half; y <= picture.half; ++y) {
      for (int x = -picture.half; x <= picture.half; ++x) {
        const Point p = placed.start + Point{y, x};
        if (!occupancy_.contains(p)) continue;
        const float value =
            picture.picture[static_cast<size_t>((y + picture.half) * side + x + picture.half)];
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
      if (canvas[i] > 0) image.pixels[i] = static_cast<uint8_t>(255.0 * canvas[i] / most);
    }
  }

  const PathfinderSettings& settings_;
  const PathfinderGeometry& geometry_;
  const PathfinderTables& tables_;
  RandomStream& random_;
  Occupancy occupancy_;
  std::vector<uint32_t> sums_;
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
