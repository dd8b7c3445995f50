#include "tasks/image/pickle.h"

#include <map>
#include <optional>

#include "base/text_format.h"
#include "io/byte_reader.h"

namespace lra::tasks {
namespace {

using Kind = PickleValue::Kind;

constexpr int kMaxOpcodes = 1000000;   // an official batch has about 40,000
constexpr size_t kMaxNameBytes = 100;  // of a module or of a name in it
constexpr int kMinProtocol = 2, kMaxProtocol = 5;

struct StringOpcode {
  uint8_t opcode;
  Kind kind;
  int length_bytes;
};
constexpr StringOpcode kStringOpcodes[] = {
    {'U', Kind::kBytes, 1}, {'T', Kind::kBytes, 4},  {'C', Kind::kBytes, 1},
    {'B', Kind::kBytes, 4}, {0x8E, Kind::kBytes, 8}, {0x96, Kind::kBytes, 8},
    {0x8C, Kind::kText, 1}, {'X', Kind::kText, 4},   {0x8D, Kind::kText, 8},
};

// Names that a pickle may use. NumPy 2 renamed numpy.core to numpy._core.
enum class Callable { kNdarray, kDtype, kReconstruct, kFromBuffer, kEncode, kBytes };
struct KnownName {
  std::string_view module, name;
  Callable callable;
};
constexpr KnownName kKnownNames[] = {
    {"numpy", "ndarray", Callable::kNdarray},
    {"numpy", "dtype", Callable::kDtype},
    {"numpy.core.multiarray", "_reconstruct", Callable::kReconstruct},
    {"numpy._core.multiarray", "_reconstruct", Callable::kReconstruct},
    {"numpy.core.numeric", "_frombuffer", Callable::kFromBuffer},
    {"numpy._core.numeric", "_frombuffer", Callable::kFromBuffer},
    {"_codecs", "encode", Callable::kEncode},
    {"__builtin__", "bytes", Callable::kBytes},
};

class Decoder {
 public:
  Decoder(std::span<const std::byte> bytes, const std::string& name) : reader_(bytes, name) {}

  Pickle decode() {
    if (reader_.u8("pickle") != 0x80) {
      reader_.fail("is not a pickle of protocol 2 to 5",
                   "what pickle.dump of Python 3 writes by default");
    }
    const int protocol = reader_.u8("pickle protocol");
    if (protocol < kMinProtocol || protocol > kMaxProtocol) {
      reader_.fail("is a pickle of protocol " + std::to_string(protocol), "protocol 2 to 5");
    }
    for (int count = 0;; ++count) {
      const uint8_t opcode = reader_.u8("opcode");
      if (opcode == '.') break;
      if (count == kMaxOpcodes) reader_.fail("over " + thousands(kMaxOpcodes) + " opcodes");
      if (!push_number(opcode) && !push_string(opcode) && !push_container(opcode) &&
          !add_to_container(opcode) && !use_memo(opcode)) {
        construct(opcode);
      }
    }
    reader_.expect_end();
    if (stack_.size() != 1 || !marks_.empty()) {
      reader_.fail(std::to_string(stack_.size()) + " values are left at the end", "one");
    }
    pickle_.root = stack_.back();
    return std::move(pickle_);
  }

 private:
  void push(PickleValue value) { stack_.push_back(value); }

  // Values above the last mark.
  size_t num_open() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }

  PickleValue pop(Kind kind) {
    if (num_open() == 0) reader_.fail("the pickle has too few values", kind_name(kind));
    const PickleValue value = stack_.back();
    if (value.kind != kind) {
      reader_.fail(std::string("the pickle has ") + kind_name(value.kind) + " at a wrong place",
                   kind_name(kind));
    }
    stack_.pop_back();
    return value;
  }

  PickleValues pop_last(size_t count) {
    if (num_open() < count) reader_.fail("the pickle has too few values");
    PickleValues items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }

  // Everything above the last mark, which is removed.
  PickleValues pop_marked() {
    if (marks_.empty()) reader_.fail("the pickle has no mark to go back to");
    PickleValues items = pop_last(num_open());
    marks_.pop_back();
    return items;
  }

  void push_new(Kind kind, PickleValues items) {
    pickle_.containers.push_back(std::move(items));
    push({.kind = kind, .index = pickle_.containers.size() - 1});
  }

  const PickleValues& items_of(const PickleValue& value) const {
    return pickle_.containers[value.index];
  }

