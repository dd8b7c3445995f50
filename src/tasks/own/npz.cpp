#include "tasks/own/npz.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/quoted.h"
#include "base/resources.h"
#include "base/text_format.h"
#include "data/stopping.h"
#include "io/input_file.h"
#include "tasks/own/columns.h"
#include "tasks/own/npy.h"

namespace lra::tasks {
namespace {

constexpr std::string_view kEnding = ".npy";
constexpr std::array<std::string_view, 2> kLengthNames = {"lengths", "length"};

struct FreeArchive {
  void operator()(archive* handle) const { archive_read_free(handle); }
};

constexpr size_t kBlockBytes = size_t{1} << 20;

size_t read_block(archive* handle, std::span<std::byte> block, const std::string& where) {
  size_t filled = 0;
  while (filled < block.size()) {
    throw_if_stopped();
    const la_ssize_t size = archive_read_data(handle, block.data() + filled, block.size() - filled);
    if (size < 0) refuse_data(where, "is damaged", "an array of a complete .npz file");
    if (size == 0) break;
    filled += static_cast<size_t>(size);
  }
  return filled;
}

// The bytes of the present entry, in memory that is not needed for anything else. The array's
// header says how many there are; examples will hold four bytes for each number.
std::vector<std::byte> read_entry(archive* handle, const std::string& where, int64_t& budget) {
  std::vector<std::byte> content(kBlockBytes);
  content.resize(read_block(handle, content, where));
  const NpyHeader header = read_npy_header(content, where);
  const uint64_t needed = header.total_bytes() + sizeof(float) * static_cast<uint64_t>(header.size);
  if (needed > static_cast<uint64_t>(std::max<int64_t>(budget, 0))) {
    refuse_data(where, "does not fit into memory: it takes " + human_bytes(needed),
                "at most " + human_bytes(static_cast<uint64_t>(std::max<int64_t>(budget, 0))),
                "import a part of it, or use a machine with more memory");
  }
  budget -= static_cast<int64_t>(needed);
  const size_t read = content.size();
  // One byte more finds out whether more follows.
  content.resize(std::max<size_t>(read, header.total_bytes() + 1));
  content.resize(read + read_block(handle, std::span(content).subspan(read), where));
  return content;
}

using Arrays = std::map<std::string, NpyArray>;

Arrays read_arrays(const std::string& path) {
  const InputFile readable(path);
  const std::unique_ptr<archive, FreeArchive> handle(archive_read_new());
  LRA_CHECK(handle != nullptr);
  archive_read_support_format_zip(handle.get());
  const std::string expected = "a file of numpy.savez";
  if (archive_read_open_filename(handle.get(), path.c_str(), kBlockBytes) != ARCHIVE_OK) {
    refuse_data(path, "is not an .npz file", expected);
  }
  Arrays arrays;
  int64_t budget = available_memory_bytes();
  archive_entry* entry = nullptr;
  for (int status; (status = archive_read_next_header(handle.get(), &entry)) != ARCHIVE_EOF;) {
    const char* found = status < ARCHIVE_WARN ? nullptr : archive_entry_pathname(entry);
    if (!found) refuse_data(path, "is not an .npz file, or is damaged", expected);
    std::string name = found;
    if (name.ends_with(kEnding)) name.resize(name.size() - kEnding.size());
    const std::string where = path + " array " + in_quotes(name);
    if (arrays.contains(name)) refuse_data(where, "occurs twice", "one");
    arrays.emplace(name, NpyArray(read_entry(handle.get(), where, budget), where));
  }
  if (arrays.empty()) refuse_data(path, "holds no array", expected);
  return arrays;
}

// The split that the ending of an array's name says, as _train, and the name without it.
std::pair<std::string, std::string> parted_name(const std::string& name) {
  const size_t bar = name.rfind('_');
  const std::string split = bar == std::string::npos ? "" : split_of_name(name.substr(bar + 1));
  return {split, split.empty() ? name : name.substr(0, bar)};
}

// Arrays of one split, or of all examples, under their names without the split's.
class Table {
 public:
  void add(const std::string& name, const NpyArray& array) {
    names_.push_back(name);
    arrays_.push_back(&array);
  }

