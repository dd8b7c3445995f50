#include "tasks/retrieval/pair_files.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/quoted.h"
#include "data/files.h"
#include "data/manifest.h"
#include "data/text_lines.h"
#include "io/input_file.h"

namespace lra::tasks {
namespace {

constexpr size_t kMaxIdBytes = 100;

[[noreturn]] void refuse(const std::string& path, int64_t line, const std::string& what,
                         const std::string& expected) {
  throw Error({.where = path + ":" + std::to_string(line), .what = what, .expected = expected});
}

FileSet file_set(int num_columns) {
  return {.title = num_columns == 5 ? "the files of pairs" : "the files of pairs without texts",
          .folders = {".", "tsv_data", "aan", "lra_release/tsv_data",
                      "lra_release/lra_release/tsv_data"},
          .files = {pair_file_name(0, num_columns), pair_file_name(1, num_columns),
                    pair_file_name(2, num_columns)}};
}

bool is_id(std::string_view id) { return !id.empty() && id.size() <= kMaxIdBytes; }

}  // namespace

std::string pair_file_name(size_t split, int num_columns) {
  constexpr std::array<const char*, 3> kSplits = {"train", "eval", "test"};
  return std::string("new_aan_pairs.") + kSplits.at(split) +
         (num_columns == 5 ? ".tsv" : ".only_ids.tsv");
}

PairLine parse_pair_line(std::string_view text, int num_columns, const std::string& path,
                         int64_t number) {
  std::array<std::string_view, 5> columns;
  std::string_view rest = text;
  for (int column = 0; column < num_columns; ++column) {
    const bool is_last = column + 1 == num_columns;
    const size_t tab = rest.find('\t');
    if ((tab == std::string_view::npos) != is_last) {
      refuse(
          path, number,
          "line has " + std::to_string(1 + std::count(text.begin(), text.end(), '\t')) + " columns",
          num_columns == 5 ? "label TAB id1 TAB id2 TAB text1 TAB text2" : "label TAB id1 TAB id2");
    }
    columns[static_cast<size_t>(column)] = rest.substr(0, tab);
    if (!is_last) rest.remove_prefix(tab + 1);
  }
  const std::string_view label = columns[0];
  const bool is_one = label == "1" || label == "1.0";
  if (!is_one && label != "0" && label != "0.0") {
    refuse(path, number, "label is " + in_quotes(label), "0, 1, 0.0 or 1.0");
  }
  for (const std::string_view id : {columns[1], columns[2]}) {
    if (!is_id(id)) {
      refuse(path, number, "the id of a paper has " + std::to_string(id.size()) + " bytes",
             "1 to " + std::to_string(kMaxIdBytes));
    }
  }
  return {.label = is_one,
          .ids = text.substr(0, label.size() + columns[1].size() + columns[2].size() + 2),
          .id1 = columns[1],
          .id2 = columns[2],
          .text1 = columns[3],
          .text2 = columns[4],
          .line = number};
}

void read_pairs(const std::string& path, int num_columns,
                const std::function<void(const PairLine&)>& sink) {
  const InputFile file(path);
  read_lines(reader_of(file), path, [&](std::string_view line, int64_t number, uint64_t) {
    sink(parse_pair_line(line, num_columns, path, number));
  });
}

struct PaperTexts::Index {
  struct Place {
    uint64_t offset = 0;
    size_t size = 0;
  };
  explicit Index(const std::string& path) : file(path) {}
  InputFile file;
  std::unordered_map<std::string, Place> places;  // by id
};

PaperTexts::PaperTexts(const std::string& source) : source_(source) {
  if (is_folder(source)) return;
  index_ = std::make_unique<Index>(source);
  read_lines(reader_of(index_->file), source,
             [&](std::string_view line, int64_t number, uint64_t offset) {
               const size_t tab = line.find('\t');
               if (tab == std::string_view::npos || !is_id(line.substr(0, tab))) {
                 refuse(source_, number, "line does not begin with an id and a TAB", "id TAB text");
               }
               const std::string id(line.substr(0, tab));
               const Index::Place place{.offset = offset + tab + 1,
                                        .size = std::min(line.size() - tab - 1, kMaxPairTextBytes)};
               if (!index_->places.emplace(id, place).second) {
                 refuse(source_, number, "paper " + in_quotes(id, 100) + " occurs twice",
                        "one line per paper");
               }
             });
}

PaperTexts::~PaperTexts() = default;

std::string PaperTexts::text(std::string_view id, const std::string& where) const {
  std::string text(kMaxPairTextBytes, '\0');
  if (index_) {
    const auto found = index_->places.find(std::string(id));
    if (found != index_->places.end()) {
      text.resize(found->second.size);
      text.resize(index_->file.read_at(found->second.offset, text.data(), text.size()));
      return std::string(checked_text(text, where));
    }
  } else if (is_plain_file_name(id)) {
    for (const char* suffix : {"", ".txt"}) {
      const std::string path = source_ + "/" + std::string(id) + suffix;
      if (!is_file(path)) continue;
      // Allows for the most that line ends of two bytes and a byte order mark may cost.
      text.resize(2 * kMaxPairTextBytes + 3);
      text.resize(InputFile(path).read_at(0, text.data(), text.size()));
      text = document_text(text, path);
      text.resize(std::min(text.size(), kMaxPairTextBytes));
      std::replace_if(
          text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n' || c == '\r'; },
          ' ');
      return text;
    }
  }
  throw Error({.where = where,
               .what = "paper " + in_quotes(id, 100) + " has no text in " + source_,
               .expected = index_ ? "a line id TAB text" : "a file ID or ID.txt"});
}

PairFiles find_pair_files(const std::string& folder) {
  for (const int num_columns : {5, 3}) {
    const std::vector<std::string> paths = find_file_set(folder, file_set(num_columns));
    if (!paths.empty()) {
      return {.paths = {paths[0], paths[1], paths[2]}, .num_columns = num_columns};
    }
  }
  return {};
}

}  // namespace lra::tasks
