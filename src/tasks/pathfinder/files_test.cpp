#include "tasks/pathfinder/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "data/png_image.h"
#include "data/test_fixtures.h"
#include "io/mapped_file.h"

namespace lra::tasks {
namespace {

using ::testing::HasSubstr;

const std::string kLine = "imgs/0 sample_7.png 7 1 1.0 14 4.666666666666667 2 0.5 1 1";

std::vector<PathfinderRecord> parse(const std::string& file) {
  return parse_pathfinder_metadata(std::as_bytes(std::span(file)), "0.npy");
}

// One row as NumPy saves it.
std::string numpy_file(bool wide, const std::string& shape = "(1, 11)") {
  std::string header = std::string("{'descr': '") + (wide ? "<U" : "|S") +
                       "17', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(117, ' ');
  header += '\n';
  std::string file = "\x93NUMPY";
  file += std::string("\1\0\x76\0", 4) + header;
  size_t begin = 0;
  for (int field = 0; field < 11; ++field) {
    const size_t end = std::min(kLine.find(' ', begin), kLine.size());
    std::string cell = kLine.substr(begin, end - begin);
    cell.resize(17);
    for (const char c : cell) file += wide ? std::string{c, 0, 0, 0} : std::string{c};
    begin = end + 1;
  }
  return file;
}

TEST(PathfinderFiles, ReadsTextAndBothKindsOfNumpyStrings) {
  for (const std::string& file : {kLine + "\n", kLine, numpy_file(false), numpy_file(true)}) {
    const auto records = parse(file);
    ASSERT_EQ(records.size(), 1U);
    EXPECT_EQ(records[0].line, kLine);
    EXPECT_EQ(records[0].path, "imgs/0/sample_7.png");
    EXPECT_EQ(records[0].label, 1);
  }
}

TEST(PathfinderFiles, RefusesEveryTruncationOfANumpyFile) {
  const std::string file = numpy_file(false);
  for (size_t size = 6; size < file.size(); ++size) {
    EXPECT_NE(error_of([&] { parse(file.substr(0, size)); }), "") << size;
  }
  EXPECT_THAT(error_of([&] { parse(file + "x"); }), HasSubstr("too many"));
}

TEST(PathfinderFiles, RefusesOtherNumpyTables) {
  for (const char* shape : {"(1, 10)", "(0, 11)", "(99999999999, 11)", "(1, 11, 1)", "(11,)"}) {
    EXPECT_THAT(error_of([&] { parse(numpy_file(false, shape)); }), HasSubstr("0.npy:byte"));
  }
}

TEST(PathfinderFiles, RefusesLinesThatNameNoImageOrLabel) {
  const auto error_for = [](const std::string& line) {
    return error_of([&] { parse(kLine + "\n" + line + "\n"); });
  };
  EXPECT_THAT(error_for("imgs/0 sample_7.png 7 2 1 14 4 2 0.5 1 1"), HasSubstr("0.npy:2: label"));
  EXPECT_THAT(error_for("imgs/.. sample_7.png 7 1 1 14 4 2 0.5 1 1"), HasSubstr("names the image"));
  EXPECT_THAT(error_for("imgs/0 ../x.png 7 1 1 14 4 2 0.5 1 1"), HasSubstr("names the image"));
  EXPECT_THAT(error_for("/etc sample_7.png 7 1 1 14 4 2 0.5 1 1"), HasSubstr("names the image"));
  EXPECT_THAT(error_for("imgs/0 sample_7.png 7 1"), HasSubstr("has 4 fields"));
  EXPECT_THAT(error_for(std::string(1000, 'x')), HasSubstr("0.npy:2: line has over 400 bytes"));
}

TEST(PathfinderFiles, EmptyAndDamagedImagesAreReportedNotFatal) {
  const TestFolder root;
  const std::string png = encode_png(GrayImage{.width = 2, .height = 2, .pixels = {1, 2, 3, 4}});
  write_text(root.path("good.png"), png);
  write_text(root.path("empty.png"), "");
  write_text(root.path("cut.png"), png.substr(0, 40));
  EXPECT_EQ(read_pathfinder_image(root.path("good.png"), 2).pixels,
            (std::vector<uint8_t>{1, 2, 3, 4}));
  EXPECT_THAT(read_pathfinder_image(root.path("empty.png"), 2).problem, HasSubstr("empty"));
  EXPECT_THAT(read_pathfinder_image(root.path("cut.png"), 2).problem, HasSubstr("cut.png"));
  EXPECT_THAT(error_of([&] { read_pathfinder_image(root.path("good.png"), 3); }),
              HasSubstr("has 2 x 2 pixels"));
  EXPECT_NE(error_of([&] { read_pathfinder_image(root.path("none.png"), 2); }), "");
}

TEST(PathfinderFiles, LinesAreSpeltAsInTheArchive) {
  EXPECT_EQ(pathfinder_line({.size = 32, .difficulty = 2}, 0, 1, 1),
            "imgs/0 sample_0.png 0 1 1.0 14 4.666666666666667 2 0.5 1 1");
  EXPECT_EQ(pathfinder_line({.size = 32, .difficulty = 1}, 990, 1, 1),
            "imgs/0 sample_990.png 990 1 1.0 9 3.0 2 0.5 1 1");
  EXPECT_EQ(pathfinder_line({.size = 32, .difficulty = 0}, 0, 0, 1),
            "imgs/0 sample_0.png 0 0 1.0 6 2 2 0.5 1 1");
  EXPECT_EQ(pathfinder_line({.size = 128, .difficulty = 0}, 1942, 1, 3),
            "imgs/1 sample_942.png 942 1 1.8 6 2.0 5 1.5 3 1");
}

TEST(PathfinderFiles, RealSamplesAreReadAlikeFromTextAndNumpy) {
  const char* data = std::getenv("LRA_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "LRA_TEST_DATA is not set";
  const std::string level = std::string(data) + "/pathfinder32/curv_contour_length_14";
  if (!std::filesystem::exists(level)) GTEST_SKIP() << level << " is not there";
  const auto records = read_pathfinder_metadata(level);
  EXPECT_GE(records.size(), 300U);
  const MappedFile numpy(level + "/metadata_npsave/0.npy");
  const auto same = parse_pathfinder_metadata(numpy.bytes(), "0.npy");
  ASSERT_GE(records.size(), same.size());
  for (size_t i = 0; i < same.size(); ++i) EXPECT_EQ(same[i].line, records[i].line);
  for (const auto& record : records) {
    const PathfinderPixels image = read_pathfinder_image(level + "/" + record.path, 32);
    ASSERT_EQ(image.problem, "");
    EXPECT_EQ(*std::max_element(image.pixels.begin(), image.pixels.end()), 255);
  }
}

}  // namespace
}  // namespace lra::tasks