  bool push_number(uint8_t opcode) {
    const auto number = [&](Kind kind, int64_t value) {
      push({.kind = kind, .number = value});
      return true;
    };
    switch (opcode) {
      case 'N':
        return number(Kind::kNone, 0);
      case 0x88:
        return number(Kind::kBool, 1);
      case 0x89:
        return number(Kind::kBool, 0);
      case 'K':
        return number(Kind::kInt, reader_.u8("number"));
      case 'M':
        return number(Kind::kInt, reader_.u16("number"));
      case 'J':
        return number(Kind::kInt, reader_.i32("number"));
      case 0x8A:
        return number(Kind::kInt, long_number());
      default:
        return false;
    }
  }

  // Little-endian, in as many bytes as the number needs.
  int64_t long_number() {
    const uint8_t size = reader_.u8("length of a number");
    if (size > 8) reader_.fail("a number of " + std::to_string(size) + " bytes", "at most 8");
    uint64_t value = 0;
    for (int i = 0; i < size; ++i) value |= uint64_t{reader_.u8("number")} << (8 * i);
    const int unused = 64 - 8 * size;  // the last byte has the sign
    return size == 0 ? 0 : static_cast<int64_t>(value << unused) >> unused;
  }

  bool push_string(uint8_t opcode) {
    for (const StringOpcode& known : kStringOpcodes) {
      if (known.opcode != opcode) continue;
      constexpr const char* kLength = "length of a string";
      const uint64_t size = known.length_bytes == 1   ? reader_.u8(kLength)
                            : known.length_bytes == 4 ? reader_.u32(kLength)
                                                      : reader_.u64(kLength);
      push({.kind = known.kind, .text = reader_.text(size, "string")});
      return true;
    }
    return false;
  }

  bool push_container(uint8_t opcode) {
    switch (opcode) {
      case '(':
        marks_.push_back(stack_.size());
        break;
      case '}':
        push_new(Kind::kDict, {});
        break;
      case ']':
      case ')':
        push_new(Kind::kSequence, {});
        break;
      case 0x85:
      case 0x86:
      case 0x87:
        push_new(Kind::kSequence, pop_last(opcode - 0x84U));
        break;
      case 't':
        push_new(Kind::kSequence, pop_marked());
        break;
      default:
        return false;
    }
    return true;
  }

  // The list or dictionary on top of the stack takes what was pushed after it.
  bool add_to_container(uint8_t opcode) {
    const bool is_dict = opcode == 'u' || opcode == 's';
    PickleValues items;
    switch (opcode) {
      case 'e':
      case 'u':
        items = pop_marked();
        break;
      case 'a':
      case 's':
        items = pop_last(is_dict ? 2 : 1);
        break;
      default:
        return false;
    }
    if (is_dict && items.size() % 2 != 0) reader_.fail("a key without a value");
    const PickleValue owner = pop(is_dict ? Kind::kDict : Kind::kSequence);
    PickleValues& values = pickle_.containers[owner.index];
    values.insert(values.end(), items.begin(), items.end());
    push(owner);
    return true;
  }

  bool use_memo(uint8_t opcode) {
    const auto put = [&](uint32_t key) {
      if (num_open() == 0) reader_.fail("nothing to remember");
      memo_[key] = stack_.back();
    };
    const auto get = [&](uint32_t key) {
      const auto found = memo_.find(key);
      if (found == memo_.end()) reader_.fail("memo " + std::to_string(key) + " is empty");
      push(found->second);
    };
    switch (opcode) {
      case 'q':
        put(reader_.u8("memo"));
        break;
      case 'r':
        put(reader_.u32("memo"));
        break;
      case 0x94:
        put(static_cast<uint32_t>(memo_.size()));
        break;
      case 'h':
        get(reader_.u8("memo"));
        break;
      case 'j':
        get(reader_.u32("memo"));
        break;
      default:
        return false;
    }
    return true;
  }

  // In Python these opcodes look names up and call functions; here they note the result.
  void construct(uint8_t opcode) {
    switch (opcode) {
      case 'c': {
        const std::string_view module = line();
        return push_name(module, line());
      }
      case 0x93: {
        const PickleValue name = pop(Kind::kText);
        return push_name(pop(Kind::kText).text, name.text);
      }
      case 'R':
        return call();
      case 'b':
        return set_state();
      case 0x95:
        // A hint for reading ahead: the framed opcodes are read one by one anyway.
        if (reader_.u64("length of a frame") > reader_.remaining()) {
          reader_.fail("a frame is longer than the rest of the file");
        }
        return;
      case 0x97:
        reader_.fail("an array lies in a buffer outside of the pickle",
                     "one written without buffer_callback");
      default:
        reader_.fail("opcode " + std::to_string(opcode) + " is unknown",
                     "a pickle of lists, dictionaries and NumPy arrays");
    }
  }

