#!/usr/bin/env bash
# transformers 5.24.0, accelerate 1.15.0 (torch 2.13.0, CPU): a Trainer that groups examples by length, stopped within an epoch and
# resumed from its checkpoint. Guess: the rest of the epoch is the same, since the Trainer skips what it has seen and restores the
# generators. Seen: so it is without groups, and with them in the first epoch. From the second epoch on, the skipped order is
# not the one that was trained: every batch after the checkpoint is another one, examples of the epoch come twice and others never
# (75 of 96 are seen), and the weights end elsewhere, without a word.
# The grouped order is drawn from the global generator, which is restored only after the order was drawn. So stop such a run only at
# the end of an epoch, or give the sampler a generator that depends on seed and epoch.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy transformers==5.24.0 accelerate==1.15.0
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON' 2>/dev/null
import torch
import transformers

EXAMPLES, BATCH = 96, 8
lengths = torch.randint(5, 60, (EXAMPLES,), generator=torch.Generator().manual_seed(0)).tolist()
examples = [{"input_ids": [i] * length} for i, length in enumerate(lengths)]

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(1, 1)
        self.batches = []

    def forward(self, example):
        self.batches.append(example.tolist())
        return {"loss": self.linear(example[:, None] / EXAMPLES).square().mean()}

class StopAt(transformers.TrainerCallback):
    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **_):
        control.should_save = control.should_training_stop = state.global_step == self.step

def train(strategy, stop=None, resume=None):
    transformers.set_seed(1)
    arguments = transformers.TrainingArguments(
        strategy, per_device_train_batch_size=BATCH, num_train_epochs=2, seed=1, use_cpu=True, save_strategy="no",
        logging_strategy="no", report_to=[], remove_unused_columns=False, disable_tqdm=True, train_sampling_strategy=strategy)
    collate = lambda batch: {"example": torch.tensor([example["input_ids"][0] for example in batch])}
    trainer = transformers.Trainer(Model(), arguments, train_dataset=examples, data_collator=collate, callbacks=[StopAt(stop)])
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train(resume_from_checkpoint=resume)
    return trainer.model.batches, trainer.model.linear.weight.item()

steps = EXAMPLES // BATCH
for strategy in ("random", "group_by_length"):
    whole, weight = train(strategy)
    for stop in (steps // 2, steps + steps // 2):
        begun, _ = train(strategy, stop)
        rest, resumed_weight = train(strategy, resume=f"{strategy}/checkpoint-{stop}")
        batches = begun + rest
        assert len(batches) == 2 * steps and batches[:stop] == whole[:stop]
        equal = sum(a == b for a, b in zip(batches[stop:], whole[stop:]))
        seen = len({example for batch in batches[steps:] for example in batch})
        print(f"{strategy:15} resumed after step {stop:2} of {2 * steps}: {equal} of {2 * steps - stop} batches are the same; "
              f"the second epoch has {seen} of {EXAMPLES} examples; the same weight: {weight == resumed_weight}")
        wrong = strategy == "group_by_length" and stop > steps
        assert (equal == 0 and seen < EXAMPLES and weight != resumed_weight) if wrong else \
            (equal == 2 * steps - stop and seen == EXAMPLES and weight == resumed_weight)
PYTHON
