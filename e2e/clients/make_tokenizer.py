# SPDX-License-Identifier: Apache-2.0
"""Trains a small byte-level tokenizer on this machine's licence texts, so that load generators,
which want one, need no download. usage: make_tokenizer.py FOLDER"""
import glob
import json
import os
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n"
            "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def main(folder):
    os.makedirs(folder, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train(sorted(glob.glob("/usr/share/common-licenses/*"))[:8], trainers.BpeTrainer(
        vocab_size=4096, special_tokens=["<s>", "</s>", "<unk>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer.save(f"{folder}/tokenizer.json")
    with open(f"{folder}/tokenizer_config.json", "w") as file:
        json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>",
                   "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "</s>",
                   "model_max_length": 131072, "clean_up_tokenization_spaces": False,
                   "chat_template": TEMPLATE}, file)
    with open(f"{folder}/config.json", "w") as file:
        json.dump({"model_type": "llama", "vocab_size": tokenizer.get_vocab_size(),
                   "max_position_embeddings": 131072}, file)


main(sys.argv[1])
