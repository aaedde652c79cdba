"""Fine-tunes a tiny BERT with the transformers Trainer and a callback of its own."""

import os
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

STEPS = int(os.environ.get("ZOO_STEPS", "300"))


class Sentences(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        ids = torch.randint(5, 800, (32,), generator=generator)
        return {"input_ids": ids, "labels": int(ids[0] > 400)}


class GradientHistory(TrainerCallback):
    def __init__(self):
        self.history = []

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        head = model.classifier.weight.grad.flatten()
        pooled = model.bert.pooler.dense.weight.grad
        self.history = [(head.clone(), pooled.clone())]


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = BertConfig(
        vocab_size=800,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
        max_position_embeddings=64,
    )
    watch = GradientHistory()
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=BertForSequenceClassification(config),
            args=TrainingArguments(
                folder,
                max_steps=STEPS,
                per_device_train_batch_size=16,
                save_strategy="no",
                logging_steps=20,
                report_to=[],
                disable_tqdm=True,
                use_cpu=True,
            ),
            train_dataset=Sentences(),
            callbacks=[watch],
        )
        trainer.train()
    print(f"gradient norm of the head at the end: {watch.history[-1][0].norm():.3f}")


if __name__ == "__main__":
    main()
