// Pairs of documents as the authors of the Long Range Arena ship them (retrieval, AAN).
//
// new_aan_pairs.{train,eval,test}.tsv: five columns, label TAB id1 TAB id2 TAB text1 TAB text2. No
// header, and quotes mean nothing. Labels are 0 and 1, or 0.0 and 1.0. The form that names the
// papers only, new_aan_pairs.{train,eval,test}.only_ids.tsv, has the first three columns; the texts
// come from a folder with one file per paper, or from lines id TAB text.
//
// Files are read in blocks, and a text is cut where the task cuts it: memory does not grow with
// them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace lra::tasks {

inline constexpr size_t kMaxPairTextBytes =
    10000;  // bytes of a text that the authors' reader keeps

struct PairLine {
  int label = 0;
  std::string_view ids;  // the columns label, id1 and id2 as in the file
  std::string_view id1, id2;
  std::string_view text1, text2;  // not cut; empty in a line of three columns
  int64_t line = 0;               // from 1
};

// The official name of a split's file, "new_aan_pairs.eval.tsv" with five columns; `split` is an
// index of kSplitNames.
std::string pair_file_name(size_t split, int num_columns);

// One line, without its line end. Throws lra::Error at `path`:`number`.
PairLine parse_pair_line(std::string_view text, int num_columns, const std::string& path,
                         int64_t number);

// Calls sink(pair) for every line in order; its views are valid during the call. Lines end in LF or
// CR LF. Throws lra::Error that names file:line: another number of columns, a label that is none,
// an id that is empty or over 100 bytes, a line over 16 MiB.
void read_pairs(const std::string& path, int num_columns,
                const std::function<void(const PairLine&)>& sink);

// Texts by id. Opened on a folder, the text of a paper is the file ID or ID.txt in it; TAB and line
// ends become spaces, so that the pairs can be written in columns again. Opened on a file, it is
// what follows the id and its TAB in a line.
class PaperTexts {
 public:
  // Throws lra::Error for a source that is neither, a line without TAB, an id that occurs twice.
  explicit PaperTexts(const std::string& source);
  ~PaperTexts();
  // Text of a paper, at most kMaxPairTextBytes. `where` is the file:line that refers to it, for the
  // lra::Error if there is no such paper.
  std::string text(std::string_view id, const std::string& where) const;

 private:
  struct Index;
  std::string source_;
  std::unique_ptr<Index> index_;  // null for a folder
};

// Paths of the pairs in one folder: train, val and test.
struct PairFiles {
  std::array<std::string, 3> paths;
  int num_columns = 0;  // 5, or 3 for the ids only; 0 when there are none
};
// Looks into the folder itself and tsv_data, aan, lra_release/tsv_data and
// lra_release/lra_release/tsv_data below it; five columns are preferred. Throws lra::Error for a
// folder that has some of the three files.
PairFiles find_pair_files(const std::string& folder);

}  // namespace lra::tasks