  // Refuses `other`, of another split, if it lacks an array with an element for each example.
  void refuse_what_lacks(const Table& other, const std::string& other_split,
                         const std::string& path) const {
    for (size_t i = 0; i < names_.size(); ++i) {
      const auto is_as_long = [&](const NpyArray* array) {
        return array != arrays_[i] && length_of(*array) == length_of(*arrays_[i]);
      };
      if (std::ranges::none_of(arrays_, is_as_long)) continue;
      if (std::ranges::find(other.names_, names_[i]) != other.names_.end()) continue;
      refuse_data(path, "has no array " + in_quotes(names_[i] + "_" + other_split),
                  "the arrays of every split: " + in_quotes(arrays_[i]->name()) + " is there");
    }
  }

  // `beside`: arrays that name no split, if others do.
  void read(const std::string& path, const std::string& split, Schema& schema, const Table& beside,
            const OwnExampleSink& sink) const {
    const Columns columns =
        schema.columns_of(names_, path, TableKind::kArrays, [](size_t) { return false; });
    const NpyArray& labels = *arrays_[columns.label];
    const int64_t count = length_of(labels);
    const NpyArray* lengths = nullptr;
    for (size_t i = 0; i < names_.size(); ++i) {
      const bool is_used = i == columns.label || columns.split == i ||
                           std::ranges::find(columns.sequences, i) != columns.sequences.end();
      if (are_lengths(names_[i])) {
        lengths = arrays_[i];
      } else if (!is_used && length_of(*arrays_[i]) == count) {
        refuse_unread(*arrays_[i]);
      }
    }
    for (size_t i = 0; i < beside.names_.size(); ++i) {
      const bool is_per_example = length_of(*beside.arrays_[i]) == count;
      if (is_per_example || are_lengths(beside.names_[i])) refuse_unread(*beside.arrays_[i]);
    }
    if (labels.shape().size() != 1) {
      refuse_data(labels.name(), "has " + std::to_string(labels.shape().size()) + " dimensions",
                  "[N], a label for each example");
    }
    for (const NpyArray* array : {lengths, columns.split ? arrays_[*columns.split] : nullptr}) {
      if (array) expect_count(*array, count);
    }
    for (const size_t column : columns.sequences) {
      expect_count(*arrays_[column], count);
      if (lengths) refuse_cut_values(*arrays_[column], *lengths);
    }
    for (int64_t i = 0; i < count; ++i) {
      const std::string where = path + " example " + std::to_string(i);
      OwnExample example{.label = label_of(labels, i), .split = split};
      for (const size_t column : columns.sequences) {
        example.sequences.push_back(sequence(*arrays_[column], i, lengths, where));
      }
      if (columns.split) example.split = arrays_[*columns.split]->text(i);
      sink(where, std::move(example));
    }
  }

 private:
  static int64_t length_of(const NpyArray& array) {
    return array.shape().empty() ? 0 : array.shape()[0];
  }

  static bool are_lengths(const std::string& name) {
    return std::ranges::find(kLengthNames, name) != kLengthNames.end();
  }

  // An array with an element for each example may be a mask, or lengths under another name. Other
  // arrays, such as names of classes, may accompany the examples.
  [[noreturn]] static void refuse_unread(const NpyArray& array) {
    refuse_data(array.name(), "has an element for each example, but is not read",
                "sequences, labels, 'lengths' and 'split', each with the ending of its split if "
                "others have one",
                "remove it from the file, or rename it");
  }

  static std::string label_of(const NpyArray& labels, int64_t example) {
    if (labels.is_text() || labels.is_whole()) return labels.text(example);
    const double label = labels.number(example);
    if (std::nearbyint(label) == label && std::abs(label) < 1e15)
      return std::to_string(static_cast<int64_t>(label));
    refuse_data(labels.name(), "holds the label " + short_number(label),
                "names or whole numbers of classes");
  }

  static void expect_count(const NpyArray& array, int64_t count) {
    if (length_of(array) == count) return;
    refuse_data(array.name(), "has " + std::to_string(length_of(array)) + " elements",
                std::to_string(count) + ", as there are labels");
  }

