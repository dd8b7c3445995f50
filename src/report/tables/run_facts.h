// Facts about one run, for every format.
#pragma once

#include <string>
#include <vector>

#include "records/run_record.h"

namespace lra::report {

// "AMD EPYC 9965, 2 threads, cpu, avx512": two speeds compare only if these are equal.
std::string machine_of(const Provenance& provenance);
// "NVIDIA H100 80GB HBM3" or "Intel Xeon, 2 threads": the device that computed, for people.
std::string device_of(const Provenance& provenance);
bool is_on_gpu(const Provenance& provenance);
// The first ten digits of the git revision, with "+changes" for a dirty tree.
std::string revision_of(const Provenance& provenance);

// True if the run has a figure: it is done and was tested.
bool has_figure(const RunRecord& run);

// The validations whose accuracy is finite, of more than 1,000 some.
std::vector<Evaluation> learning_curve(const RunRecord& run);

// True for data of a user's own, whose tasks are named "custom:NAME", and for diagnostic tasks.
bool is_outside_arena(const RunRecord& run);

struct Fact {
  std::string name, value;  // never empty
};

// Its progress and result.
std::vector<Fact> result_facts(const RunRecord& run);
// Its data, program and machine.
std::vector<Fact> provenance_facts(const RunRecord& run);

// The settings as TOML, line by line.
std::vector<std::string> setting_texts(const RunRecord& run);

}  // namespace lra::report
