#include "data/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "base/hash.h"
#include "data/shard_format.h"
#include "data/test_fixtures.h"
#include "io/atomic_file.h"

namespace lra {
namespace {

namespace fs = std::filesystem;

using Bytes = std::vector<uint8_t>;

std::string slurp(const std::string& path) { return read_file(path, 1 << 24); }

Manifest small_manifest() {
  Manifest manifest;
  manifest.task = "toy";
  manifest.task_version = 3;
  manifest.source = "generated";
  manifest.source_hash = "none";
  manifest.num_towers = 2;
  manifest.token_offset = 1;
  manifest.settings = {{"seed", "7"}};
  return manifest;
}

// Five examples of two towers in train, one in test.
Manifest write_small(const std::string& folder) {
  DatasetWriter writer(folder, small_manifest(), 1000);
  writer.begin_split("train");
  for (int32_t i = 0; i < 5; ++i) {
    const Bytes first(static_cast<size_t>(i), static_cast<uint8_t>(i));
    const Bytes second{200, 255};
    const std::vector<std::span<const uint8_t>> towers{first, second};
    writer.add(i % 2, towers);
  }
  writer.begin_split("test");
  const Bytes only{9};
  const std::vector<std::span<const uint8_t>> towers{only, only};
  writer.add(1, towers);
  writer.add_side_file("names.tsv", "a\nb\n");
  writer.manifest().notes.push_back("a note");
  return writer.finish();
}

std::string open_error(const std::string& folder, bool verify = true) {
  return error_of([&] { Dataset::open(folder, verify); });
}

TEST(Dataset, GivesBackWhatWasWritten) {
  const TestFolder root;
  const std::string folder = root.path("data");
  write_small(folder);
  const Dataset dataset = Dataset::open(folder);
  EXPECT_EQ(dataset.manifest().task, "toy");
  EXPECT_EQ(dataset.manifest().settings.at("seed"), "7");
  EXPECT_EQ(dataset.manifest().notes, std::vector<std::string>{"a note"});
  EXPECT_EQ(dataset.read_side_file("names.tsv"), "a\nb\n");
  EXPECT_FALSE(dataset.has("val"));
  const Split train = dataset.split("train");
  ASSERT_EQ(train.size(), 5);
  EXPECT_EQ(train.label(3), 1);
  EXPECT_EQ(train.sequence_length(4, 0), 4);
  EXPECT_EQ(train.sequence_length(0, 0), 0);
  std::vector<int32_t> ids(3, -1);
  EXPECT_EQ(train.read_tokens(2, 1, ids), 2);
  EXPECT_EQ(ids, (std::vector<int32_t>{201, 256, -1}));
  EXPECT_EQ(train.read_tokens(4, 0, std::span(ids).first(2)), 4);
  EXPECT_EQ(ids[0], 5);
  const std::span<const uint8_t> stored = train.stored_bytes(4, 0);
  EXPECT_EQ(Bytes(stored.begin(), stored.end()), (Bytes{4, 4, 4, 4}));
}

TEST(Dataset, SubsetsOfSubsetsKeepTheirOrder) {
  const TestFolder root;
  write_small(root.path("data"));
  Split part;
  {
    const Dataset dataset = Dataset::open(root.path("data"));
    part = dataset.split("train").subset({4, 2, 0}).subset({1, 0});
  }
  ASSERT_EQ(part.size(), 2);
  EXPECT_EQ(part.sequence_length(0, 0), 2);
  EXPECT_EQ(part.sequence_length(1, 0), 4);
  EXPECT_THROW(part.label(2), CheckFailure);
  EXPECT_THROW(part.label(-1), CheckFailure);
  EXPECT_THROW(part.read_tokens(0, 2, {}), CheckFailure);
}

TEST(Dataset, ShuffledTokensAreTheSameOnesInAnOrderOfTheirExample) {
  const TestFolder root;
  const std::string folder = root.path("data");
  Manifest manifest = small_manifest();
  manifest.num_towers = 1;
  DatasetWriter writer(folder, manifest, 10000);
  writer.begin_split("train");
  Bytes values(100);
  std::iota(values.begin(), values.end(), uint8_t{0});
  for (int i = 0; i < 4; ++i) writer.add(0, values);
  writer.add(0, Bytes{});
  writer.finish();
  const Split given = Dataset::open(folder).split("train"), other = given.with_shuffled_tokens();
  const auto read = [](const Split& split, int64_t example, size_t size) {
    std::vector<int32_t> tokens(size);
    EXPECT_EQ(split.read_tokens(example, 0, tokens), example == 4 ? 0 : 100);
    return tokens;
  };
  const auto sorted = [](std::vector<int32_t> tokens) {
    std::sort(tokens.begin(), tokens.end());
    return tokens;
  };
  for (const size_t size : {100, 40, 1}) {  // of a cut sequence only what is left is moved
    EXPECT_EQ(sorted(read(other, 0, size)), read(given, 0, size));
    EXPECT_EQ(read(other, 0, size), read(other, 0, size));
  }
  EXPECT_NE(read(other, 0, 100), read(given, 0, 100));
  EXPECT_NE(read(other, 0, 100), read(other, 1, 100));
  EXPECT_EQ(read(other.subset({2, 1}), 1, 100), read(other, 1, 100));
  EXPECT_EQ(read(given.subset({2}).with_shuffled_tokens(), 0, 100), read(other, 2, 100));
  EXPECT_EQ(read(other, 4, 3), (std::vector<int32_t>{0, 0, 0}));
}

TEST(Dataset, SixteenBitTokensSurvive) {
  const TestFolder root;
  Manifest manifest = small_manifest();
  manifest.num_towers = 1;
  manifest.token_bytes = 2;
  manifest.token_offset = 0;
  DatasetWriter writer(root.path("data"), manifest, 0);
  writer.begin_split("train");
  const std::vector<uint16_t> tokens{1, 300, 65535};
  const std::vector<std::span<const uint16_t>> towers{tokens};
  writer.add(0, towers);
  writer.finish();
  const Split train = Dataset::open(root.path("data")).split("train");
  std::vector<int32_t> ids(3);
  EXPECT_EQ(train.read_tokens(0, 0, ids), 3);
  EXPECT_EQ(ids, (std::vector<int32_t>{1, 300, 65535}));
}

TEST(Dataset, ManyShardsReadAsOneSplit) {
  const TestFolder root;
  Manifest manifest = small_manifest();
  manifest.num_towers = 1;
  DatasetWriter writer(root.path("data"), manifest, 0);
  writer.begin_split("train");
  Bytes big(size_t{40} << 20);
  for (int32_t i = 0; i < 3; ++i) {
    big[0] = static_cast<uint8_t>(i);
    writer.add(i, big);
  }
  EXPECT_EQ(writer.finish().splits.at("train").size(), 2U);
  const Split train = Dataset::open(root.path("data")).split("train");
  ASSERT_EQ(train.size(), 3);
  for (int32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(train.label(i), i);
    EXPECT_EQ(train.stored_bytes(i)[0], i);
  }
}

TEST(Dataset, HashIsThatOfTheContent) {
  const TestFolder root;
  write_small(root.path("a"));
  write_small(root.path("b"));
  EXPECT_EQ(Dataset::open(root.path("a")).hash(), Dataset::open(root.path("b")).hash());
  EXPECT_EQ(Dataset::open(root.path("a")).hash().size(), 32U);
  DatasetWriter writer(root.path("c"), small_manifest(), 0);
  writer.begin_split("train");
  writer.finish();
  EXPECT_NE(Dataset::open(root.path("c")).hash(), Dataset::open(root.path("a")).hash());
  EXPECT_EQ(Dataset::open(root.path("c")).split("train").size(), 0);
}

TEST(Dataset, EveryFlippedBitIsNoticed) {
  const TestFolder root;
  const std::string folder = root.path("data");
  const std::string shard = folder + "/" + write_small(folder).splits.at("train").at(0).file;
  const std::string good = slurp(shard);
  for (size_t i = 0; i < good.size() * 8; ++i) {
    std::string bad = good;
    bad[i / 8] = static_cast<char>(bad[i / 8] ^ (1 << (i % 8)));
    write_text(shard, bad);
    ASSERT_NE(open_error(folder), "") << "bit " << i;
  }
  write_text(shard, good);
  EXPECT_EQ(open_error(folder), "");
}

// Counts, settings, notes, hashes and white space alike.
TEST(Dataset, EveryFlippedBitOfTheManifestIsNoticed) {
  const TestFolder root;
  const std::string folder = root.path("data"), path = folder + "/manifest.json";
  write_small(folder);
  const std::string good = slurp(path);
  for (size_t i = 0; i < good.size() * 8; ++i) {
    std::string bad = good;
    bad[i / 8] = static_cast<char>(bad[i / 8] ^ (1 << (i % 8)));
    write_text(path, bad);
    ASSERT_NE(open_error(folder, false), "") << "bit " << i;
  }
  write_text(path, good);
  EXPECT_EQ(open_error(folder), "");
}

TEST(Dataset, EveryTruncationIsNoticed) {
  const TestFolder root;
  const std::string folder = root.path("data");
  const std::string shard = folder + "/" + write_small(folder).splits.at("train").at(0).file;
  const std::string good = slurp(shard);
  for (size_t size = 0; size < good.size(); ++size) {
    write_text(shard, good.substr(0, size));
    EXPECT_NE(open_error(folder), "") << size;
  }
  write_text(shard, good + "x");
  EXPECT_NE(open_error(folder), "");
  fs::remove(shard);
  EXPECT_NE(open_error(folder).find(shard), std::string::npos);
}

// Someone who forges the header and the manifest alike gets an error, not a read out of bounds.
TEST(Dataset, ForgedHeadersAreRefusedEvenWithoutTheHash) {
  const TestFolder root;
  const std::string folder = root.path("data");
  const std::string shard = folder + "/" + write_small(folder).splits.at("train").at(0).file;
  const std::string good = slurp(shard);
  const size_t offsets_at = sections_of({.num_examples = 5}).offsets;
  const auto forge = [&](size_t at, uint64_t value) {
    std::string bad = good;
    std::memcpy(bad.data() + at, &value, 8);
    write_text(shard, bad);
    return open_error(folder, false);
  };
  for (const uint64_t value :
       {uint64_t{0}, uint64_t{6}, UINT64_MAX, uint64_t{1} << 61, uint64_t{1} << 62}) {
    for (size_t at = 0; at < 40; at += 8) EXPECT_NE(forge(at, value), "") << at << " " << value;
    EXPECT_NE(forge(56, value | 1), "");
    EXPECT_NE(forge(offsets_at + 8 * 10, value), "");
    EXPECT_NE(forge(offsets_at, value | 1), "");
  }
  EXPECT_NE(forge(offsets_at + 8 * 5, 1000).find("goes back"), std::string::npos);
  EXPECT_NE(forge(8, uint64_t{1} << 32 | 3).find("has format version 3, which a newer version"),
            std::string::npos);
  EXPECT_NE(forge(sizeof(ShardHeader), UINT64_MAX).find("negative"), std::string::npos);
}

// The manifest as a forger writes it, with the hash that fits.
std::string with_own_hash(const std::string& body) {
  return body + ",\n  \"xxh3\": \"" + to_hex(hash128(body + "\n}")) + "\"\n}\n";
}

TEST(Dataset, LyingManifestsAreRefused) {
  const TestFolder root;
  const std::string folder = root.path("data");
  write_small(folder);
  const std::string path = folder + "/manifest.json";
  const std::string text = slurp(path), good = text.substr(0, text.rfind(",\n  \"xxh3\""));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    const size_t at = bad.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    bad.replace(at, from.size(), to);
    write_text(path, with_own_hash(bad));
    return open_error(folder);
  };
  EXPECT_EQ(with("\"schema\": 2", "\"schema\": 2"), "");
  EXPECT_NE(with("\"schema\": 2", "\"schema\": 3"), "");
  EXPECT_NE(with("\"schema\": 2", "\"schema\": 1"), "");
  EXPECT_NE(with("\"num_towers\": 2", "\"num_towers\": 1"), "");
  EXPECT_NE(with("\"num_towers\": 2", "\"num_towers\": 3"), "");
  EXPECT_NE(with("\"token_bytes\": 1", "\"token_bytes\": 2"), "");
  EXPECT_NE(with("\"token_offset\": 1", "\"token_offset\": -1"), "");
  EXPECT_NE(with("\"num_examples\": 1", "\"num_examples\": 2"), "");
  EXPECT_NE(with("\"num_examples\": 1", "\"num_examples\": -1"), "");
  EXPECT_NE(with("\"num_tokens\": 2", "\"num_tokens\": 9223372036854775807"), "");
  EXPECT_NE(with("test-000.shard", "../test-000.shard"), "");
  EXPECT_NE(with("test-000.shard", "train-000.shard"), "");
  EXPECT_NE(with("\"test\"", "\"dev\""), "");
  EXPECT_NE(with("\"task\"", "\"tusk\""), "");
  EXPECT_NE(with("\"notes\"", "\"extra\": 1, \"notes\""), "");
  EXPECT_NE(with("\"generated\"", "\"found\""), "");
  for (size_t size = 0; size + 2 < text.size(); size += 7) {
    write_text(path, text.substr(0, size));
    EXPECT_NE(open_error(folder), "") << size;
  }
  EXPECT_NE(open_error(root.path("nowhere")).find("lra data make"), std::string::npos);
}

TEST(Dataset, ChangedSideFilesAreNoticed) {
  const TestFolder root;
  write_small(root.path("data"));
  write_text(root.path("data") + "/names.tsv", "a\nc\n");
  EXPECT_NE(open_error(root.path("data")).find("names.tsv"), std::string::npos);
  const Dataset dataset = Dataset::open(root.path("data"), false);
  EXPECT_THROW(dataset.read_side_file("names.tsv"), Error);
  EXPECT_THROW(dataset.read_side_file("other.tsv"), Error);
  EXPECT_THROW(dataset.split("val"), Error);
}

TEST(DatasetWriter, LeavesNothingBehindWhenItDoesNotFinish) {
  const TestFolder root;
  {
    DatasetWriter writer(root.path("data"), small_manifest(), 0);
    writer.begin_split("train");
    EXPECT_TRUE(fs::exists(root.path("data.lra.partial")));
  }
  EXPECT_TRUE(fs::is_empty(root.path(".")));
}

TEST(DatasetWriter, ReplacesWhatAnInterruptedRunLeft) {
  const TestFolder root;
  fs::create_directories(root.path("data.lra.partial"));
  write_text(root.path("data.lra.partial/train-000.shard"), "half");
  write_text(root.path("data.lra.partial/old.tmp"), "half");
  write_small(root.path("data/"));
  EXPECT_EQ(open_error(root.path("data")), "");
  EXPECT_FALSE(fs::exists(root.path("data/old.tmp")));
  EXPECT_FALSE(fs::exists(root.path("data.lra.partial")));
  EXPECT_FALSE(fs::exists(root.path("data.lra.lock")));
}

TEST(DatasetWriter, RefusesAFolderThatExistsAndASecondWriter) {
  const TestFolder root;
  DatasetWriter writer(root.path("data"), small_manifest(), 0);
  EXPECT_THROW(DatasetWriter(root.path("data"), small_manifest(), 0), Error);
  writer.begin_split("train");
  fs::create_directories(root.path("data"));
  EXPECT_THROW(writer.finish(), Error);
  EXPECT_THROW(DatasetWriter(root.path("data"), small_manifest(), 0), Error);
  EXPECT_TRUE(fs::is_empty(root.path("data")));
}

TEST(DatasetWriter, RefusesWhenTheDiskIsTooSmall) {
  const TestFolder root;
  try {
    DatasetWriter writer(root.path("data"), small_manifest(), int64_t{1} << 60);
    FAIL() << "an exabyte was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kIoError);
    EXPECT_NE(std::string(error.what()).find("free"), std::string::npos);
  }
  EXPECT_TRUE(fs::is_empty(root.path(".")));
}

// Three shards and a bit of one tower, given up after `stop_after` examples were added.
struct Interrupted {
  int64_t taken_over = 0, added = 0;
};
Interrupted write_resumable(const std::string& folder, const std::string& key, int64_t stop_after) {
  constexpr int64_t kExamples = 13;
  constexpr size_t kTokens = size_t{16} << 20;  // four make a shard
  Manifest manifest = small_manifest();
  manifest.num_towers = 1;
  DatasetWriter writer(folder, manifest, 1000, key);
  writer.begin_split("train");
  Interrupted run;
  for (const std::string& state : writer.take_over()) run.taken_over = std::stoll(state);
  for (int64_t i = run.taken_over; i < kExamples; ++i) {
    if (run.added == stop_after) return run;
    if (writer.add(static_cast<int32_t>(i), Bytes(kTokens, static_cast<uint8_t>(i)))) {
      writer.mark(std::to_string(i + 1));
    }
    ++run.added;
  }
  writer.finish();
  return run;
}

TEST(DatasetWriter, GoesOnAfterTheLastWholeShard) {
  const TestFolder root;
  const std::string whole = root.path("whole"), folder = root.path("data");
  write_resumable(whole, "key", -1);
  EXPECT_EQ(write_resumable(folder, "key", 10).taken_over, 0);
  EXPECT_TRUE(fs::exists(folder + ".lra.partial"));
  write_text(folder + ".lra.partial/train-002.shard.tmp", "half of a shard");
  const Interrupted again = write_resumable(folder, "key", -1);
  EXPECT_EQ(again.taken_over, 8);
  EXPECT_EQ(again.added, 5);
  EXPECT_FALSE(fs::exists(folder + ".lra.partial"));
  for (const fs::directory_entry& entry : fs::directory_iterator(whole)) {
    const std::string name = entry.path().filename();
    EXPECT_EQ(read_file(folder + "/" + name, 1 << 30), read_file(entry.path(), 1 << 30)) << name;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}),
            std::distance(fs::directory_iterator(whole), {}));
}

TEST(DatasetWriter, TakesNothingOverThatIsDamagedOrOfAnotherKey) {
  const TestFolder root;
  const std::string folder = root.path("data");
  write_resumable(folder, "key", 10);
  EXPECT_EQ(write_resumable(folder, "other", 9).taken_over, 0);
  const std::string second = folder + ".lra.partial/train-001.shard";
  std::string bytes = read_file(second, 1 << 30);
  bytes[bytes.size() / 2] ^= 1;
  write_text(second, bytes);
  EXPECT_EQ(write_resumable(folder, "other", 0).taken_over, 4);
  write_text(folder + ".lra.partial/train-000.shard.mark", "{");
  EXPECT_EQ(write_resumable(folder, "other", 0).taken_over, 0);
  EXPECT_FALSE(fs::exists(folder + ".lra.partial"));
}

}  // namespace
}  // namespace lra