  // Numbers beyond the lengths must be padding: in each channel the same one up to the end of the
  // example, or at the same position of others. The first position may hold a mark of the end, the
  // same one in all examples.
  static void refuse_cut_values(const NpyArray& array, const NpyArray& lengths) {
    constexpr int64_t kLargestShare = 10;
    const std::vector<int64_t>& shape = array.shape();
    if (array.is_text() || lengths.is_text() || shape.size() < 2 || shape.size() > 3) return;
    const int64_t channels = shape.size() == 3 ? shape[2] : 1, row = shape[1] * channels;
    std::vector<std::optional<double>> usual(static_cast<size_t>(row)),
        mark(static_cast<size_t>(channels));
    int64_t num_cut = 0;
    for (int64_t i = 0; i < shape[0]; ++i) {
      const double length = lengths.number(i);
      const bool is_length = length >= 0 && length <= static_cast<double>(shape[1]);
      if (!is_length || std::floor(length) != length) return;  // refused later
      bool is_cut = false;
      const int64_t begin = static_cast<int64_t>(length) * channels;
      for (int64_t k = begin; k < row; ++k) {
        const double value = array.number(i * row + k);
        const double last = array.number((i + 1) * row - channels + k % channels);
        std::optional<double>& at_place = usual[static_cast<size_t>(k)];
        if (!at_place) at_place = value;
        const auto is = [&](double other) {
          return value == other || (std::isnan(value) && std::isnan(other));
        };
        if (is(last) || is(*at_place)) continue;
        std::optional<double>& of_mark = mark[static_cast<size_t>(k % channels)];
        if (k < begin + channels && !of_mark) of_mark = value;
        is_cut = is_cut || k >= begin + channels || !is(*of_mark);
      }
      num_cut += is_cut;
    }
    if (num_cut * kLargestShare <= shape[0]) return;
    refuse_data(array.name(),
                "has different numbers beyond the 'lengths' in " + std::to_string(num_cut) +
                    " of " + std::to_string(shape[0]) + " examples",
                "padding, the same number at all positions",
                "look whether the lengths are those of these examples");
  }

  static OwnSequence sequence(const NpyArray& array, int64_t example, const NpyArray* lengths,
                              const std::string& where) {
    const std::vector<int64_t>& shape = array.shape();
    if (array.is_text() && shape.size() == 1) return {.text = array.text(example)};
    if (array.is_text() || shape.size() < 2 || shape.size() > 3) {
      refuse_data(array.name(), "has " + std::to_string(shape.size()) + " dimensions",
                  "[N, L] or [N, L, C]: reshape pictures to sequences of pixels");
    }
    OwnSequence sequence{.channels = shape.size() == 3 ? shape[2] : 1};
    int64_t length = shape[1];
    if (lengths) {
      const double found = lengths->is_text() ? -1 : lengths->number(example);
      length = static_cast<int64_t>(found);
      if (static_cast<double>(length) != found || length < 0 || length > shape[1]) {
        refuse_data(lengths->name(), "holds the length " + short_number(found),
                    "whole numbers from 0 to " + std::to_string(shape[1]));
      }
    }
    const int64_t first = example * shape[1] * sequence.channels;
    sequence.numbers.reserve(static_cast<size_t>(length * sequence.channels));
    for (int64_t k = 0; k < length * sequence.channels; ++k) {
      add_number(array.number(first + k), array.is_whole(), where, sequence);
    }
    return sequence;
  }

  std::vector<std::string> names_;
  std::vector<const NpyArray*> arrays_;
};

}  // namespace

void read_npz(const std::string& path, Schema& schema, const OwnExampleSink& sink) {
  const Arrays arrays = read_arrays(path);
  std::map<std::string, Table> by_split;
  for (const auto& [name, array] : arrays) {
    const auto [split, short_name] = parted_name(name);
    by_split[split].add(short_name, array);
  }
  // Arrays without a split, such as names of classes, may accompany those with one.
  Table beside;
  if (by_split.size() > 1 && by_split.contains("")) {
    beside = std::move(by_split.at(""));
    by_split.erase("");
  }
  for (const auto& [split, table] : by_split) {
    for (const auto& [other, its_table] : by_split) table.refuse_what_lacks(its_table, other, path);
  }
  for (const auto& [split, table] : by_split) table.read(path, split, schema, beside, sink);
}

}  // namespace lra::tasks
