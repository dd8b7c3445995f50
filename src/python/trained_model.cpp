// torch.classes.lra.TrainedModel: the model of a run with its weights, for lra.arena.load.
//
// Its tensors are those that Python holds as parameters and buffers: one storage, one gradient.
#include <torch/custom_class.h>
#include <torch/library.h>

#include "cli/device.h"
#include "io/config_json.h"
#include "python/named_tensors.h"
#include "training/loop/batches.h"
#include "training/run/loaded_run.h"

namespace lra::python {
namespace {

class TrainedModel : public torch::CustomClassHolder {
 public:
  // `checkpoint` as of --checkpoint, empty for the weights that the run tested. Throws lra::Error,
  // a RuntimeError in Python, for a folder that is not a run, for weights that are not its own, and
  // for a run that predicts masked inputs.
  TrainedModel(const std::string& folder, const std::string& checkpoint, const std::string& device)
      : run_(folder, {.checkpoint = checkpoint}, training::ModelPrecision::kAsTrained,
             at::Device(cli::find_device(device))) {
    training::refuse_masked(run_.stored.config, "lra.arena.load");
  }

  // tokens [rows, L] as ids, int32, or values [rows, L, C], float32, where the data stores them;
  // with two towers rows 2b and 2b + 1 are a pair. lengths [rows], int32 on the CPU, if the task
  // has padding. -> logits [B, classes], float32. `key` and `step` determine dropout in training.
  at::Tensor forward(const at::Tensor& inputs, const std::optional<at::Tensor>& lengths_B,
                     bool training, int64_t key, int64_t step) {
    const at::Tensor lengths = lengths_B.value_or(at::Tensor());
    const TaskShape shape = run_.task->shape();
    training::Batch batch;
    batch.input = inputs.is_floating_point()
                      ? models::ModelInput{.lengths_B = lengths, .values_BLC = inputs}
                      : training::input_of(inputs, lengths, shape);
    return run_.model->forward(
        training::to_device(batch, run_.model->device()).input,
        {.training = training, .seed = static_cast<uint64_t>(key), .step = step});
  }

  c10::Dict<std::string, at::Tensor> parameters() const {
    return by_name(run_.model->parameter_list());
  }
  c10::Dict<std::string, at::Tensor> buffers() const { return by_name(run_.model->buffer_list()); }

  // What Python needs to make batches as an evaluation does, as JSON.
  std::string facts() const {
    const TaskShape shape = run_.task->shape();
    const training::TrainConfig& train = run_.stored.config.train;
    return json_text(
        {{"length", shape.length},
         {"vocabulary", shape.vocabulary},
         {"classes", shape.num_classes},
         {"towers", shape.num_towers},
         {"padded", shape.has_padding},
         {"channels", shape.values && shape.values->stored_as_float ? shape.values->channels : 0},
         {"batch_size", train.eval_batch_size},
         {"trim", train.trim_padding},
         {"checkpoint", run_.checkpoint},
         {"step", run_.weights.progress.step},
         {"changed_code", run_.changed_code()}});
  }

 private:
  training::LoadedRun run_;
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.class_<TrainedModel>("TrainedModel")
      .def(torch::init<std::string, std::string, std::string>())
      .def("forward", &TrainedModel::forward)
      .def("parameters", &TrainedModel::parameters)
      .def("buffers", &TrainedModel::buffers)
      .def("facts", &TrainedModel::facts);
}

}  // namespace lra::python
