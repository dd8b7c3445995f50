#include "tasks/own/npz.h"

#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "data/test_fixtures.h"

namespace lra::tasks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string npy(const std::string& type, const std::string& shape, const std::string& data,
                const std::string& order = "False") {
  const std::string header =
      "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
  std::string file = "\x93NUMPY";
  file += {'\x01', '\0', static_cast<char>(header.size()), '\0'};
  return file + header + data;
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

class Npz : public ::testing::Test {
 protected:
  std::string write(const std::map<std::string, std::string>& arrays) {
    const std::string path = root_.path("a.npz");
    archive* zip = archive_write_new();
    archive_write_set_format_zip(zip);
    archive_write_zip_set_compression_store(zip);
    archive_write_open_filename(zip, path.c_str());
    for (const auto& [name, content] : arrays) {
      archive_entry* entry = archive_entry_new();
      archive_entry_set_pathname(entry, (name + ".npy").c_str());
      archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
      archive_entry_set_filetype(entry, AE_IFREG);
      archive_write_header(zip, entry);
      archive_write_data(zip, content.data(), content.size());
      archive_entry_free(entry);
    }
    archive_write_free(zip);
    return path;
  }
  std::vector<OwnExample> read(const std::map<std::string, std::string>& arrays) {
    std::vector<OwnExample> examples;
    Schema schema({});
    read_npz(write(arrays), schema, [&](const std::string&, OwnExample&& example) {
      examples.push_back(std::move(example));
    });
    return examples;
  }
  std::string refused(const std::map<std::string, std::string>& arrays) {
    return error_of([&] { (void)read(arrays); });
  }

  const std::string labels_ = npy("<i8", "(2,)", bytes_of<int64_t>({7, -1}));
  TestFolder root_;
};

TEST_F(Npz, IntegersAndFloatsOfEveryWidthAreRead) {
  const std::map<std::string, std::string> both = {
      {"|b1", std::string("\1\0\1\1", 4)},
      {"|u1", std::string("\1\0\1\1", 4)},
      {"<i2", bytes_of<int16_t>({1, 0, 1, 1})},
      {"<u4", bytes_of<uint32_t>({1, 0, 1, 1})},
      {"<i8", bytes_of<int64_t>({1, 0, 1, 1})},
      {"<f2", bytes_of<uint16_t>({0x3C00, 0, 0x3C00, 0x3C00})},
      {"<f4", bytes_of<float>({1, 0, 1, 1})},
      {"<f8", bytes_of<double>({1, 0, 1, 1})}};
  for (const auto& [type, data] : both) {
    const auto examples = read({{"x", npy(type, "(2, 2)", data)}, {"y", labels_}});
    ASSERT_EQ(examples.size(), 2U) << type;
    EXPECT_THAT(examples[0].sequences[0].numbers, ElementsAre(1, 0)) << type;
    EXPECT_EQ(examples[0].sequences[0].all_ids(), type[1] != 'f') << type;
    EXPECT_EQ(examples[1].label, "-1");
  }
}

TEST_F(Npz, ChannelsLengthsTextsAndSplitsAreRead) {
  const std::string x = npy("<f4", "(2, 2, 2)", bytes_of<float>({1, 2, 3, 4, 5, 6, 7, 8}));
  const auto examples =
      read({{"x_train", x},
            {"y_train", npy("<U2", "(2,)", bytes_of<char32_t>({U'a', 0, U'\u00e9', U'b'}))},
            {"lengths_train", npy("|u1", "(2,)", std::string("\1\2", 2))}});
  ASSERT_EQ(examples.size(), 2U);
  EXPECT_EQ(examples[0].split, "train");
  EXPECT_EQ(examples[0].label, "a");
  EXPECT_EQ(examples[1].label, "\u00e9b");
  EXPECT_EQ(examples[0].sequences[0].channels, 2);
  EXPECT_THAT(examples[0].sequences[0].numbers, ElementsAre(1, 2));
  EXPECT_THAT(examples[1].sequences[0].numbers, ElementsAre(5, 6, 7, 8));
  const auto texts =
      read({{"text", npy("|S3", "(2,)", std::string("ab\0xyz", 6))}, {"y", labels_}});
  EXPECT_EQ(texts.at(0).sequences[0].text, "ab");
  EXPECT_EQ(texts.at(1).sequences[0].text, "xyz");
}

TEST_F(Npz, WhatCannotBeReadIsNamed) {
  const std::string x = npy("|u1", "(2, 2)", "abcd");
  EXPECT_THAT(refused({{"x_train", x}, {"y_train", labels_}, {"x_test", x}}),
              HasSubstr("has no array 'y_test'"));
  EXPECT_THAT(refused({{"x", npy("|O", "(2,)", "abcd")}, {"y", labels_}}), HasSubstr("no objects"));
  EXPECT_THAT(refused({{"x", npy(">i4", "(2, 1)", "abcdabcd")}, {"y", labels_}}),
              HasSubstr("little-endian"));
  EXPECT_THAT(refused({{"x", npy("<c8", "(2, 1)", "abcdabcdabcdabcd")}, {"y", labels_}}),
              HasSubstr("dtype"));
  EXPECT_THAT(refused({{"x", npy("|u1", "(2, 2)", "abc")}, {"y", labels_}}), HasSubstr("cut off"));
  EXPECT_THAT(refused({{"x", npy("|u1", "(2, 2)", "abcde")}, {"y", labels_}}),
              HasSubstr("holds 75 bytes; expected 74"));
  EXPECT_THAT(
      refused({{"x", npy("|u1", "(9223372036854775807, 4294967297)", "abcd")}, {"y", labels_}}),
      HasSubstr("too many elements"));
  EXPECT_THAT(refused({{"x", npy("|u1", "(3, 1)", "abc")}, {"y", labels_}}),
              HasSubstr("has 3 elements; expected 2"));
  EXPECT_THAT(refused({{"x", npy("|u1", "(4,)", "abcd")}, {"y", labels_}}),
              HasSubstr("4 elements"));
  EXPECT_THAT(refused({{"x", x}}), HasSubstr("no column of labels"));
  EXPECT_THAT(refused({{"x", x}, {"y", npy("<f4", "(2,)", bytes_of<float>({1, 0.5}))}}),
              HasSubstr("array 'y': holds the label 0.5"));
  EXPECT_THAT(refused({{"x", x}, {"y", npy("<i8", "(2, 1)", bytes_of<int64_t>({1, 0}))}}),
              HasSubstr("has 2 dimensions; expected [N]"));
  EXPECT_THAT(
      refused(
          {{"x", x}, {"y", labels_}, {"lengths", npy("<f8", "(2,)", bytes_of<double>({1, 1.5}))}}),
      HasSubstr("array 'lengths': holds the length 1.5"));
  EXPECT_THAT(refused({{"x", "no array"}, {"y", labels_}}), HasSubstr("array 'x'"));
  const auto with_lengths = [&](const std::string& values) {
    return refused({{"x", npy("|u1", "(2, 5)", values)},
                    {"y", labels_},
                    {"lengths", npy("|u1", "(2,)", std::string("\1\2", 2))}});
  };
  EXPECT_THAT(with_lengths("a----ab---"), "");
  EXPECT_THAT(with_lengths("a.---ab.--"), "") << "a mark of the end";
  EXPECT_THAT(with_lengths("aaaaaabbbb"), "") << "the last value goes on";
  EXPECT_THAT(with_lengths("a1234ab234"), "") << "the same at each position";
  EXPECT_THAT(with_lengths("ab-cdabcde"), HasSubstr("different numbers beyond the 'lengths' in 1"));
  EXPECT_THAT(refused({{"x", npy("|u1", "(4, 5)", "ab1--cd2--ef3--gh4--")},
                       {"y", npy("|u1", "(4,)", std::string("\0\1\0\1", 4))},
                       {"lengths", npy("|u1", "(4,)", std::string("\2\2\2\2", 4))}}),
              HasSubstr("different numbers beyond the 'lengths' in 2"))
      << "lengths that are one too short";
}

TEST_F(Npz, FortranOrderIsReadAsCOrder) {
  const auto examples =
      read({{"x", npy("|u1", "(2, 2, 3)", std::string("\0\1\2\3\4\5\6\7\10\11\12\13", 12), "True")},
            {"y", labels_}});
  // x[i, j, k] is at i + 2 j + 4 k.
  EXPECT_THAT(examples.at(1).sequences[0].numbers, ElementsAre(1, 5, 9, 3, 7, 11));
}

TEST_F(Npz, WholeLabelsMayBeWrittenAsRealNumbers) {
  const auto examples = read(
      {{"x", npy("|u1", "(2, 2)", "abcd")}, {"y", npy("<f4", "(2,)", bytes_of<float>({3, -1}))}});
  EXPECT_EQ(examples.at(0).label, "3");
  EXPECT_EQ(examples.at(1).label, "-1");
}

// The header alone says so: nothing of that size is read.
TEST_F(Npz, AnArrayLargerThanMemoryIsRefusedBeforeItIsRead) {
  EXPECT_THAT(refused({{"x", npy("|u1", "(1000000000, 100000)", "abcd")}, {"y", labels_}}),
              HasSubstr("array 'x': does not fit into memory: it takes 500.0 TB"));
}

// A mask, or lengths under another name, would be left out without a word.
TEST_F(Npz, AnArrayOfAllExamplesThatIsNotReadIsRefused) {
  const std::string x = npy("|u1", "(2, 2)", "abcd"), lengths = npy("|u1", "(2,)", "\1\2");
  const std::string three = npy("|u1", "(3,)", "abc");
  EXPECT_EQ(read({{"x", x}, {"y", labels_}, {"length", lengths}}).at(0).sequences[0].numbers.size(),
            1U);
  EXPECT_THAT(refused({{"x", x}, {"y", labels_}, {"seq_len", lengths}}),
              HasSubstr("array 'seq_len': has an element for each example, but is not read"));
  EXPECT_EQ(refused({{"x", x}, {"y", labels_}, {"names", three}}), "");
  EXPECT_EQ(refused({{"x_train", x}, {"y_train", labels_}, {"names", three}}), "");
  EXPECT_THAT(refused({{"x_train", x}, {"y_train", labels_}, {"mask", lengths}}),
              HasSubstr("array 'mask'"));
  EXPECT_THAT(refused({{"x_train", x}, {"y_train", labels_}, {"lengths", three}}),
              HasSubstr("array 'lengths'"));
}

TEST_F(Npz, CutOffAndChangedArchivesAreRefused) {
  const std::string path = write({{"x", npy("|u1", "(2, 2)", "abcd")}, {"y", labels_}});
  std::ifstream in(path, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  const auto error_with = [&](const std::string& content) {
    write_text(path, content);
    Schema schema({});
    return error_of([&] { read_npz(path, schema, [](const std::string&, OwnExample&&) {}); });
  };
  EXPECT_EQ(error_with(good), "");
  for (const size_t size : {size_t{0}, size_t{10}, good.size() / 3}) {
    EXPECT_NE(error_with(good.substr(0, size)), "") << size;
  }
  std::string changed = good;
  changed.at(good.find("abcd")) = 'A';
  EXPECT_NE(error_with(changed), "") << "the checksum of the archive is not compared";
}

}  // namespace
}  // namespace lra::tasks
