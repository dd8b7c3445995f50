#include "tasks/image/cifar_pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tasks/image/test_cifar.h"
#include "tasks/image/test_python_pickles.h"

namespace lra::tasks {
namespace {

using namespace std::string_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Copy of the content of a pickle.
struct ReadBatch {
  std::vector<int64_t> labels;
  std::string colours;
};

ReadBatch read_pickle(const std::string& bytes) {
  std::vector<std::byte> decoded;
  const CifarBatch batch = read_cifar_pickle(std::as_bytes(std::span(bytes)), "p", &decoded);
  return {batch.labels,
          {reinterpret_cast<const char*>(batch.colours.data()), batch.colours.size()}};
}

std::string pickle_error(const std::string& bytes) {
  return error_of([&] { read_pickle(bytes); });
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t found = text.find(from);
  EXPECT_NE(found, std::string::npos) << from;
  return found == std::string::npos ? text : text.replace(found, from.size(), to);
}

std::string pickle_of(const std::string& title) {
  for (const PythonPickle& pickle : python_pickles()) {
    if (pickle.title == title) return whole_pickle(pickle);
  }
  ADD_FAILURE() << title;
  return "";
}

// The pickle as NumPy 1 writes it: numpy._core is called numpy.core, which is a byte shorter.
std::string of_numpy_1(std::string pickle) {
  const size_t underscore = pickle.find("numpy._core") + 6;
  pickle.erase(underscore, 1);
  if (pickle[1] < 4) return pickle;  // names end with their line
  --pickle[underscore - 7];          // the length of the module's name
  --pickle[3];                       // and of the frame
  return pickle;
}

// Opcodes between the head of a protocol and the end.
std::string opcodes(int protocol, const std::string& body) {
  return "\x80"s + static_cast<char>(protocol) + body + ".";
}

TEST(CifarPickle, EveryProtocolKeyAndNumpyGivesTheSameBatch) {
  const std::string colours = python_pickle_colours();
  for (const PythonPickle& pickle : python_pickles()) {
    const std::string numpy_2 = whole_pickle(pickle);
    for (const std::string& bytes : {numpy_2, of_numpy_1(numpy_2)}) {
      SCOPED_TRACE(std::string(pickle.title) + (bytes == numpy_2 ? ", NumPy 2" : ", NumPy 1"));
      ASSERT_EQ(pickle_error(bytes), "");
      const ReadBatch batch = read_pickle(bytes);
      EXPECT_THAT(batch.labels, ElementsAre(3, 7));
      EXPECT_TRUE(batch.colours == colours);
    }
  }
}

TEST(CifarPickle, ColoursStoredAsTextNeedAPlaceToBeDecoded) {
  const std::string bytes = pickle_of("protocol 2, keys of bytes");
  EXPECT_THAT(error_of([&] { read_cifar_pickle(std::as_bytes(std::span(bytes)), "p"); }),
              HasSubstr("p: data is stored as text, as Python 3 does in protocol 2; expected "
                        "protocol 3 to 5"));
}

TEST(CifarPickle, OtherOpcodesForTheSameValuesAreRead) {
  const std::string good = pickle_of("protocol 5, keys of str");
  const std::string colours = python_pickle_colours();
  const auto expect_same = [&](const std::string& bytes) {
    ASSERT_EQ(pickle_error(bytes), "");
    const ReadBatch batch = read_pickle(bytes);
    EXPECT_THAT(batch.labels, ElementsAre(3, 7));
    EXPECT_TRUE(batch.colours == colours);
  };
  expect_same(good);
  // An array that cannot be written to has bytes in place of a bytearray.
  expect_same(replaced(good, "\x96\x00\x18"s, "\x8E\x00\x18"s));
  // Large data end a frame, stand alone and begin another one.
  const size_t data = good.find("\x96\x00\x18"s), frame = good.find("\x94\x8C\x05numpy\x94"s);
  const std::string rest = good.substr(frame);
  expect_same("\x80\x05\x95"s + static_cast<char>(data - 11) + std::string(7, 0) +
              good.substr(11, frame - 11) + "\x95"s + static_cast<char>(rest.size()) +
              std::string(7, 0) + rest);
  // A label as a long of Python 2, a dtype with a byte order, a key with a length of 8 bytes.
  const std::string old = pickle_of("protocol 3, keys of str");
  expect_same(replaced(old, "(K\003K\007e"s, "(\x8A\x01\x03\x8A\x02\x07\x00"s + "e"));
  expect_same(replaced(old, "X\002\000\000\000u1"s, "X\003\000\000\000<u1"s));
  expect_same(replaced(old, "X\006\000\000\000labels"s, "\x8D\006\000\000\000\0\0\0\0labels"s));
  expect_same(replaced(old, "X\006\000\000\000labels"s, "\x8E\006\000\000\000\0\0\0\0labels"s));
  // An empty value of bytes in protocol 2, where Python 3 has no opcode for it.
  expect_same(replaced(pickle_of("protocol 2, keys of str"), "X\015\000\000\000testing batch"s,
                       "c__builtin__\nbytes\n)R"));
}

TEST(CifarPickle, OtherArraysAreRefusedByWhatTheyAre) {
  const std::string new_array = pickle_of("protocol 5, keys of bytes");
  const std::string old_array = pickle_of("protocol 4, keys of bytes");
  const std::string shape = "K\002M\000\014\206"s;
  for (const std::string& good : {new_array, old_array}) {
    const auto error_with = [&](const std::string& from, const std::string& to) {
      return pickle_error(replaced(good, from, to));
    };
    EXPECT_THAT(error_with("\214\002u1", "\214\002f4"),
                StartsWith("p: data has the dtype 'f4'; expected uint8; take data_batch_1"));
    EXPECT_THAT(error_with(shape, "(K\002K\003K\040K\040t"),
                HasSubstr("p: data has the shape [2, 3, 32, 32]; expected [N, 3072]"));
    EXPECT_THAT(error_with(shape, "M\000\014K\002\206"s), HasSubstr("the shape [3072, 2]"));
    EXPECT_THAT(error_with(shape, "K\002M\000\030\206"s), HasSubstr("the shape [2, 6144]"));
    EXPECT_THAT(error_with(shape, "K\003M\000\014\206"s),
                HasSubstr("data has the shape [3, 3072] and 6,144 bytes; expected as many"));
    EXPECT_THAT(error_with(shape, "(" + std::string(500, 'N') + "t"),
                AllOf(HasSubstr("[?, ?, ?"), HasSubstr(", ...];")));
  }
  EXPECT_THAT(pickle_error(replaced(new_array, "\214\001C", "\214\001F")),
              HasSubstr("data is not in C order; expected what numpy.ascontiguousarray gives"));
  EXPECT_THAT(pickle_error(replaced(old_array, "\211B\000\030"s, "\210B\000\030"s)),
              HasSubstr("data is not in C order"));
  EXPECT_THAT(pickle_error(replaced(old_array, "\211B\000\030"s, "\211NB\000\030"s)),
              HasSubstr("the state of an array has another form"));
  EXPECT_THAT(pickle_error(replaced(pickle_of("protocol 2, keys of str"), "\303\274", "\304\274")),
              HasSubstr("data holds text that is not Latin-1"));
}

TEST(CifarPickle, OtherDictionariesAreRefusedByWhatTheyLack) {
  const std::string good = pickle_of("protocol 3, keys of bytes");
  const auto error_with = [&](const std::string& from, const std::string& to) {
    return pickle_error(replaced(good, from, to));
  };
  EXPECT_THAT(error_with("C\006labels", "C\013fine_labels"),
              HasSubstr("p: has no labels; expected a dictionary with labels and data"));
  EXPECT_THAT(error_with("C\004data", "C\004date"), HasSubstr("p: has no data"));
  EXPECT_THAT(error_with("(K\003K\007e", "(K\003Ne"),
              HasSubstr("p: label 1 is None; expected a whole number"));
  EXPECT_THAT(error_with("(K\003K\007e", "(K\003K\007K\001e"),
              HasSubstr("p: has 3 labels for 2 images"));
  EXPECT_THAT(error_with("C\006labels", "C\006labelsNC\006labels"), "")
      << "the last value of a key counts";
  EXPECT_THAT(error_with("C\011filenames", "C\004data"),
              HasSubstr("p: data is a list or tuple; expected an array"));
  EXPECT_THAT(pickle_error(opcodes(4, "K\001")), HasSubstr("p: holds a whole number; expected a"));
  EXPECT_THAT(pickle_error(opcodes(2, "}")), HasSubstr("p: has no labels"));
}

TEST(CifarPickle, NothingThatAPickleNamesIsRun) {
  const std::string kArguments = "\214\002ls\205R";
  EXPECT_THAT(pickle_error(opcodes(2, "cos\nsystem\n" + kArguments)),
              HasSubstr("the pickle names 'os system'; expected NumPy's arrays and plain values"));
  EXPECT_THAT(pickle_error(opcodes(4, "\214\002os\214\006system\223" + kArguments)),
              HasSubstr("'os system'"));
  EXPECT_THAT(pickle_error(opcodes(4, "\214\005numpy\214\004save\223" + kArguments)),
              HasSubstr("'numpy save'"));
  EXPECT_THAT(pickle_error(opcodes(4, "K\001K\002\223")), HasSubstr("expected a text"));
  EXPECT_THAT(pickle_error(opcodes(2, "c" + std::string(200, 'a') + "\nb\n")),
              HasSubstr("over 100 bytes"));
  // Names that are known, with what they are never called with.
  for (const char* call :
       {"c_codecs\nencode\n\214\001a\214\005utf-8\206R",
        "c_codecs\nencode\nK\001\214\006latin1\206R", "c__builtin__\nbytes\nK\001\205R",
        "cnumpy\nndarray\n)R", "cnumpy\ndtype\nK\001\205R",
        "cnumpy.core.numeric\n_frombuffer\n\214\001a\205R"}) {
    EXPECT_THAT(pickle_error(opcodes(5, call)), HasSubstr("in an unknown way")) << call;
  }
  EXPECT_THAT(pickle_error(opcodes(5, "cnumpy.core.numeric\n_frombuffer\n(K\001NN\214\001CtR")),
              HasSubstr("no bytes, dtype or shape"));
}

TEST(CifarPickle, RefusesWhateverIsNoPickleOfABatch) {
  const std::string good = cifar_pickle(small_cifar_records(3, 4));
  EXPECT_EQ(pickle_error(good), "");
  EXPECT_THAT(pickle_error(""), HasSubstr("p:byte 0"));
  EXPECT_THAT(pickle_error("(dp0\n."), HasSubstr("is not a pickle of protocol 2 to 5"));
  EXPECT_THAT(pickle_error(opcodes(1, "}")), HasSubstr("a pickle of protocol 1; expected"));
  EXPECT_THAT(pickle_error(opcodes(6, "}")), HasSubstr("a pickle of protocol 6; expected"));
  EXPECT_THAT(pickle_error(good + "x"), HasSubstr("p:byte"));
  for (const auto& [body, part] : std::vector<std::pair<std::string, std::string>>{
           {"0", "opcode 48 is unknown; expected a pickle of lists"},
           {"\227", "in a buffer outside of the pickle; expected one written without"},
           {"]q\001h\001a", "p: holds a list"},
           {"}h\007", "memo 7 is empty"},
           {"\224", "nothing to remember"},
           {"}K\001s", "too few values"},
           {"K\001K\002K\003s", "has a whole number at a wrong place; expected a dictionary"},
           {"}(K\001u", "key without a value"},
           {"e", "no mark"},
           {"(}", "values are left"},
           {"}}", "2 values are left"},
           {"", "0 values are left"},
           {"T\377\377\377\377", "string: the file ends too early"},
           {"\215" + std::string(8, '\377'), "string: the file ends too early"},
           {"\216" + std::string(8, '\377'), "string: the file ends too early"},
           {"\226" + std::string(7, '\377') + "\177", "string: the file ends too early"},
           {"\225" + std::string(8, '\377'), "a frame is longer than"},
           {"\212\011" + std::string(9, '\1'), "a number of 9 bytes; expected at most 8"},
           {std::string(1000001, ']'), "over 1,000,000 opcodes"},
           {std::string(400000, '(') + "t", "values are left"},
           {")" + std::string(900000, '\205'), "p: holds a list"}}) {
    EXPECT_THAT(pickle_error(opcodes(4, body)), HasSubstr(part)) << body.substr(0, 40);
  }
}

// Every way of cutting a pickle short, and every single byte changed, ends in a batch or an error
// of one line.
TEST(CifarPickle, DamageAnywhereIsSurvived) {
  const auto survive = [](const std::string& good, size_t colours, size_t end) {
    for (size_t i = 0; i < good.size(); ++i) {
      if (i > colours && i < end) continue;  // these bytes mean nothing to the decoder
      EXPECT_NE(pickle_error(good.substr(0, i)), "") << i;
      for (const int change : {0x01, 0x20, 0x80, 0xFF}) {
        std::string bytes = good;
        bytes[i] = static_cast<char>(bytes[i] ^ change);
        const std::string error = pickle_error(bytes);
        EXPECT_TRUE(error.empty() || error.starts_with("p:")) << error;
        EXPECT_EQ(error.find('\n'), std::string::npos) << error;
        EXPECT_LT(error.size(), 500U) << error;
      }
    }
  };
  const std::string official = cifar_pickle(small_cifar_records(2, 4));
  const size_t colours = official.find("\x89T") + 6;
  survive(official, colours, colours + 2 * 3072);
  for (const PythonPickle& pickle : python_pickles()) {
    const std::string good = whole_pickle(pickle);
    survive(good, pickle.head.size() + 2, good.size() - pickle.tail.size());
  }
}

}  // namespace
}  // namespace lra::tasks
