# SPDX-License-Identifier: Apache-2.0
"""signalbox sim: what a person or a CI job sees of it: seed first, exit codes, every output."""
import json
import re
import subprocess
import unittest
from html.parser import HTMLParser

from processes import BINARY, ROOT, folder

SMALL = """shows: Two engines, a minute.
seed: 42
fleet: [{model: Llama-3.1-8B, profile: l40s, count: 2}]
load: {requests: 60, sessions_per_second: 4, leavers: 0}
expect:
  - completed == 100%
"""
VOID = {"meta"}


def sim(*words):
    done = subprocess.run([BINARY, "sim", *map(str, words)], capture_output=True, text=True,
                          timeout=120)
    return done.returncode, done.stdout, done.stderr


def put(text, name="small.yaml"):
    path = folder() / name
    path.write_text(text)
    return path


class Elements(HTMLParser):
    """Counts elements, and notices those that are not closed."""

    def __init__(self):
        super().__init__()
        self.open, self.count, self.crossed = [], {}, []

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.crossed.append(tag)


class Run(unittest.TestCase):
    def test_the_seed_comes_first_and_a_run_as_expected_exits_with_0(self):
        code, out, _ = sim("run", put(SMALL))
        self.assertEqual(code, 0, out)
        self.assertTrue(out.startswith("seed 42  "), out)
        self.assertIn("ok    completed == 100%: it is 100 %", out)

    def test_the_same_seed_says_the_same_and_another_something_else(self):
        path = put(SMALL)
        first, again, other = (sim("run", path, "--seed", seed)[1] for seed in (7, 7, 8))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other.replace("seed 8", "seed 7"))

    def test_an_expectation_that_does_not_hold_exits_with_1_and_is_named(self):
        path = put(SMALL + "  - ttft.p99 < 1us\n")
        code, out, _ = sim("run", path)
        self.assertEqual(code, 1)
        self.assertIn("FAIL  ttft.p99 < 1us: it is ", out)
        code, out, said = sim("run", path, "--seeds", 2, "-o", "json")
        self.assertEqual(code, 1)
        self.assertIn("FAIL  seed 43: ttft.p99 < 1us", said)
        self.assertFalse(json.loads(out)[0]["passed"])

    def test_an_invariant_that_does_not_hold_exits_with_1_and_is_told(self):
        code, out, _ = sim("run", put(SMALL), "--set", "world.give_up=2s", "--set", "expect=[]")
        self.assertEqual(code, 1)
        self.assertIn("FAIL  the run does not end", out)
        self.assertIn("seed 42", out)

    def test_what_cannot_be_read_exits_with_2_before_anything_runs(self):
        good, bad = put(SMALL), put(SMALL.replace("requests", "request"), "bad.yaml")
        code, out, said = sim("run", good, bad)
        self.assertEqual((code, out), (2, ""))
        self.assertRegex(said, r"bad\.yaml:4:8: load: .*did you mean `requests`\?")
        self.assertEqual(sim("run", folder() / "none.yaml")[0], 2)
        self.assertEqual(sim("run")[0], 2)
        self.assertEqual(sim()[0], 2)
        self.assertEqual(sim("run", good, "--seeds", "x")[0], 2)

    def test_a_setting_can_be_overridden_and_is_checked(self):
        path = put(SMALL)
        code, out, _ = sim("run", path, "--set", "load.requests=5", "-o", "json")
        self.assertEqual(code, 0)
        self.assertEqual(json.loads(out)[0]["runs"][0]["metrics"]["tasks"], 5)
        code, _, said = sim("run", path, "--set", "load.plain=7")
        self.assertEqual(code, 2)
        self.assertIn("--set: load.plain:", said)

    def test_a_page_is_whole_and_holds_nothing_from_elsewhere(self):
        text = SMALL.replace("Two engines, a minute.", "'Two <i>engines</i> & \"more\".'")
        text += "  - goodput > 0.1 * baseline\n"
        text += "faults: [{kind: die, at: 3s, lasts: 2s, engines: [1]}]\n"
        target = folder() / "page.html"
        code, out, said = sim("run", put(text), "-o", "html", "--out", target,
                              "--set", "expect[0]=completed > 50%")
        self.assertEqual((code, out), (0, ""), said)
        self.assertTrue(said.startswith("seed 42  "), said)
        page = target.read_text()
        elements = Elements()
        elements.feed(page)
        self.assertEqual((elements.open, elements.crossed), ([], []))
        self.assertEqual(elements.count["svg"], 9)
        self.assertNotIn("i", elements.count)
        for chart in re.findall(r'data-chart="([^"]*)"', page):
            json.loads(chart.replace("&quot;", '"'))
        self.assertEqual(re.findall(r"https?://|src=|url\(|@import", page), [])

    def test_worlds_that_hold_are_counted_and_exit_with_0(self):
        code, out, said = sim("fuzz", "--hours", "0.2", "--seed", "1", "--keep", folder())
        self.assertEqual((code, said), (0, ""), out)
        self.assertRegex(out, r"^seeds from 1, 0\.2 hours")
        self.assertRegex(out, r"\d+ worlds, \d+\.\d hours: 0 broke\n$")
        self.assertEqual(sim("fuzz", "--hours", "-1")[0], 2)

    def test_metrics_are_listed_as_the_reference_has_them(self):
        code, out, _ = sim("metrics")
        self.assertEqual(code, 0)
        page = (ROOT / "docs/reference/scenario.md").read_text()
        names = [line.split()[0] for line in out.splitlines()[1:]]
        self.assertGreater(len(names), 50)
        for name in names:
            self.assertIn(f"| `{name}` |", page)


if __name__ == "__main__":
    unittest.main()
