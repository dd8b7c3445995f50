#include "tasks/pathfinder/files.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <unordered_set>

#include "base/error.h"
#include "base/quoted.h"
#include "base/text_format.h"
#include "data/files.h"
#include "data/manifest.h"
#include "data/png_image.h"
#include "data/text_lines.h"
#include "io/atomic_file.h"
#include "io/byte_reader.h"
#include "io/mapped_file.h"

namespace lra::tasks {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNumFields = 11;
constexpr size_t kMaxLine = 400;
constexpr size_t kBlockBytes = 1 << 16;  // a file of the archive has 70 KB
constexpr int64_t kMaxRows = 1 << 22;
constexpr int64_t kMaxMetadataBytes = 64 << 20;
constexpr int64_t kMaxCellBytes = 256;
constexpr int kMaxSide = 4096;  // an image this large is decoded to say that it is too large
constexpr int64_t kImagesPerBatch = 1000;
constexpr std::string_view kNumpyMagic = "\x93NUMPY";

std::vector<std::string> split_at(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::vector<PathfinderRecord> parse_text(std::string_view text, const std::string& name) {
  std::vector<PathfinderRecord> records;
  read_lines(reader_of(text), name,
             [&](std::string_view line, int64_t number, uint64_t) {
               records.push_back(
                   parse_pathfinder_record(std::string(line), name + ":" + std::to_string(number)));
             },
             {.block_bytes = kBlockBytes, .line_bytes = kMaxLine});
  return records;
}

// The header of a NumPy file is a Python dictionary; this reads the one form that NumPy writes for
// a table of strings: {'descr': '|S17', 'fortran_order': False, 'shape': (300, 11), }
struct NumpyTable {
  bool wide = false;       // four bytes per character ("<U") instead of one ("|S")
  int64_t characters = 0;  // per cell
  int64_t rows = 0;
};

NumpyTable parse_numpy_header(const std::string& header, const ByteReader& reader) {
  std::array<char, 3> type{};
  int characters = 0, rows = 0, fields = 0, end = 0;
  (void)std::sscanf(header.c_str(),
                    "{'descr': '%2[|<SU]%8d', 'fortran_order': False, 'shape': (%8d, %8d), }%n",
                    type.data(), &characters, &rows, &fields, &end);
  const bool is_wide = std::string_view(type.data()) == "<U";
  if (end == 0 || (!is_wide && std::string_view(type.data()) != "|S") || characters < 1 ||
      characters > kMaxCellBytes || rows < 1 || rows > kMaxRows || fields != int{kNumFields} ||
      header.find_first_not_of(" \n", static_cast<size_t>(end)) != std::string::npos) {
    reader.fail("the NumPy header is not that of Pathfinder metadata",
                "a table of strings with eleven columns, row by row");
  }
  return {.wide = is_wide, .characters = characters, .rows = rows};
}

// One cell without the zeros that fill it up.
std::string read_cell(ByteReader& reader, const NumpyTable& table) {
  std::string cell;
  for (int64_t i = 0; i < table.characters; ++i) {
    const uint32_t character = table.wide ? reader.u32("a character") : reader.u8("a character");
    if (character > 0x7E || (character != 0 && character <= ' ')) {
      reader.fail("a cell holds character " + std::to_string(character), "plain ASCII");
    }
    if (character != 0) cell += static_cast<char>(character);
  }
  return cell;
}

std::vector<PathfinderRecord> parse_numpy(std::span<const std::byte> file,
                                          const std::string& name) {
  ByteReader reader(file, name);
  reader.skip(kNumpyMagic.size(), "magic");
  const int version = reader.u8("version");
  reader.skip(1, "minor version");
  if (version < 1 || version > 3) {
    reader.fail("NumPy format version is " + std::to_string(version), "1, 2 or 3");
  }
  const uint64_t size = version == 1 ? reader.u16("header size") : reader.u32("header size");
  const NumpyTable table = parse_numpy_header(std::string(reader.text(size, "header")), reader);
  std::vector<PathfinderRecord> records;
  for (int64_t row = 0; row < table.rows; ++row) {
    std::string line;
    for (size_t field = 0; field < kNumFields; ++field) {
      line += (field == 0 ? "" : " ") + read_cell(reader, table);
    }
    records.push_back(parse_pathfinder_record(line, name + ":" + std::to_string(row + 1)));
  }
  reader.expect_end();
  return records;
}

// The number of "17.npy"; -1 for other names.
int64_t batch_number(const fs::path& path) {
  const std::string stem = path.stem().string();
  const bool good = has_ending(path, ".npy") && !stem.empty() && stem.size() <= 9 &&
                    stem.find_first_not_of("0123456789") == std::string::npos;
  return good ? std::stoll(stem) : -1;
}

}  // namespace

PathfinderRecord parse_pathfinder_record(const std::string& line, const std::string& where) {
  const std::vector<std::string> fields = split_at(line, ' ');
  const auto refuse = [&](const std::string& what, const std::string& expected) {
    throw Error({.where = where, .what = what, .expected = expected});
  };
  if (fields.size() != kNumFields) {
    refuse("has " + std::to_string(fields.size()) + " fields", "11 separated by single blanks");
  }
  const std::string folder = fields[0].starts_with("imgs/") ? fields[0].substr(5) : "";
  if (!is_plain_file_name(folder) || !is_plain_file_name(fields[1])) {
    refuse("names the image " + in_quotes(fields[0] + " " + fields[1], 100),
           "as imgs/0 sample_0.png");
  }
  if (fields[3] != "0" && fields[3] != "1") {
    refuse("label is " + in_quotes(fields[3], 100), "0 or 1");
  }
  return {.line = line, .path = fields[0] + "/" + fields[1], .label = fields[3] == "1"};
}

std::vector<PathfinderRecord> parse_pathfinder_metadata(std::span<const std::byte> file,
                                                        const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  return text.starts_with(kNumpyMagic) ? parse_numpy(file, name) : parse_text(text, name);
}

std::vector<PathfinderRecord> read_pathfinder_metadata(const std::string& folder) {
  std::vector<std::pair<int64_t, std::string>> files;
  for (const std::string& name : names_in(folder + "/metadata")) {
    const int64_t number = batch_number(name);
    if (number >= 0) files.emplace_back(number, folder + "/metadata/" + name);
  }
  std::sort(files.begin(), files.end());
  std::vector<PathfinderRecord> records;
  std::unordered_set<std::string> seen;
  for (const auto& [number, path] : files) {
    const MappedFile file(path);
    if (file.bytes().size() > size_t{kMaxMetadataBytes}) {
      throw Error({.where = path,
                   .what = "has " + thousands(static_cast<int64_t>(file.bytes().size())) + " bytes",
                   .expected = "at most " + thousands(kMaxMetadataBytes) + ", a line per image"});
    }
    for (PathfinderRecord& record : parse_pathfinder_metadata(file.bytes(), path)) {
      if (!seen.insert(record.path).second) {
        throw Error({.where = path,
                     .what = "names " + record.path + " again",
                     .expected = "every image once"});
      }
      records.push_back(std::move(record));
    }
  }
  if (records.empty()) {
    throw Error({.where = folder,
                 .what = "has no metadata; it holds " + quoted_list(data_names_in(folder)),
                 .expected = "imgs/*/*.png and metadata/*.npy"});
  }
  return records;
}

int64_t count_pathfinder_images(const std::string& folder) {
  int64_t count = 0;
  const std::string images = folder + "/imgs";
  for (const std::string& batch : data_names_in(images)) {
    count += std::ranges::count_if(data_names_in(images + "/" + batch),
                                   [](const auto& name) { return has_ending(name, ".png"); });
  }
  return count;
}

PathfinderPixels read_pathfinder_image(const std::string& path, int size) {
  const MappedFile file(path);
  PathfinderPixels image{.pixels = {}, .hash = hash128(file.bytes()), .problem = ""};
  if (file.bytes().empty()) {
    image.problem = path + kEmptyPathfinderImage;
    return image;
  }
  GrayImage decoded;
  try {
    decoded = decode_png(file.bytes(), path, kMaxSide);
  } catch (const Error& error) {
    image.problem = error.what();
    return image;
  }
  if (decoded.width != size || decoded.height != size) {
    throw Error({.where = path,
                 .what = "has " + std::to_string(decoded.width) + " x " +
                         std::to_string(decoded.height) + " pixels",
                 .expected = std::to_string(size) + " x " + std::to_string(size),
                 .advice = "import it as the task of its size"});
  }
  image.pixels = std::move(decoded.pixels);
  return image;
}

std::string pathfinder_line(const PathfinderSettings& settings, int64_t index, int label,
                            int margin) {
  // The spellings of the archive: Python's text of what its settings came to.
  const std::array<std::string, 3> distractors = {settings.size == 32 ? "2" : "2.0", "3.0",
                                                  "4.666666666666667"};
  const PathfinderGeometry& geometry = pathfinder_geometry(settings.size);
  const bool is_whole = geometry.thickness == static_cast<int>(geometry.thickness);
  const int64_t in_batch = index % kImagesPerBatch;
  return "imgs/" + std::to_string(index / kImagesPerBatch) + " sample_" + std::to_string(in_batch) +
         ".png " + std::to_string(in_batch) + " " + std::to_string(label) + " " +
         fixed(geometry.continuity, 1) + " " + std::to_string(settings.contour_length()) + " " +
         distractors[static_cast<size_t>(settings.difficulty)] + " " +
         std::to_string(geometry.dash_length) + " " + fixed(geometry.thickness, is_whole ? 0 : 1) +
         " " + std::to_string(margin) + " 1";
}

}  // namespace lra::tasks
