#include "io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <utility>

#include "base/scratch_folder.h"
#include "io/atomic_file.h"

namespace lra {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string text_of(std::span<const std::byte> data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

std::string length_prefix(uint64_t length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes;
}

// A file with this header, padded as the format wants, and these data.
std::string file_with(std::string header, std::string_view data) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return length_prefix(header.size()) + header + std::string(data);
}

class Safetensors : public testing::Test {
 protected:
  // The message with which `content` is refused; "" when it is read.
  std::string refusal(const std::string& content) {
    // Written without atomicity: a thousand flushes to the device take ten seconds.
    std::ofstream(path_, std::ios::binary) << content;
    return error_of([&] { SafetensorsFile::open(path_); });
  }
  std::string refusal(const std::string& header, std::string_view data) {
    return refusal(file_with(header, data));
  }

  ScratchFolder folder_;
  std::string path_ = folder_.file("a.safetensors");
};

TEST_F(Safetensors, RoundTripsEveryDtype) {
  const std::string data(8 * 6, 'x');
  std::vector<TensorView> tensors;
  for (const Dtype dtype : {Dtype::kF64, Dtype::kF32, Dtype::kF16, Dtype::kBF16, Dtype::kI64,
                            Dtype::kI32, Dtype::kI16, Dtype::kI8, Dtype::kU8, Dtype::kBool}) {
    const auto size = static_cast<size_t>(6 * size_in_bytes(dtype));
    tensors.push_back({to_string(dtype), dtype, {2, 3}, bytes_of(data).first(size)});
  }
  write_safetensors(path_, tensors);
  const SafetensorsFile file = SafetensorsFile::open(path_);
  ASSERT_EQ(file.tensors().size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(file.tensors()[i].name, tensors[i].name);
    EXPECT_EQ(file.tensors()[i].dtype, tensors[i].dtype);
    EXPECT_THAT(file.tensors()[i].shape, ElementsAre(2, 3));
    EXPECT_EQ(text_of(file.tensors()[i].data), text_of(tensors[i].data));
  }
}

TEST_F(Safetensors, KeepsOrderMetadataScalarsAndEmptyTensors) {
  write_safetensors(path_,
                    {{"z", Dtype::kU8, {}, bytes_of("s")},
                     {"empty", Dtype::kF32, {3, 0}, {}},
                     {"a \"quoted\" ö\n", Dtype::kU8, {4}, bytes_of("data")}},
                    {{"step", "12"}, {"config", "{\"a\": 1}"}});
  const SafetensorsFile opened = SafetensorsFile::open(path_);
  std::vector<std::string> names;
  for (const TensorView& tensor : opened.tensors()) names.push_back(tensor.name);
  EXPECT_THAT(names, ElementsAre("z", "empty", "a \"quoted\" ö\n"));
  EXPECT_EQ(text_of(opened.find("a \"quoted\" ö\n")->data), "data");
  EXPECT_TRUE(opened.find("z")->shape.empty());
  EXPECT_EQ(opened.find("none"), nullptr);
  EXPECT_EQ(opened.metadata().at("step"), "12");
  EXPECT_EQ(opened.metadata().at("config"), "{\"a\": 1}");
}

TEST_F(Safetensors, WritesTheseBytes) {
  write_safetensors(path_, {{"a", Dtype::kI16, {2}, bytes_of("wxyz")}});
  const std::string header = R"({"a":{"dtype":"I16","shape":[2],"data_offsets":[0,4]}})";
  EXPECT_EQ(read_file(path_, 1000), file_with(header, "wxyz"));
}

TEST_F(Safetensors, ViewsSurviveAMove) {
  write_safetensors(path_, {{"a", Dtype::kU8, {4}, bytes_of("data")}});
  SafetensorsFile file = SafetensorsFile::open(path_);
  const SafetensorsFile moved = std::move(file);
  EXPECT_EQ(text_of(moved.find("a")->data), "data");
}

TEST_F(Safetensors, ReadsHeadersInAnyOrder) {
  EXPECT_EQ(refusal(R"({"b":{"shape":[1],"data_offsets":[1,2],"dtype":"U8"},)"
                    R"("e":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},)"
                    R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                    "AB"),
            "");
  const SafetensorsFile file = SafetensorsFile::open(path_);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_EQ(text_of(file.find("b")->data), "B");
}

TEST_F(Safetensors, RefusesFilesThatEndTooEarly) {
  EXPECT_THAT(refusal(""), HasSubstr("length of the header"));
  EXPECT_THAT(refusal("1234567"), HasSubstr("a.safetensors:byte 0"));
  EXPECT_THAT(refusal(length_prefix(64) + "{}"), HasSubstr("header: the file ends too early"));
  EXPECT_THAT(refusal(R"({"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", "abc"),
              HasSubstr("tensor 'w' reaches past the end of the file"));
}

TEST_F(Safetensors, RefusesBadHeaderLengths) {
  EXPECT_THAT(refusal(length_prefix(UINT64_MAX)), HasSubstr("at most 100000000"));
  EXPECT_THAT(refusal(length_prefix(100'000'008)), HasSubstr("at most 100000000"));
  EXPECT_THAT(refusal(length_prefix(2) + "{}"), HasSubstr("expected a multiple of 8"));
}

TEST_F(Safetensors, RefusesHeadersThatAreNoObject) {
  EXPECT_THAT(refusal("[]", ""), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal(" {}", ""), HasSubstr("'{' at byte 8"));
  EXPECT_THAT(refusal("{\"a\":", ""), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("", ""), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal(R"({"a":[[[[1]]]]})", ""), HasSubstr("nested deeper"));
}

TEST_F(Safetensors, RefusesRepeatedNames) {
  const std::string entry = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_THAT(refusal("{" + entry + "," + entry + "}", "x"), HasSubstr("'a' appears twice"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "x"),
              HasSubstr("'dtype' appears twice"));
}

TEST_F(Safetensors, RefusesHolesOverlapsAndTrailingBytes) {
  const auto two = [](const char* first, const char* second) {
    return std::string(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)") + first +
           R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + second + "}}";
  };
  EXPECT_EQ(refusal(two("[0,2]", "[2,4]"), "abcd"), "");
  EXPECT_THAT(refusal(two("[0,2]", "[3,5]"), "abcde"),
              HasSubstr("1 bytes before tensor 'b' belong to no tensor"));
  EXPECT_THAT(refusal(two("[1,3]", "[3,5]"), "abcde"), HasSubstr("before tensor 'a'"));
  EXPECT_THAT(refusal(two("[0,2]", "[1,3]"), "abc"), HasSubstr("tensor 'b' overlaps"));
  EXPECT_THAT(refusal(two("[0,2]", "[0,2]"), "ab"), HasSubstr("overlaps"));
  EXPECT_THAT(refusal(two("[0,2]", "[2,4]"), "abcde"), HasSubstr("1 bytes too many"));
  EXPECT_THAT(refusal("{}", "x"), HasSubstr("1 bytes too many"));
}

struct BadEntry {
  const char* entry;
  const char* message;
};

TEST_F(Safetensors, RefusesEntriesThatMakeNoSenseNamingTheTensor) {
  const BadEntry cases[] = {
      {R"({"dtype":"F8","shape":[1],"data_offsets":[0,1]})", "'w.dtype' is 'F8'"},
      {R"({"dtype":3,"shape":[1],"data_offsets":[0,1]})", "'w.dtype' is an integer"},
      {R"({"shape":[1],"data_offsets":[0,1]})", "'w.dtype' is missing"},
      {R"({"dtype":"U8","data_offsets":[0,1]})", "'w.shape' is missing"},
      {R"({"dtype":"U8","shape":[1]})", "'w.data_offsets' is missing"},
      {R"({"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1})", "unknown field 'w.x'"},
      {R"({"dtype":"U8","shape":1,"data_offsets":[0,1]})", "'w.shape' is an integer"},
      {R"({"dtype":"U8","shape":[-1],"data_offsets":[0,1]})", "'w.shape' holds -1"},
      {R"({"dtype":"U8","shape":[1.0],"data_offsets":[0,1]})", "'w.shape' holds 1.0"},
      {R"({"dtype":"U8","shape":[true],"data_offsets":[0,1]})", "'w.shape' holds true"},
      {R"({"dtype":"U8","shape":[1],"data_offsets":[0]})", "'w.data_offsets' is malformed"},
      {R"({"dtype":"U8","shape":[1],"data_offsets":[1,0]})", "end before they begin"},
      {R"({"dtype":"U8","shape":[1],"data_offsets":[-1,0]})", "'w.data_offsets' holds -1"},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[0,1]})", "hold 1 bytes; expected 4"},
      {R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]})", "overflows"},
      {R"({"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]})", "overflows"},
      {R"({"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,1]})", "overflows"},
      {R"({"dtype":"U8","shape":[9223372036854775807,3,0],"data_offsets":[0,0]})", "overflows"},
      {R"({"dtype":"U8","shape":[1],"data_offsets":[18446744073709551615,0]})", "end before"},
      {R"([])", "'w' is an array"},
  };
  for (const BadEntry& bad : cases) {
    EXPECT_THAT(refusal(std::string("{\"w\":") + bad.entry + "}", "x"), HasSubstr(bad.message))
        << bad.entry;
  }
}

