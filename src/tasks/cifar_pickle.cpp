#include "tasks/cifar_pickle.h"

#include <deque>
#include <map>
#include <optional>
#include <string_view>

#include "base/byte_reader.h"
#include "base/text_format.h"

namespace lra::tasks {
namespace {

constexpr int64_t kColours = 3072;    // of an image: three planes of 32 x 32
constexpr int kMaxOpcodes = 1000000;  // an official batch has about 40,000
constexpr std::string_view kReconstruct = "numpy.core.multiarray _reconstruct";
constexpr std::string_view kArrayType = "numpy ndarray", kDtype = "numpy dtype";

enum class Kind { kNone, kBool, kInt, kText, kName, kSequence, kDict, kArray, kDtype };

// The items of lists and dictionaries, and the state of an object as one value, live in the
// decoder's store and are named by their place there: a pickle that puts a list into itself, or one
// state into a million objects, costs nothing.
struct Value {
  Kind kind = Kind::kNone;
  int64_t number = 0;          // kBool, kInt
  std::string_view text = {};  // kText, kName
  size_t place = 0;            // kSequence, kDict, kArray, kDtype
};
using Values = std::vector<Value>;

class Decoder {
 public:
  Decoder(std::span<const std::byte> bytes, const std::string& name) : reader_(bytes, name) {}

  CifarBatch decode() {
    if (reader_.u8("pickle") != 0x80 || reader_.u8("pickle protocol") != 2) {
      reader_.fail("is not a pickle of protocol 2", "a batch of cifar-10-python.tar.gz");
    }
    for (int count = 0;; ++count) {
      const uint8_t opcode = reader_.u8("opcode");
      if (opcode == '.') break;
      if (count == kMaxOpcodes) reader_.fail("over " + thousands(kMaxOpcodes) + " opcodes");
      if (!push_plain(opcode) && !push_container(opcode) && !memorise(opcode)) build(opcode);
    }
    reader_.expect_end();
    return batch_of(pop(Kind::kDict, "the dictionary of a batch"));
  }

 private:
  void push(Value value) { stack_.push_back(value); }

  Value pop(Kind kind, const char* what) {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= floor || stack_.back().kind != kind) {
      reader_.fail("the pickle is not that of a batch", what);
    }
    const Value value = stack_.back();
    stack_.pop_back();
    return value;
  }

  // The last `count` values, made one tuple.
  void push_tuple(size_t count) {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() - floor < count) reader_.fail("too few values for a tuple");
    Values items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    push({.kind = Kind::kSequence, .place = store(std::move(items))});
  }

  size_t store(Values items) {
    store_.push_back(std::move(items));
    return store_.size() - 1;
  }

  // Everything above the last mark, which is taken away.
  Values pop_marked() {
    if (marks_.empty()) reader_.fail("no mark to go back to");
    Values items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }

  bool push_plain(uint8_t opcode) {
    const auto number = [&](Kind kind, int64_t value) { push({.kind = kind, .number = value}); };
    const auto text = [&](uint64_t size) {
      push({.kind = Kind::kText, .text = reader_.text(size, "string")});
    };
    switch (opcode) {
      case 'N':
        push({});
        break;
      case 0x88:
        number(Kind::kBool, 1);
        break;
      case 0x89:
        number(Kind::kBool, 0);
        break;
      case 'K':
        number(Kind::kInt, reader_.u8("number"));
        break;
      case 'M':
        number(Kind::kInt, reader_.u16("number"));
        break;
      case 'J':
        number(Kind::kInt, reader_.i32("number"));
        break;
      case 'U':
        text(reader_.u8("length of a string"));
        break;
      case 'T':
        text(reader_.u32("length of a string"));
        break;
      case 'c':
        push_name();
        break;
      default:
        return false;
    }
    return true;
  }

  // Two lines: the module and the name in it.
  void push_name() {
    std::string name;
    for (int lines = 0; lines < 2;) {
      const char c = static_cast<char>(reader_.u8("name"));
      if (c != '\n')
        name += c;
      else if (++lines == 1)
        name += ' ';
      if (name.size() > 100) reader_.fail("a name of over 100 bytes");
    }
    for (const std::string_view known : {kReconstruct, kArrayType, kDtype}) {
      if (name == known) return push({.kind = Kind::kName, .text = known});
    }
    reader_.fail("the pickle names '" + printable(name) + "'", "numpy's array and dtype only");
  }

  bool push_container(uint8_t opcode) {
    switch (opcode) {
      case '(':
        marks_.push_back(stack_.size());
        break;
      case '}':
        push({.kind = Kind::kDict, .place = store({})});
        break;
      case ']':
        push({.kind = Kind::kSequence, .place = store({})});
        break;
      case 0x85:
        push_tuple(1);
        break;
      case 0x86:
        push_tuple(2);
        break;
      case 0x87:
        push_tuple(3);
        break;
      case 't': {
        Values items = pop_marked();
        push({.kind = Kind::kSequence, .place = store(std::move(items))});
        break;
      }
      case 'e':
      case 'u':
        append(opcode == 'u', pop_marked());
        break;
      case 'a':
        append(false, pop_last(1));
        break;
      case 's':
        append(true, pop_last(2));
        break;
      default:
        return false;
    }
    return true;
  }

