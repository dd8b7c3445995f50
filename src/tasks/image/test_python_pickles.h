// A CIFAR-10 batch of two images in the pickles of Python 3.11 with NumPy 2.4, byte by byte: what
// pickle.dumps(batch, protocol) gives, less the colors, which are the same in all of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lra::tasks {

struct PythonPickle {
  std::string_view title, head, tail;  // the colors lie between head and tail
};

// {"batch_label": "testing batch", "labels": [3, 7], "data": colors, "filenames": ["a.png",
// "b.png"]}, where the colors are a uint8 array of shape [2, 3072].
inline std::vector<PythonPickle> python_pickles() {
  using namespace std::string_view_literals;
  return {
      {"protocol 2, keys of str",
       "\200\002}q\000(X\013\000\000\000batch_labelq\001X\015\000\000\000testing batchq\002X\006"
       "\000\000\000labelsq\003]q\004(K\003K\007eX\004\000\000\000dataq\005cnumpy._core.multiarr"
       "ay\012_reconstruct\012q\006cnumpy\012ndarray\012q\007K\000\205q\010c_codecs\012encode"
       "\012q\011X\001\000\000\000bq\012X\006\000\000\000latin1q\013\206q\014Rq\015\207q\016Rq"
       "\017(K\001K\002M\000\014\206q\020cnumpy\012dtype\012q\021X\002\000\000\000u1q\022\211"
       "\210\207q\023Rq\024(K\003X\001\000\000\000|q\025NNNJ\377\377\377\377J\377\377\377\377K"
       "\000tq\026b\211h\011X\000$\000\000"sv,
       "q\027h\013\206q\030Rq\031tq\032bX\011\000\000\000filenamesq\033]q\034(X\005\000\000\000a"
       ".pngq\035X\005\000\000\000b.pngq\036eu."sv},
      {"protocol 2, keys of bytes",
       "\200\002}q\000(c_codecs\012encode\012q\001X\013\000\000\000batch_labelq\002X\006\000\000"
       "\000latin1q\003\206q\004Rq\005h\001X\015\000\000\000testing batchq\006h\003\206q\007Rq"
       "\010h\001X\006\000\000\000labelsq\011h\003\206q\012Rq\013]q\014(K\003K\007eh\001X\004"
       "\000\000\000dataq\015h\003\206q\016Rq\017cnumpy._core.multiarray\012_reconstruct\012q"
       "\020cnumpy\012ndarray\012q\021K\000\205q\022h\001X\001\000\000\000bq\023h\003\206q\024Rq"
       "\025\207q\026Rq\027(K\001K\002M\000\014\206q\030cnumpy\012dtype\012q\031X\002\000\000"
       "\000u1q\032\211\210\207q\033Rq\034(K\003X\001\000\000\000|q\035NNNJ\377\377\377\377J\377"
       "\377\377\377K\000tq\036b\211h\001X\000$\000\000"sv,
       "q\037h\003\206q Rq!tq\"bh\001X\011\000\000\000filenamesq#h\003\206q$Rq%]q&(h\001X\005"
       "\000\000\000a.pngq'h\003\206q(Rq)h\001X\005\000\000\000b.pngq*h\003\206q+Rq,eu."sv},
      {"protocol 3, keys of str",
       "\200\003}q\000(X\013\000\000\000batch_labelq\001X\015\000\000\000testing batchq\002X\006"
       "\000\000\000labelsq\003]q\004(K\003K\007eX\004\000\000\000dataq\005cnumpy._core.multiarr"
       "ay\012_reconstruct\012q\006cnumpy\012ndarray\012q\007K\000\205q\010C\001bq\011\207q\012R"
       "q\013(K\001K\002M\000\014\206q\014cnumpy\012dtype\012q\015X\002\000\000\000u1q\016\211"
       "\210\207q\017Rq\020(K\003X\001\000\000\000|q\021NNNJ\377\377\377\377J\377\377\377\377K"
       "\000tq\022b\211B\000\030\000\000"sv,
       "q\023tq\024bX\011\000\000\000filenamesq\025]q\026(X\005\000\000\000a.pngq\027X\005\000"
       "\000\000b.pngq\030eu."sv},
      {"protocol 3, keys of bytes",
       "\200\003}q\000(C\013batch_labelq\001C\015testing batchq\002C\006labelsq\003]q\004(K\003K"
       "\007eC\004dataq\005cnumpy._core.multiarray\012_reconstruct\012q\006cnumpy\012ndarray\012"
       "q\007K\000\205q\010C\001bq\011\207q\012Rq\013(K\001K\002M\000\014\206q\014cnumpy\012dtyp"
       "e\012q\015X\002\000\000\000u1q\016\211\210\207q\017Rq\020(K\003X\001\000\000\000|q\021NN"
       "NJ\377\377\377\377J\377\377\377\377K\000tq\022b\211B\000\030\000\000"sv,
       "q\023tq\024bC\011filenamesq\025]q\026(C\005a.pngq\027C\005b.pngq\030eu."sv},
      {"protocol 4, keys of str",
       "\200\004\225\351\030\000\000\000\000\000\000}\224(\214\013batch_label\224\214\015testing"
       " batch\224\214\006labels\224]\224(K\003K\007e\214\004data\224\214\026numpy._core.multiar"
       "ray\224\214\014_reconstruct\224\223\224\214\005numpy\224\214\007ndarray\224\223\224K\000"
       "\205\224C\001b\224\207\224R\224(K\001K\002M\000\014\206\224h\011\214\005dtype\224\223"
       "\224\214\002u1\224\211\210\207\224R\224(K\003\214\001|\224NNNJ\377\377\377\377J\377\377"
       "\377\377K\000t\224b\211B\000\030\000\000"sv,
       "\224t\224b\214\011filenames\224]\224(\214\005a.png\224\214\005b.png\224eu."sv},
      {"protocol 4, keys of bytes",
       "\200\004\225\351\030\000\000\000\000\000\000}\224(C\013batch_label\224C\015testing batch"
       "\224C\006labels\224]\224(K\003K\007eC\004data\224\214\026numpy._core.multiarray\224\214"
       "\014_reconstruct\224\223\224\214\005numpy\224\214\007ndarray\224\223\224K\000\205\224C"
       "\001b\224\207\224R\224(K\001K\002M\000\014\206\224h\011\214\005dtype\224\223\224\214\002"
       "u1\224\211\210\207\224R\224(K\003\214\001|\224NNNJ\377\377\377\377J\377\377\377\377K\000"
       "t\224b\211B\000\030\000\000"sv,
       "\224t\224bC\011filenames\224]\224(C\005a.png\224C\005b.png\224eu."sv},
      {"protocol 5, keys of str",
       "\200\005\225\321\030\000\000\000\000\000\000}\224(\214\013batch_label\224\214\015testing"
       " batch\224\214\006labels\224]\224(K\003K\007e\214\004data\224\214\023numpy._core.numeric"
       "\224\214\013_frombuffer\224\223\224(\226\000\030\000\000\000\000\000\000"sv,
       "\224\214\005numpy\224\214\005dtype\224\223\224\214\002u1\224\211\210\207\224R\224(K\003"
       "\214\001|\224NNNJ\377\377\377\377J\377\377\377\377K\000t\224bK\002M\000\014\206\224\214"
       "\001C\224t\224R\224\214\011filenames\224]\224(\214\005a.png\224\214\005b.png\224eu."sv},
      {"protocol 5, keys of bytes",
       "\200\005\225\321\030\000\000\000\000\000\000}\224(C\013batch_label\224C\015testing batch"
       "\224C\006labels\224]\224(K\003K\007eC\004data\224\214\023numpy._core.numeric\224\214\013"
       "_frombuffer\224\223\224(\226\000\030\000\000\000\000\000\000"sv,
       "\224\214\005numpy\224\214\005dtype\224\223\224\214\002u1\224\211\210\207\224R\224(K\003"
       "\214\001|\224NNNJ\377\377\377\377J\377\377\377\377K\000t\224bK\002M\000\014\206\224\214"
       "\001C\224t\224R\224C\011filenames\224]\224(C\005a.png\224C\005b.png\224eu."sv}};
}

// The colors of both images, as bytes.
inline std::string python_pickle_colours() {
  std::string colours;
  for (int image = 0; image < 2; ++image) {
    for (int i = 0; i < 3072; ++i) colours += static_cast<char>((i * 7 + image * 20) % 256);
  }
  return colours;
}

// The whole file. Protocol 2 stores bytes as Latin-1 text in UTF-8.
inline std::string whole_pickle(const PythonPickle& pickle) {
  std::string colours = python_pickle_colours();
  if (pickle.head[1] == 2) {
    std::string text;
    for (const char c : colours) {
      const auto code = static_cast<unsigned char>(c);
      if (code >= 0x80) text += static_cast<char>(0xC0 | code >> 6);
      text += code >= 0x80 ? static_cast<char>(0x80 | (code & 0x3F)) : c;
    }
    colours = text;
  }
  return std::string(pickle.head) + colours + std::string(pickle.tail);
}

}  // namespace lra::tasks