TEST_F(Safetensors, RefusesMetadataThatIsNotText) {
  EXPECT_THAT(refusal(R"({"__metadata__":{"step":12}})", ""),
              HasSubstr("'__metadata__.step' is an integer; expected a string"));
  EXPECT_THAT(refusal(R"({"__metadata__":[]})", ""), HasSubstr("expected an object"));
}

TEST_F(Safetensors, SurvivesEveryTruncationAndEveryFlippedByte) {
  write_safetensors(
      path_,
      {{"a", Dtype::kF32, {2}, bytes_of("12345678")}, {"b", Dtype::kU8, {3}, bytes_of("xyz")}},
      {{"k", "v"}});
  const std::string good = read_file(path_, 10000);
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(refusal(good.substr(0, size)), "") << size;
  }
  const size_t header_end = good.size() - 11;
  for (size_t i = 0; i < header_end; ++i) {
    for (const char flip : {'\x01', '\x20', '\x80'}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      refusal(bad);  // either refused with an Error or read: anything else fails the test
    }
  }
}

TEST_F(Safetensors, WriterChecksItsCaller) {
  const auto write = [&](const TensorView& tensor) { write_safetensors(path_, {tensor}); };
  EXPECT_THROW(write({"a", Dtype::kF32, {1}, bytes_of("123")}), CheckFailure);
  EXPECT_THROW(write({"a", Dtype::kU8, {-1}, {}}), CheckFailure);
  EXPECT_THROW(write({"", Dtype::kU8, {0}, {}}), CheckFailure);
  EXPECT_THROW(write({"__metadata__", Dtype::kU8, {0}, {}}), CheckFailure);
  const TensorView twice{"a", Dtype::kU8, {0}, {}};
  EXPECT_THROW(write_safetensors(path_, {twice, twice}), CheckFailure);
}

