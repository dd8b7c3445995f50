// Pickles of Python 2 and 3, protocols 2 to 5, that hold plain values and NumPy arrays.
//
// A pickle is a program, and Python runs anything it names. Here it is data: only the opcodes that
// pickle.dump writes for such values are known, the few names they need are compared with a list
// and never looked up, and everything else is refused. Nothing is copied and nothing recurses:
// memory is bounded by the number of opcodes, which is limited.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lra::tasks {

// The items of containers and the contents of arrays live in the Pickle and are named by their
// index there: a pickle that puts a list into itself, or one list into a million others, costs
// nothing.
struct PickleValue {
  enum class Kind {
    kNone,
    kBool,
    kInt,
    kText,      // a str of Python 3, or a unicode of Python 2; UTF-8
    kBytes,     // bytes or a bytearray, or a str of Python 2
    kLatin1,    // bytes that protocol 2 of Python 3 stores as text; UTF-8
    kName,      // something that Python would look up
    kSequence,  // a list or a tuple
    kDict,      // key, value, key, value, in the order written
    kDtype,
    kArray,
  };
  Kind kind = Kind::kNone;
  int64_t number = 0;          // kBool, kInt, kName
  std::string_view text = {};  // kText, kBytes, kLatin1; kDtype: as numpy.dtype takes it, "u1"
  size_t index = 0;            // kSequence, kDict, kArray
};
using PickleValues = std::vector<PickleValue>;

struct PickleArray {
  PickleValue data;             // kBytes or kLatin1; kNone: an array without content
  PickleValue shape;            // kSequence
  std::string_view dtype = {};  // "u1"
  bool is_c_order = false;
};

struct Pickle {
  PickleValue root;
  std::deque<PickleValues> containers;
  std::deque<PickleArray> arrays;
};

// `bytes` must outlive the result, and `name` is the file in messages. Throws lra::Error that names
// file and offset.
Pickle read_pickle(std::span<const std::byte> bytes, const std::string& name);

// True if a value is a str or bytes with this ASCII text.
bool is_string(const PickleValue& value, std::string_view ascii);

// "a list or tuple", "an array": the kind of a value for messages.
const char* kind_name(PickleValue::Kind kind);

}  // namespace lra::tasks
