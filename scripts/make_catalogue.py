#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns data/catalogue/*.csv into src/core/perf/catalogue_data.inc, which the binary compiles in.

usage: make_catalogue.py [--check]     --check exits 1 when the file is not what would be written
"""
import csv
import decimal
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "src/core/perf/catalogue_data.inc"
HEAD = """// SPDX-License-Identifier: Apache-2.0
// Made by scripts/make_catalogue.py from data/catalogue/*.csv; do not edit. Origins and licences:
// data/catalogue/README.md. Seconds, tokens, GB, TB/s, TFLOPS, USD; -1: the table does not say.
"""


def rows(name):
    with open(ROOT / "data/catalogue" / name, newline="") as file:
        return list(csv.DictReader(file))


def number(text, scale=0):
    """The text as a C++ literal, times 10^scale, with no rounding; -1 for an empty cell."""
    if text == "":
        return "-1"
    value = decimal.Decimal(text).scaleb(scale)
    if value == value.to_integral_value():
        return str(int(value))
    return f"{value.normalize():g}".replace("E", "e")


def text(value):
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def emit(out, name, table, cells):
    out.append(f"constexpr {name}[] = {{\n")
    for row in table:
        line = "   "
        for word in [f"{{{cells(row)[0]},"] + [f"{c}," for c in cells(row)[1:-1]] + [
                f"{cells(row)[-1]}}},"]:
            if len(line) + 1 + len(word) > 100:
                out.append(line + "\n")
                line = "      " + word
            else:
                line += " " + word
        out.append(line + "\n")
    out.append("};\n")


def accelerator(r):
    estimate = "true" if r["price_basis"].startswith("ESTIMATE") else "false"
    return [text(r["gpu"]), text(r["vendor"]), text(r["architecture"]), number(r["memory_gb"]),
            number(r["memory_bw_tb_s"]), number(r["bf16_tflops_dense"]),
            number(r["fp8_tflops_dense"]), number(r["fp4_tflops_dense"]),
            number(r["scale_up_gb_s_uni"]), number(r["scale_up_domain_gpus"]),
            number(r["usd_per_gpu_hour_on_demand_median"]), estimate]


def model(r):
    return [text(r["model"]), text(r["architecture"]), number(r["params_b"]),
            number(r["active_params_b"]), text(r["native_dtype"]), number(r["layers"]),
            number(r["hidden_size"]), number(r["attention_heads"]), number(r["head_dim"]),
            number(r["experts"]), number(r["experts_per_token"]), number(r["context_native"]),
            number(r["kv_bytes_per_token_bf16"]), number(r["kv_bytes_per_token_long_context"]),
            text(r["model_licence"])]


def profile(r):
    method = {"measured": "Measured", "ops": "Ops", "scaled": "Scaled"}[r["method"]]
    ms = [number(r[key], -3) for key in (
        "prefill_a_ms", "prefill_b_ms_per_token", "prefill_c_ms_per_token2", "decode_d_ms",
        "decode_e_ms_per_seq", "decode_f_ms_per_kv_token", "pw_d_ms", "pw_e1_ms", "pw_e2_ms",
        "pw_f_ms")]
    plain = [number(r[key]) for key in (
        "pw_batch_break", "prefill_mape", "decode_mape", "pw_mape", "weight_gb_per_gpu",
        "max_kv_tokens", "e2e_points", "e2e_median_ratio", "e2e_mape")]
    return [text(r["model"]), text(r["gpu"]), r["tp"], text(r["precision"]),
            f"Method::{method}", text(r["engine"]), *ms, *plain]


def main():
    out = [HEAD]
    emit(out, "Accelerator kAccelerators", rows("gpus.csv"), accelerator)
    emit(out, "ModelCard kModels", rows("models.csv"), model)
    emit(out, "Profile kProfiles", rows("engine-profiles.csv"), profile)
    content = "".join(out)
    if "--check" in sys.argv[1:]:
        if OUTPUT.exists() and OUTPUT.read_text() == content:
            return 0
        print(f"{OUTPUT} is stale; run scripts/make_catalogue.py", file=sys.stderr)
        return 1
    OUTPUT.write_text(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