// Most of their first bytes would be a length of 10^17 bytes.
TEST_F(Safetensors, NamesOtherFormatsOfWeights) {
  using namespace std::string_literals;
  EXPECT_THAT(refusal("PK\3\4"s + std::string(60, 'x')), HasSubstr("zip archive, as torch.save"));
  for (const std::string& pickle :  // of a dictionary by pickle.dump, and by an old torch.save
       {"\x80\2}q\0X\1\0\0\0aK\1s."s, "\x80\3}q\0X\1\0\0\0aK\1s."s,
        "\x80\4\x95\x0A\0\0\0\0\0\0\0}\x94\x8C\1aK\1s."s, "\x80\2ccollections\nOrderedDict\n"s,
        "\x80\2\x8A\nl\xFC\x9C\x46\xF9 j\xA8P\x19."s}) {
    EXPECT_THAT(refusal(pickle), HasSubstr("pickle"));
  }
  EXPECT_THAT(refusal("\x89HDF\r\n\x1A\n12345678"), HasSubstr("HDF5"));
  EXPECT_THAT(refusal("\x80\2" + std::string(60, 'x')), HasSubstr("at most 100000000"));
}

// A length of 640 begins with 80 02, 67,324,752 is "PK" 3 4.
TEST_F(Safetensors, ReadsHeadersOfAnyLength) {
  for (const size_t length : {640, 768, 896, 1024, 1280, 65'536 + 640}) {
    std::string header = R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
    header.resize(length, ' ');
    EXPECT_EQ(refusal(header, "ab"), "") << length;
    EXPECT_EQ(text_of(SafetensorsFile::open(path_).find("w")->data), "ab") << length;
    header[0] = '[';
    EXPECT_THAT(refusal(header, "ab"), HasSubstr("not a JSON object")) << length;
  }
}

// The number of bytes of the header that write_safetensors() wrote.
uint64_t header_bytes(const std::string& path) {
  uint64_t length = 0;
  std::memcpy(&length, read_file(path, 1 << 20).data(), sizeof length);
  return length;
}

TEST_F(Safetensors, ReadsACheckpointOf700TensorsWhateverItsHeaderBeginsWith) {
  const auto write = [&](size_t metadata_bytes) {
    std::vector<TensorView> tensors;
    for (int i = 0; i < 700; ++i) {
      tensors.push_back({"encoder.layers." + std::to_string(i) + ".mixer.qkv.weight",
                         Dtype::kU8,
                         {1},
                         bytes_of("x")});
    }
    write_safetensors(path_, tensors, {{"run", std::string(metadata_bytes, 'r')}});
    return header_bytes(path_);
  };
  constexpr uint64_t kModulus = 65'536, kLikeAPickle = 640;
  const uint64_t missing = (kLikeAPickle + kModulus - write(8) % kModulus) % kModulus;
  ASSERT_EQ(write(8 + missing) % kModulus, kLikeAPickle);
  EXPECT_EQ(SafetensorsFile::open(path_).tensors().size(), 700u);
}

}  // namespace
}  // namespace lra