  std::string_view line() {
    const uint64_t begin = reader_.position();
    uint64_t size = 0;
    while (reader_.u8("name") != '\n') {
      if (++size > kMaxNameBytes) reader_.fail("a name of over 100 bytes");
    }
    reader_.seek(begin, "name");
    const std::string_view text = reader_.text(size, "name");
    reader_.skip(1, "name");
    return text;
  }

  void push_name(std::string_view module, std::string_view name) {
    for (const KnownName& known : kKnownNames) {
      if (known.module != module || known.name != name) continue;
      return push({.kind = Kind::kName, .number = static_cast<int64_t>(known.callable)});
    }
    const auto shown = [](std::string_view s) { return printable(s.substr(0, kMaxNameBytes)); };
    reader_.fail("the pickle names '" + shown(module) + " " + shown(name) + "'",
                 "NumPy's arrays and plain values of Python only");
  }

  void call() {
    const PickleValues& arguments = items_of(pop(Kind::kSequence));
    const auto callable = static_cast<Callable>(pop(Kind::kName).number);
    std::optional<PickleValue> result;
    switch (callable) {
      case Callable::kNdarray:
        break;
      case Callable::kDtype:
        if (!arguments.empty() && !string_of(arguments[0]).empty()) {
          result = {.kind = Kind::kDtype, .text = string_of(arguments[0])};
        }
        break;
      case Callable::kReconstruct:
        result = new_array({});
        break;
      case Callable::kFromBuffer:
        if (arguments.size() >= 4) {
          result = new_array(
              array_of(arguments[0], arguments[1], arguments[2], is_string(arguments[3], "C")));
        }
        break;
      case Callable::kEncode:
        if (arguments.size() == 2 && arguments[0].kind == Kind::kText &&
            is_string(arguments[1], "latin1")) {
          result = {.kind = Kind::kLatin1, .text = arguments[0].text};
        }
        break;
      case Callable::kBytes:
        if (arguments.empty()) result = {.kind = Kind::kBytes};
        break;
    }
    if (!result) reader_.fail("the pickle constructs something in an unknown way");
    push(*result);
  }

  static std::string_view string_of(const PickleValue& value) {
    return value.kind == Kind::kText || value.kind == Kind::kBytes ? value.text
                                                                   : std::string_view();
  }

  PickleValue new_array(PickleArray array) {
    pickle_.arrays.push_back(std::move(array));
    return {.kind = Kind::kArray, .index = pickle_.arrays.size() - 1};
  }

  PickleArray array_of(const PickleValue& data, const PickleValue& dtype, const PickleValue& shape,
                       bool is_c_order) const {
    if ((data.kind != Kind::kBytes && data.kind != Kind::kLatin1) || dtype.kind != Kind::kDtype ||
        shape.kind != Kind::kSequence) {
      reader_.fail("an array has no bytes, dtype or shape");
    }
    return {.data = data, .shape = shape, .dtype = dtype.text, .is_c_order = is_c_order};
  }

  void set_state() {
    const PickleValues& state = items_of(pop(Kind::kSequence));
    // Byte order and the like of a dtype, which the arrays of bytes that we read do not have.
    if (num_open() > 0 && stack_.back().kind == Kind::kDtype) return;
    const PickleValue array = pop(Kind::kArray);
    // NumPy's state of an array: version, shape, dtype, is it in Fortran order?, bytes.
    if (state.size() != 5) reader_.fail("the state of an array has another form");
    const bool is_c_order =
        (state[3].kind == Kind::kBool || state[3].kind == Kind::kInt) && state[3].number == 0;
    pickle_.arrays[array.index] = array_of(state[4], state[2], state[1], is_c_order);
    push(array);
  }

  ByteReader reader_;
  Pickle pickle_;
  PickleValues stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::map<uint32_t, PickleValue> memo_;
};

}  // namespace

Pickle read_pickle(std::span<const std::byte> bytes, const std::string& name) {
  return Decoder(bytes, name).decode();
}

bool is_string(const PickleValue& value, std::string_view ascii) {
  const bool has_text =
      value.kind == Kind::kText || value.kind == Kind::kBytes || value.kind == Kind::kLatin1;
  return has_text && value.text == ascii;
}

const char* kind_name(Kind kind) {
  constexpr const char* kNames[] = {
      "None",    "a truth value",       "a whole number",  "a text",       "bytes",
      "bytes",   "a function or class", "a list or tuple", "a dictionary", "a dtype",
      "an array"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace lra::tasks