  Values pop_last(size_t count) {
    push_tuple(count);
    return store_[pop(Kind::kSequence, "values").place];
  }

  // To the list or dictionary on top of the stack; a dictionary is kept as key, value, key, value.
  void append(bool to_dict, const Values& items) {
    const Value owner = to_dict ? pop(Kind::kDict, "a dictionary") : pop(Kind::kSequence, "a list");
    if (to_dict && items.size() % 2 != 0) reader_.fail("a key without a value");
    Values& values = store_[owner.place];
    values.insert(values.end(), items.begin(), items.end());
    push(owner);
  }

  bool memorise(uint8_t opcode) {
    switch (opcode) {
      case 'q':
      case 'r': {
        const uint32_t key = opcode == 'q' ? reader_.u8("memo") : reader_.u32("memo");
        if (stack_.empty()) reader_.fail("nothing to remember");
        memo_[key] = stack_.back();
        return true;
      }
      case 'h':
      case 'j': {
        const uint32_t key = opcode == 'h' ? reader_.u8("memo") : reader_.u32("memo");
        const auto found = memo_.find(key);
        if (found == memo_.end()) reader_.fail("memo " + std::to_string(key) + " is empty");
        push(found->second);
        return true;
      }
      default:
        return false;
    }
  }

  // The two opcodes that in Python call a function: here they only note what would be called.
  void build(uint8_t opcode) {
    if (opcode == 'R') {
      pop(Kind::kSequence, "arguments");
      const Value name = pop(Kind::kName, "what to construct");
      if (name.text == kArrayType) reader_.fail("an array constructed in an unknown way");
      const Kind kind = name.text == kDtype ? Kind::kDtype : Kind::kArray;
      push({.kind = kind, .place = store({})});
    } else if (opcode == 'b') {
      const Value state = pop(Kind::kSequence, "the state of an array");
      const bool is_array = !stack_.empty() && stack_.back().kind == Kind::kArray;
      const Value object = pop(is_array ? Kind::kArray : Kind::kDtype, "an array or its dtype");
      store_[object.place] = {state};
      push(object);
    } else {
      reader_.fail("opcode " + std::to_string(opcode) + " is not one of a CIFAR-10 batch",
                   "data_batch_N or test_batch of cifar-10-python.tar.gz");
    }
  }

  CifarBatch batch_of(const Value& dict) {
    if (!stack_.empty() || !marks_.empty()) reader_.fail("values are left over");
    CifarBatch batch;
    const Value labels = find(dict, "labels", Kind::kSequence);
    for (const Value& label : store_[labels.place]) {
      if (label.kind != Kind::kInt) reader_.fail("a label is no number");
      batch.labels.push_back(label.number);
    }
    batch.colours = array_of(find(dict, "data", Kind::kArray));
    const uint64_t expected = batch.labels.size() * kColours;
    if (batch.colours.size() != expected) {
      reader_.fail("data has " + std::to_string(batch.colours.size()) + " bytes for " +
                       std::to_string(batch.labels.size()) + " labels",
                   std::to_string(expected));
    }
    return batch;
  }

  Value find(const Value& dict, std::string_view key, Kind kind) {
    const Values& items = store_[dict.place];
    for (size_t i = 0; i < items.size(); i += 2) {
      if (items[i].kind != Kind::kText || items[i].text != key) continue;
      if (items[i + 1].kind == kind) return items[i + 1];
    }
    reader_.fail("the batch has no " + std::string(key) + " of the expected kind");
  }

  // numpy's state of an array: version, shape, dtype, column-major?, bytes.
  std::span<const std::byte> array_of(const Value& array) {
    if (store_[array.place].empty()) reader_.fail("data is an array without content");
    const Values& state = store_[store_[array.place][0].place];
    const auto has = [&](const Value& value, Kind kind, int64_t number) {
      return value.kind == kind && value.number == number;
    };
    if (state.size() != 5 || state[1].kind != Kind::kSequence || !has(state[3], Kind::kBool, 0) ||
        state[4].kind != Kind::kText) {
      reader_.fail("data is not an array in C order");
    }
    const Values& shape = store_[state[1].place];
    if (shape.size() != 2 || !has(shape[1], Kind::kInt, kColours)) {
      reader_.fail("data has another shape", "[N, 3072]");
    }
    const std::string_view bytes = state[4].text;
    if (!has(shape[0], Kind::kInt, static_cast<int64_t>(bytes.size()) / kColours)) {
      reader_.fail("data has " + std::to_string(bytes.size()) + " bytes", "what its shape says");
    }
    return std::as_bytes(std::span(bytes));
  }

  ByteReader reader_;
  Values stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::deque<Values> store_;   // contents of containers and states of objects
  std::map<uint32_t, Value> memo_;
};

}  // namespace

CifarBatch read_cifar_pickle(std::span<const std::byte> bytes, const std::string& name) {
  return Decoder(bytes, name).decode();
}

}  // namespace lra::tasks
