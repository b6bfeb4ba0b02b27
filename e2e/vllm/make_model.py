# SPDX-License-Identifier: Apache-2.0
"""Writes SmolLM2-135M-Instruct as safetensors from its GGUF, as vLLM wants it.

usage: make_model.py FOLDER_OF_THE_GGUF NAME_OF_THE_GGUF OUT_FOLDER
"""
import json
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer


def main(folder, gguf, out):
    AutoTokenizer.from_pretrained(folder, gguf_file=gguf).save_pretrained(out)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=gguf, dtype=torch.float32)
    tied = model.config.tie_word_embeddings
    weights = {name: value.detach().to(torch.bfloat16).contiguous().clone()
               for name, value in model.state_dict().items()
               if name != "lm_head.weight" or not tied}
    save_file(weights, f"{out}/model.safetensors", metadata={"format": "pt"})
    config = model.config.to_dict()
    config.pop("quantization_config", None)
    config["dtype"], config["architectures"] = "bfloat16", ["LlamaForCausalLM"]
    with open(f"{out}/config.json", "w") as file:
        json.dump(config, file, indent=1)


main(*sys.argv[1:4])
